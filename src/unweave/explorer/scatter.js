"use strict";
// The codes of all images in two latents, coloured by a factor; a click decodes that position.

let scatterPoints = [];
let scatterAxes = null;

function buildScatter() {
  const { latents } = model();
  const columns = units().flatMap((unit) => unit.columns);
  for (const [id, key] of [["scatter-x", "across"], ["scatter-y", "up"]]) {
    byId(id).replaceChildren(...columns.map((column) => element("option", { value: column, text: titleOf(column) })));
    if (state[key] >= latents.length) state[key] = columns[0];
    byId(id).value = String(state[key]);
  }
  const colored = hasFactors && model().encoded;
  byId("scatter-color-label").hidden = !colored;
  byId("scatter-color").replaceChildren(
    ...factors.map(({ name }, factor) => element("option", { value: factor, text: name })));
  byId("scatter-color").value = String(state.color);
  byId("scatter-note").textContent = model().encoded
    ? "Every point is an image. Click to decode there; double-click to start from the nearest image."
    : "Every point is a draw from the prior. Click to decode there.";
}

function drawScatter() {
  const canvas = byId("scatter-plot");
  const { latents, encoded } = model();
  const across = latents[state.across], up = latents[state.up];
  const plot = plotContext(canvas);
  scatterAxes = axes(plot, [across.low, across.high], [up.low, up.high], titleOf(state.across), titleOf(state.up));
  const { toX, toY } = scatterAxes;
  const { context, color } = plot;
  scatterPoints = [];
  for (let row = 0; row < rowsOf(state.model); row++) {
    const code = codeOf(row);
    const x = toX(clamp(code[state.across], across.low, across.high));
    const y = toY(clamp(code[state.up], up.low, up.high));
    scatterPoints.push([x, y]);
    context.fillStyle = encoded && factors.length ? factorColor(state.color, factorValue(row, state.color)) : color("--accent");
    context.globalAlpha = 0.65;
    context.beginPath();
    context.arc(x, y, 2.6, 0, 7);
    context.fill();
  }
  context.globalAlpha = 1;
  if (encoded) markStart(plot, scatterPoints);
  const x = toX(state.code[state.across]), y = toY(state.code[state.up]);
  context.strokeStyle = color("--ink");
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x - 8, y);
  context.lineTo(x + 8, y);
  context.moveTo(x, y - 8);
  context.lineTo(x, y + 8);
  context.stroke();
  drawLegend();
}

function drawLegend() {
  const legend = byId("legend");
  if (!factors.length || !model().encoded) return legend.replaceChildren();
  const { range, name, continuous, categorical } = factors[state.color];
  const count = range[1] - range[0] + 1;
  const whole = !continuous && (categorical || count <= PALETTE.length);
  const shown = whole
    ? Array.from({ length: Math.min(count, PALETTE.length) }, (_, i) => range[0] + i)
    : [range[0], (range[0] + range[1]) / 2, range[1]].map((value) => (continuous ? value : Math.round(value)));
  // Of more categories than colours some have the same: they stand beside the same dot.
  const texts = (value) => {
    const same = [];
    for (let one = value; one <= range[1]; one += PALETTE.length) same.push(factorText(state.color, one));
    return same.length > 3 ? `${same.slice(0, 3).join(", ")}, …` : same.join(", ");
  };
  legend.replaceChildren(
    element("span", { class: "quiet", text: name }),
    ...shown.map((value) => {
      const dot = element("span", { class: "dot" });
      dot.style.background = factorColor(state.color, value);
      return element("span", { class: "entry" }, dot, categorical ? texts(value) : factorText(state.color, value));
    }));
}

function moveTwo(x, y) {
  const { latents } = model();
  const put = (column, value) => (state.code[column] = clamp(value, latents[column].low, latents[column].high));
  put(state.across, x);
  put(state.up, y);
  preview = null;
  changed("code");
}

function connectScatter() {
  for (const [id, key] of [["scatter-x", "across"], ["scatter-y", "up"], ["scatter-color", "color"]])
    byId(id).addEventListener("change", () => {
      state[key] = Number(byId(id).value);
      drawScatter();
      writeLink();
    });
  const canvas = byId("scatter-plot");
  const go = (event) => {
    const bounds = canvas.getBoundingClientRect();
    moveTwo(scatterAxes.fromX(event.clientX - bounds.left), scatterAxes.fromY(event.clientY - bounds.top));
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture?.(event.pointerId);
    go(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) go(event);
  });
  canvas.addEventListener("dblclick", (event) => {
    const row = nearest(scatterPoints, canvas, event);
    if (row >= 0) startFrom(row);
  });
  canvas.addEventListener("keydown", (event) => {
    const { latents } = model();
    const step = (column) => (latents[column].high - latents[column].low) / 40;
    const [x, y] = [state.code[state.across], state.code[state.up]];
    const moves = {
      ArrowLeft: [x - step(state.across), y], ArrowRight: [x + step(state.across), y],
      ArrowUp: [x, y + step(state.up)], ArrowDown: [x, y - step(state.up)],
    };
    if (moves[event.key]) {
      event.preventDefault();
      moveTwo(...moves[event.key]);
    } else if (event.key === "Enter" && scatterPoints.length) {
      const bounds = canvas.getBoundingClientRect();
      startFrom(nearest(scatterPoints, canvas,
        { clientX: bounds.left + scatterAxes.toX(x), clientY: bounds.top + scatterAxes.toY(y) }));
    }
  });
}
