"use strict";
// What is drawn anew when something changes, and the start of the page.

function changed(what, column = -1) {
  if (what === "start") {
    drawImages();
    drawHills();
    drawSliders();
    drawStrips();
    drawSelection();
    drawRelation();
    drawScatter();
    drawCompare();
    drawNoise();
  } else if (what === "code") {
    drawDecoded();
    noteStart();
    drawSliders();
    drawStrips(column);
    drawScatter();
    drawCompare();
    drawNoise();
  } else if (what === "noise") {
    drawDecoded();
    drawStrips();
    drawNoise();
  } else if (what === "selection") {
    drawSelection();
    drawRelation();
  } else if (what === "factors") {
    keepingFocus(buildFactors);
    drawRelation();
  } else if (what === "names") {
    buildAll();
  }
  writeLink();
}

// What is built anew keeps the focus where the keyboard left it: on the control with the same number in its region.
function keepingFocus(build) {
  const controls = (region) => [...region.querySelectorAll("button, input, select, [tabindex]")];
  const focused = document.activeElement;
  const id = focused?.parentElement?.closest("[id]")?.id;
  const number = id ? controls(byId(id)).indexOf(focused) : -1;
  build();
  if (number >= 0 && !focused.isConnected) controls(byId(id))[number]?.focus({ preventScroll: true });
}

const buildAll = () => keepingFocus(buildParts);
function buildParts() {
  preview = null; // it is a code of the model that was shown
  byId("detail").textContent = `${model().name}: ${model().detail}`;
  buildModels();
  buildImages();
  buildSliders();
  buildStrips();
  buildFactors();
  buildScatter();
  buildSwap();
  buildCompare();
  buildNoise();
  changed("start");
  drawSwap();
}

function buildModels() {
  byId("models").hidden = models.length < 2;
  byId("models").replaceChildren(...models.map((_, index) =>
    element("button", {
      type: "button", role: "radio", "aria-checked": String(index === state.model), text: modelTitle(index),
      onclick: () => showModel(index),
    })));
}

function showModel(index) {
  if (index === state.model) return;
  const { start } = state;
  const own = opening ?? (start === "own" ? state.own : null);
  state.model = index;
  const order = units().filter((unit) => unit.columns.length === 1);
  state.latent = units()[0].column;
  state.across = order[0]?.column ?? 0;
  state.up = order[1]?.column ?? state.across;
  state.factor = bestFactor(state.latent);
  state.color = bestFactor(state.across);
  state.start = typeof start === "number" ? Math.min(start, rowsOf(index) - 1) : start === "own" ? 0 : start;
  state.posterior = model().encoded && typeof state.start === "number" ? posteriorOf(state.start) : null;
  state.code = startCode();
  state.noise = startNoise();
  state.noiseChanged = false;
  state.a = Math.min(state.a, rowsOf(index) - 1);
  state.b = Math.min(state.b, rowsOf(index) - 1);
  buildAll();
  if (own?.values) startFromOwn(own.name, own.values); // else it is still being read
}

// --- theme, link, names ---------------------------------------------------------------------------

const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (state.theme ? state.theme === "dark" : darkSystem.matches);
function showTheme() {
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  else delete document.documentElement.dataset.theme;
  byId("theme-button").setAttribute("aria-pressed", String(isDark()));
}

function connectTools() {
  byId("theme-button").addEventListener("click", () => {
    state.theme = isDark() ? "light" : "dark";
    showTheme();
    changed("start");
    drawSwap();
  });
  byId("link-button").addEventListener("click", async () => {
    // In a notebook or a report the page has no address of its own.
    if (location.protocol === "about:") return say(`A link needs the explorer's own file: add #${link()} to its address.`);
    const address = `${location.href.split("#")[0]}#${link()}`;
    try {
      await navigator.clipboard.writeText(address);
      say("The link to this view is copied.");
    } catch {
      say("The address of this page is the link to this view.");
      location.hash = link();
    }
  });
  byId("names-button").addEventListener("click", () => {
    const names = {};
    model().latents.forEach(({ label }, column) => {
      if (nameOf(column)) names[label] = nameOf(column);
    });
    const file = new Blob([JSON.stringify(names, null, 1) + "\n"], { type: "application/json" });
    const address = URL.createObjectURL(file);
    element("a", { href: address, download: "names.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
    const directory = model().directory || "RUN";
    say(`names.json is saved. Keep the names in the run: unweave names ${directory} names.json`);
  });
  // Arrow keys go through a group of choices.
  addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const group = event.target.matches?.("[role=radio]") && event.target.closest("[role=radiogroup]");
    if (!by || !group) return;
    event.preventDefault();
    const choices = [...group.querySelectorAll("[role=radio]")];
    const next = choices[(choices.indexOf(event.target) + by + choices.length) % choices.length];
    next.focus();
    next.click();
  });
  // A link within the page would replace the view in the address.
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.querySelector("#sliders input, #sliders select")?.focus();
  });
  let resize = 0;
  addEventListener("resize", () => {
    clearTimeout(resize);
    resize = setTimeout(() => {
      drawRelation();
      drawScatter();
    }, 150);
  });
  addEventListener("hashchange", () => {
    if (location.hash.slice(1) !== link()) showLink();
  });
  darkSystem.addEventListener("change", () => {
    showTheme();
    changed("start");
    drawSwap();
  });
}

function showLink() {
  opening = null;
  const code = readLink();
  showTheme();
  state.posterior = model().encoded && typeof state.start === "number" ? posteriorOf(state.start) : null;
  state.code = code ?? startCode();
  preview = null;
  buildAll();
}

async function start() {
  if (typeof DecompressionStream === "undefined") {
    say("This browser is too old for the page: it needs Chrome 80, Firefox 113 or Safari 16.4, or a newer one.");
    return;
  }
  try {
    await Promise.all([startRunner(), loadSheet()]);
  } catch (error) {
    say(`The model cannot be read: the file is damaged or cut off (${error.message}).`);
    return;
  }
  connectImages();
  connectStrips();
  connectFactors();
  connectScatter();
  connectSwap();
  connectCompare();
  connectNoise();
  connectTour();
  connectTools();
  showLink();
  document.documentElement.dataset.ready = "true";
}
start();
