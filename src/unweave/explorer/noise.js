"use strict";
// Noise of a method that generates from codes and noise: apart from the code, drawn anew or left out.

const NOISE_TILES = 8;
let noiseFirst = 0; // of the draws that are shown

function buildNoise() {
  const has = model().noise !== null;
  byId("noise").hidden = !has;
  forget("noise ");
  if (!has) return;
  byId("noise-note").textContent =
    `${state.noise.length} values that no latent stands for. The same code with other noise:`;
  byId("noise-tiles").replaceChildren(...Array.from({ length: NOISE_TILES }, (_, i) => {
    const canvas = observationCanvas("", 48);
    canvas.setAttribute("aria-hidden", "true");
    return element("button", {
      type: "button", class: "tile", "aria-label": `Noise ${i + 1}`,
      onclick: () => setNoise(noiseOf(noiseFirst + i)),
    }, canvas);
  }));
}

function drawNoise() {
  if (model().noise === null) return;
  [...byId("noise-tiles").children].forEach((tile, i) =>
    decode(`noise ${i}`, state.code, noiseOf(noiseFirst + i), (outputs) =>
      draw(tile.querySelector("canvas"), lastStage(outputs))));
}

function setNoise(noise) {
  state.noise = noise;
  state.noiseChanged = true;
  changed("noise");
}

function connectNoise() {
  byId("noise-button").addEventListener("click", () => {
    noiseFirst += NOISE_TILES;
    setNoise(noiseOf(noiseFirst));
  });
  byId("silence-button").addEventListener("click", () => setNoise(new Float32Array(state.noise.length)));
}
