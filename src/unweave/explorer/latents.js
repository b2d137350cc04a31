"use strict";
// A slider for every latent: shaded by the aggregate posterior, with the posterior of the start image as a bar.

const sliders = new Map(); // what is drawn for each column

function buildSliders() {
  sliders.clear();
  const rows = units().map((unit) => (unit.columns.length > 1 ? categoryRow(unit) : sliderRow(unit)));
  byId("sliders").replaceChildren(...rows);
  const { latents, encoded } = model();
  const used = units().filter((unit) => unit.active).length;
  const measure = latents.find((latent) => latent.measure && !latent.category)?.measure;
  byId("latents-note").textContent = encoded
    ? `${used} of ${units().length} in use, the most used first${measure ? `, by ${measure === "KL" ? "KL in nats" : "the standard deviation of their codes"}` : ""}. ` +
      "Grey hills show where codes of images lie, the bar where that of this image does."
    : "Grey hills show where codes of the prior lie.";
}

function sliderRow({ column, active }) {
  const latent = model().latents[column];
  const step = (latent.high - latent.low) / 200;
  const input = element("input", {
    type: "range", min: latent.low, max: latent.high, step: "any", "aria-label": titleOf(column),
    oninput: () => setLatent(column, Number(input.value)),
    onfocus: () => select(column),
    onkeydown: (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
      if (!by) return;
      event.preventDefault();
      setLatent(column, clamp(state.code[column] + by * step, latent.low, latent.high));
    },
  });
  const hills = element("canvas", { class: "hills", "aria-hidden": "true" });
  const bar = element("div", { class: "posterior", "aria-hidden": "true" });
  const value = element("output", { class: "value" });
  const use = element("span", { class: "use quiet", text: latent.measure ? shortNumber(latent.importance) : "" });
  if (latent.measure) use.title = latent.measure === "KL" ? "KL in nats" : "standard deviation of the codes";
  const row = element("div", { class: `slider ${active ? "" : "inactive"}`, "data-column": column },
    labelOf(column), use, element("div", { class: "track" }, hills, element("div", { class: "span" }, bar), input), value);
  if (!active) row.title = "Not in use: the model ignores this latent";
  sliders.set(column, { row, input, hills, bar, value });
  return row;
}

function categoryRow({ column, columns }) {
  const box = element("select", {
    "aria-label": unitTitle({ column, columns }),
    onchange: () => setCategory(columns, Number(box.value)),
    onfocus: () => select(column),
  }, ...columns.map((_, index) => element("option", { value: index, text: String(index) })));
  const row = element("div", { class: "slider category", "data-column": column },
    labelOf(column, columns), element("span", { class: "use quiet" }), element("div", { class: "track" }, box));
  sliders.set(column, { row, box, columns });
  return row;
}

// The label, which selects the latent, and the pencil, which names it.
function labelOf(column, columns = [column]) {
  const { label } = model().latents[column];
  const shown = columns.length > 1 ? `${label}–${model().latents[columns[columns.length - 1]].label}` : label;
  const button = element("button", { type: "button", class: "label", onclick: () => select(column) });
  const write = () => {
    const name = nameOf(column);
    button.replaceChildren(name || shown, ...(name ? [element("small", { text: shown })] : []));
    button.setAttribute("aria-label", `Select ${unitTitle({ column, columns })}`);
  };
  write();
  const pencil = element("button", { type: "button", class: "pencil", text: "✎", "aria-label": `Name ${shown}` });
  const box = element("span", { class: "label-box" }, button, pencil);
  pencil.addEventListener("click", () => {
    const input = element("input", { type: "text", maxlength: 100, class: "name", "aria-label": `Name of ${shown}` });
    input.value = nameOf(column);
    let done = false;
    const finish = (keep) => {
      if (done) return;
      done = true;
      const leaving = document.activeElement !== input; // for another part of the page
      input.replaceWith(button);
      if (!leaving) pencil.focus();
      if (keep) setName(column, input.value.trim());
    };
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault(); // or Enter would press the pencil, which has the focus now
      finish(event.key === "Enter");
    });
    input.addEventListener("blur", () => finish(true));
    button.replaceWith(input);
    input.focus();
    input.select();
  });
  return box;
}

function setName(column, name) {
  const { label, name: before } = model().latents[column];
  if (name === before) delete state.names[state.model][label];
  else state.names[state.model][label] = name;
  changed("names");
}

function setLatent(column, value) {
  state.code[column] = value;
  preview = null;
  changed("code", column);
}
function setCategory(columns, chosen) {
  columns.forEach((column, index) => (state.code[column] = index === chosen ? 1 : 0));
  preview = null;
  changed("code", columns[0]);
}

function drawSliders() {
  for (const [column, { input, value, box, columns }] of sliders) {
    if (box) {
      box.value = String(columns.findIndex((one) => state.code[one] === 1));
      continue;
    }
    const now = (preview ?? state.code)[column];
    input.value = now;
    input.setAttribute("aria-valuetext", shortNumber(now));
    value.textContent = shortNumber(now);
  }
}

function drawHills() {
  const color = getComputedStyle(document.documentElement).getPropertyValue("--hill");
  const histograms = array(model().histograms);
  const bins = content.arrays[model().histograms].shape[1];
  for (const [column, { hills, bar }] of sliders) {
    if (!hills) continue;
    hills.width = 192;
    hills.height = 28;
    const context = hills.getContext("2d");
    context.fillStyle = color;
    context.beginPath();
    context.moveTo(0, hills.height);
    for (let bin = 0; bin < bins; bin++)
      context.lineTo(((bin + 0.5) / bins) * hills.width, hills.height * (1 - histograms[column * bins + bin] / 255));
    context.lineTo(hills.width, hills.height);
    context.fill();
    const { low, high } = model().latents[column];
    const { posterior } = state;
    bar.hidden = !posterior;
    if (!posterior) continue;
    const at = (value) => clamp((value - low) / (high - low), 0, 1) * 100;
    const from = at(posterior.mean[column] - 2 * posterior.deviation[column]);
    const to = at(posterior.mean[column] + 2 * posterior.deviation[column]);
    bar.style.left = `${from}%`;
    bar.style.width = `max(3px, ${to - from}%)`;
    bar.title = `${shortNumber(posterior.mean[column])} ± ${shortNumber(posterior.deviation[column])}`;
  }
}

function select(column) {
  if (state.latent === column) return;
  state.latent = column;
  changed("selection");
}
function drawSelection() {
  for (const [column, { row }] of sliders) row.classList.toggle("selected", column === state.latent);
  for (const strip of byId("strips").children)
    strip.classList.toggle("selected", Number(strip.dataset.column) === state.latent);
}
