"use strict";
// A row for each latent: the images along its values, all others as they are. The large image follows the mouse.

const STRIP = 9;
const FEW = 10; // rows, until more are asked for
let strips = []; // { unit, values, canvases by stage }

function buildStrips() {
  forget("strip ");
  const { latents, stages } = model();
  const active = units().filter((unit) => unit.active);
  const shown = state.all ? units() : (active.length ? active : units()).slice(0, FEW);
  strips = shown.map((unit) => {
    const latent = latents[unit.column];
    const isCategory = unit.columns.length > 1;
    const count = isCategory ? unit.columns.length : STRIP;
    const low = latent.centre - 2 * latent.scale, high = latent.centre + 2 * latent.scale;
    const values = Array.from({ length: count }, (_, i) => (isCategory ? i : low + ((high - low) * i) / (count - 1)));
    const canvases = new Map();
    const reached = stages.filter((stage) => latent.reaches.includes(stage));
    const box = element("div", {
      class: "strip-images", tabindex: 0, role: "slider", "aria-label": `Traversal of ${unitTitle(unit)}`,
      "aria-valuemin": values[0], "aria-valuemax": values[count - 1],
    });
    box.style.maxWidth = `${count * (isImages ? 107 : 140)}px`;
    for (const stage of reached) {
      const tiles = Array.from({ length: count }, () => {
        const canvas = observationCanvas("", 64);
        canvas.removeAttribute("role");
        canvas.style.width = "";
        return canvas;
      });
      canvases.set(stage, tiles);
      const line = element("div", { class: "strip-line" }, ...tiles);
      if (stages.length > 1) line.dataset.stage = stage;
      box.append(line);
    }
    const mark = element("div", { class: "mark", "aria-hidden": "true" });
    box.append(mark);
    const strip = { unit, values, canvases, box, mark, isCategory, low, high, count };
    follow(strip);
    strip.row = element("div", { class: "strip", "data-column": unit.column },
      element("button", { type: "button", class: "label", text: unitTitle(unit), onclick: () => select(unit.column) }), box);
    return strip;
  });
  byId("strips").replaceChildren(...strips.map(({ row }) => row));
  const hidden = units().length - shown.length;
  byId("more-button").hidden = !state.all && hidden <= 0;
  byId("more-button").textContent = state.all ? "Show fewer" : `Show all ${units().length} latents`;
}

// The value at a position within a strip: the middle of the first tile is the first value.
function valueAt(strip, event) {
  const bounds = strip.box.getBoundingClientRect();
  const share = clamp((event.clientX - bounds.left) / bounds.width, 0, 1);
  if (strip.isCategory) return Math.min(strip.count - 1, Math.floor(share * strip.count));
  const along = clamp((share * strip.count - 0.5) / (strip.count - 1), 0, 1);
  return strip.low + along * (strip.high - strip.low);
}
function codeWith(unit, value, code = state.code) {
  const result = Float32Array.from(code);
  if (unit.columns.length > 1) unit.columns.forEach((column, i) => (result[column] = i === value ? 1 : 0));
  else result[unit.column] = value;
  return result;
}

function follow(strip) {
  const { box, unit } = strip;
  const show = (event) => {
    preview = codeWith(unit, valueAt(strip, event));
    drawDecoded();
    drawSliders();
    drawMarks(preview);
  };
  const keep = (value) => {
    state.code = codeWith(unit, value);
    preview = null;
    state.latent = unit.column;
    changed("code", unit.column);
    changed("selection");
  };
  box.addEventListener("pointermove", show);
  box.addEventListener("pointerleave", () => {
    preview = null;
    drawDecoded();
    drawSliders();
    drawMarks();
  });
  box.addEventListener("click", (event) => keep(valueAt(strip, event)));
  box.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    if (strip.isCategory) {
      const now = unit.columns.findIndex((column) => state.code[column] === 1);
      keep(clamp(now + by, 0, strip.count - 1));
    } else keep(clamp(state.code[unit.column] + (by * (strip.high - strip.low)) / 40, strip.low, strip.high));
  });
}

function drawMarks(code = state.code) {
  for (const strip of strips) {
    const now = strip.isCategory
      ? strip.unit.columns.findIndex((column) => code[column] === 1)
      : ((code[strip.unit.column] - strip.low) / (strip.high - strip.low)) * (strip.count - 1);
    strip.mark.style.left = `${(clamp(now + 0.5, 0, strip.count) / strip.count) * 100}%`;
    const value = strip.isCategory ? now : code[strip.unit.column];
    strip.box.setAttribute("aria-valuenow", strip.isCategory ? value : shortNumber(value));
  }
}

// All tiles but those of the latent that just moved, whose row does not depend on its own value.
function drawStrips(except = -1) {
  strips.forEach(({ unit, values, canvases }, row) => {
    if (unit.column === except) return;
    values.forEach((value, i) => {
      decode(`strip ${row} ${i}`, codeWith(unit, value), state.noise, (outputs) => {
        for (const [stage, tiles] of canvases) if (tiles[i]) draw(tiles[i], outputs[stage]);
      });
    });
  });
  drawMarks();
}

function connectStrips() {
  byId("more-button").addEventListener("click", () => {
    state.all = !state.all;
    buildStrips();
    drawStrips();
    drawSelection();
    writeLink();
  });
}
