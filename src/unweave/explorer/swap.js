"use strict";
// Latent j of image A in image B, for every latent that is in use.

const MOST_SWAPS = 24;

function buildSwap() {
  fit(byId("swap-a"), 96);
  fit(byId("swap-b"), 96);
  forget("swap ");
  const active = units().filter((unit) => unit.active);
  const used = (active.length ? active : units()).slice(0, MOST_SWAPS);
  byId("swap-tiles").replaceChildren(...used.map((unit) => {
    const canvas = observationCanvas("", 64);
    canvas.setAttribute("aria-hidden", "true");
    const tile = element("button", {
      type: "button", class: "tile", "data-column": unit.column, "aria-label": `B with ${unitTitle(unit)} of A`,
      onclick: () => {
        opening = null;
        state.start = state.b;
        state.posterior = model().encoded ? posteriorOf(state.b) : null;
        state.code = swapped(unit);
        [state.noise, state.noiseChanged] = [noiseOf(state.b), model().encoded]; // as in the tile
        state.latent = unit.column;
        preview = null;
        changed("start");
      },
    }, canvas, element("span", { text: unitTitle(unit) }));
    tile.unit = unit;
    return tile;
  }));
}

function swapped(unit) {
  const code = wholeCode(codeOf(state.b)), from = wholeCode(codeOf(state.a));
  for (const column of unit.columns) code[column] = from[column];
  return code;
}

function drawSwap() {
  drawRow(byId("swap-a"), state.a, "swap a");
  drawRow(byId("swap-b"), state.b, "swap b");
  for (const tile of byId("swap-tiles").children)
    decode(`swap ${tile.unit.column}`, swapped(tile.unit), noiseOf(state.b), (outputs) =>
      draw(tile.querySelector("canvas"), lastStage(outputs)));
}

function connectSwap() {
  for (const key of ["a", "b"])
    byId(`swap-pick-${key}`).addEventListener("click", () =>
      pick(`Pick ${key.toUpperCase()}`, (row) => {
        state[key] = row;
        drawSwap();
        writeLink();
      }));
}
