"use strict";
// Two models side by side, from the same image: each latent beside the one of the other model that it is matched with.

const PAIR = 7; // images of each
const MOST_PAIRS = 10;
let pairRows = [];

function buildCompare() {
  byId("compare").hidden = models.length < 2;
  pairRows = [];
  if (models.length < 2) return;
  forget("pair ");
  if (state.other === state.model || state.other >= models.length) state.other = state.model === 0 ? 1 : 0;
  byId("compare-label").hidden = models.length < 3;
  byId("compare-other").replaceChildren(...models.map((_, index) => index).filter((index) => index !== state.model)
    .map((index) => element("option", { value: index, text: modelTitle(index) })));
  byId("compare-other").value = String(state.other);
  const pairs = content.matches[state.model][state.other];
  const used = pairs.filter(({ one, other }) =>
    models[state.model].latents[one].active || models[state.other].latents[other].active).slice(0, MOST_PAIRS);
  byId("compare-note").textContent = pairs.length
    ? "Latents are matched so that the sum of the absolute correlations of their codes is largest. Where a correlation " +
      "is negative, the row of the second model runs the other way round."
    : "Latents cannot be matched: a model does not encode images.";
  const head = element("div", { class: "pair head" },
    element("h3", { text: modelTitle(state.model) }), element("span"), element("h3", { text: modelTitle(state.other) }));
  pairRows = used.map((pair, row) => {
    const sides = [[state.model, pair.one], [state.other, pair.other]].map(([index, column]) => {
      const tiles = Array.from({ length: PAIR }, () => {
        const canvas = observationCanvas("", 48);
        canvas.removeAttribute("role");
        canvas.style.width = "";
        return canvas;
      });
      const label = element("span", { class: "label" }, titleOf(column, index),
        element("small", { class: "of-model", text: ` ${modelTitle(index)}` })); // where there is no room for two columns
      return { index, column, tiles, box: element("div", { class: "side" }, label, element("div", { class: "strip-line" }, ...tiles)) };
    });
    const r = element("span", { class: "correlation", text: `r = ${pair.correlation.toFixed(2)}` });
    return { pair, row, sides, line: element("div", { class: "pair", "data-one": pair.one, "data-other": pair.other }, sides[0].box, r, sides[1].box) };
  });
  byId("pairs").replaceChildren(head, ...pairRows.map(({ line }) => line));
}

function drawCompare() {
  for (const { pair, row, sides } of pairRows)
    sides.forEach(({ index, column, tiles }, side) => {
      const latent = models[index].latents[column];
      const base = index === state.model ? state.code : otherCode(index);
      if (!base) return;
      const sign = side === 1 && pair.correlation < 0 ? -1 : 1;
      tiles.forEach((canvas, i) => {
        const code = Float32Array.from(base);
        code[column] = latent.centre + sign * latent.scale * (-2 + (4 * i) / (PAIR - 1));
        decode(`pair ${row} ${side} ${i}`, code, noiseOf(0, index), (outputs) => draw(canvas, lastStage(outputs, index)),
          { index });
      });
    });
}

// The code of the start image in another model; of the user's image, as soon as it is there.
let ownElsewhere = { values: null, index: -1, code: null };
function otherCode(index) {
  if (typeof state.start === "number") return wholeCode(codeOf(state.start, index), index);
  if (state.start !== "own") return wholeCode(models[index].latents.map(({ centre }) => centre), index);
  if (ownElsewhere.values === state.own.values && ownElsewhere.index === index) return ownElsewhere.code;
  const { values } = state.own;
  run("own elsewhere", index, "encode", [values], ({ mean }) => {
    ownElsewhere = { values, index, code: wholeCode(mean, index) };
    drawCompare();
  });
  return null;
}

// The name of a model; of several with the same name, with what sets it apart from them.
function modelTitle(index) {
  const title = (one) => {
    const alike = models.filter(({ name }) => name === one.name).map(({ detail }) => detail.split(", "));
    const apart = one.detail.split(", ").filter((part) => !alike.every((parts) => parts.includes(part)));
    return [one.name, ...apart].join(", ");
  };
  const own = title(models[index]);
  return models.filter((one) => title(one) === own).length > 1 ? `${own}, ${index + 1}` : own;
}

function connectCompare() {
  byId("compare-other").addEventListener("change", () => {
    state.other = Number(byId("compare-other").value);
    buildCompare();
    drawCompare();
    writeLink();
  });
}
