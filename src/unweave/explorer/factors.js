"use strict";
// Which latent tells about which factor; a click shows the two for real images.

const MEASURES = {
  mutual_information: ["Mutual information", "share of a factor's entropy that a latent tells, less what chance gives"],
  importance: ["DCI importance", "share of a latent in predicting a factor by boosted trees"],
};
let relationPoints = [];

function buildFactors() {
  const section = byId("factors");
  const matrices = model().matrices;
  const measures = Object.keys(matrices);
  section.hidden = !model().encoded;
  section.classList.toggle("empty", !factors.length);
  byId("measures").hidden = byId("matrix").hidden = !measures.length;
  byId("relation").hidden = !factors.length;
  if (!factors.length) {
    byId("factors-note").textContent =
      "This data set has no factors. Give your folder a table factors.csv to see how latents relate to them.";
    return;
  }
  if (!measures.length) {
    byId("factors-note").textContent = "There are too few images with labels to measure how latents depend on factors.";
    return;
  }
  if (!measures.includes(state.measure)) state.measure = measures[0];
  byId("factors-note").textContent = `${MEASURES[state.measure][1]}: choose a cell to see both for real images.`
    .replace(/^./, (letter) => letter.toUpperCase());
  byId("measures").replaceChildren(...measures.map((measure) =>
    element("button", {
      type: "button", role: "radio", "aria-checked": String(measure === state.measure), text: MEASURES[measure][0],
      onclick: () => {
        state.measure = measure;
        changed("factors");
      },
    })));
  byId("matrix").replaceChildren(matrixTable(array(matrices[state.measure])));
}

function matrixTable(matrix) {
  const head = element("tr", {}, element("td"), ...factors.map(({ name }) => element("th", { scope: "col", text: name })));
  const shown = units().flatMap((unit) => unit.columns);
  const rows = shown.map((column) => {
    const latent = model().latents[column];
    const active = latent.category || latent.active;
    const cells = factors.map(({ name }, factor) => {
      const value = matrix[column * factors.length + factor];
      const cell = element("button", {
        type: "button", class: "cell", text: value.toFixed(2),
        "aria-label": `${titleOf(column)} and ${name}: ${value.toFixed(2)}`,
        "data-column": column, "data-factor": factor,
        onclick: () => {
          state.latent = column;
          state.factor = factor;
          changed("selection");
        },
      });
      cell.style.setProperty("--share", clamp(value, 0, 1));
      return element("td", {}, cell);
    });
    return element("tr", { class: active ? "" : "inactive" },
      element("th", { scope: "row", text: titleOf(column) }), ...cells);
  });
  return element("table", { class: "matrix" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

// The selected latent's code against the selected factor, a point for each image.
function drawRelation() {
  if (!factors.length || !model().encoded) return;
  for (const cell of byId("matrix").querySelectorAll(".cell"))
    cell.classList.toggle("selected",
      Number(cell.dataset.column) === state.latent && Number(cell.dataset.factor) === state.factor);
  const canvas = byId("relation-plot");
  const factor = factors[state.factor], latent = model().latents[state.latent];
  const plot = plotContext(canvas);
  const count = rowsOf(state.model);
  const discrete = !factor.continuous && factor.range[1] - factor.range[0] < 50;
  const margin = discrete ? 0.6 : 0.03 * (factor.range[1] - factor.range[0]);
  const spanX = [factor.range[0] - margin, factor.range[1] + margin];
  const ticks = factor.values.length && factor.values.length <= 12
    ? { x: factor.values.map((text, value) => [value, text]) }
    : discrete ? { x: niceTicks(...spanX).filter(([value]) => Number.isInteger(value)) } : {};
  const { toX, toY } = axes(plot, spanX, [latent.low, latent.high], factor.name, titleOf(state.latent), ticks);
  relationPoints = [];
  const sums = new Map();
  for (let row = 0; row < count; row++) {
    const value = factorValue(row, state.factor), code = codeOf(row)[state.latent];
    // Points of one value beside each other: an even spread that is the same at every drawing.
    const jitter = discrete ? (((row * 0.618034) % 1) - 0.5) * 0.7 : 0;
    const x = toX(value + jitter), y = toY(clamp(code, latent.low, latent.high));
    relationPoints.push([x, y]);
    if (Number.isNaN(value)) continue; // not labelled
    plot.context.fillStyle = factorColor(state.factor, value);
    plot.context.globalAlpha = 0.6;
    plot.context.beginPath();
    plot.context.arc(x, y, 2.4, 0, 7);
    plot.context.fill();
    if (discrete) sums.set(value, [...(sums.get(value) ?? []), code]);
  }
  plot.context.globalAlpha = 1;
  plot.context.strokeStyle = plot.color("--ink");
  plot.context.lineWidth = 2;
  for (const [value, codes] of sums) {
    const y = toY(codes.reduce((a, b) => a + b, 0) / codes.length);
    plot.context.beginPath();
    plot.context.moveTo(toX(value - 0.35), y);
    plot.context.lineTo(toX(value + 0.35), y);
    plot.context.stroke();
  }
  markStart(plot, relationPoints);
  canvas.setAttribute("aria-label",
    `${titleOf(state.latent)} against ${factor.name} for ${count} images. Arrow keys go to other images.`);
  byId("relation-note").textContent =
    `${titleOf(state.latent)} against ${factor.name}: a point is an image${discrete ? ", a line the mean" : ""}. Click one to start from it.`;
}

function markStart({ context, color }, points) {
  if (typeof state.start !== "number" || !points[state.start]?.every(Number.isFinite)) return;
  context.strokeStyle = color("--ink");
  context.lineWidth = 2;
  context.beginPath();
  context.arc(...points[state.start], 6, 0, 7);
  context.stroke();
}

function nearest(points, canvas, event) {
  const bounds = canvas.getBoundingClientRect();
  const x = event.clientX - bounds.left, y = event.clientY - bounds.top;
  let best = -1, least = Infinity;
  points.forEach(([px, py], row) => {
    const distance = (px - x) ** 2 + (py - y) ** 2;
    if (distance < least) [best, least] = [row, distance];
  });
  return best;
}

function connectFactors() {
  const canvas = byId("relation-plot");
  canvas.addEventListener("click", (event) => {
    const row = nearest(relationPoints, canvas, event);
    if (row >= 0) startFrom(row);
  });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const count = rowsOf(state.model);
    startFrom((((typeof state.start === "number" ? state.start : 0) + by) % count + count) % count);
  });
}
