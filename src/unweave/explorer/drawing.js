"use strict";
// Observations on canvases: images pixel by pixel, other arrays as curves. Colours for factors.

const isImages = observations.kind === "images";
const [imageHeight, imageWidth, imageChannels] = isImages ? observations.shape : [64, 80, 1];
let sheet = null; // all images of the data set in one picture

function loadSheet() {
  if (!isImages) return Promise.resolve();
  return new Promise((resolve) => {
    sheet = new Image();
    sheet.onload = resolve;
    sheet.onerror = resolve;
    sheet.src = observations.sheet;
  });
}

// A canvas for one observation, shown at about `side` pixels.
function observationCanvas(label, side) {
  const canvas = element("canvas", { role: "img", "aria-label": label, class: "observation" });
  fit(canvas, side);
  return canvas;
}
function fit(canvas, side) {
  canvas.classList.add("observation");
  canvas.width = isImages ? imageWidth : side * 1.25 * 2;
  canvas.height = isImages ? imageHeight : side * 2;
  canvas.style.width = `${isImages ? Math.round((side * imageWidth) / Math.max(imageWidth, imageHeight)) : side * 1.25}px`;
  canvas.style.aspectRatio = `${canvas.width} / ${canvas.height}`;
}

// Draw values as a decoder gives them: channels first, images in [0, 1].
function draw(canvas, values, x = 0, y = 0) {
  const context = canvas.getContext("2d");
  if (!isImages) return drawCurve(context, values, 0, 0, canvas.width, canvas.height);
  context.putImageData(pixels(values), x, y);
}
function pixels(values) {
  const plane = imageHeight * imageWidth;
  const data = new ImageData(imageWidth, imageHeight);
  for (let i = 0; i < plane; i++) {
    for (let channel = 0; channel < 3; channel++)
      data.data[4 * i + channel] = 255 * values[imageChannels === 3 ? channel * plane + i : i] + 0.5;
    data.data[4 * i + 3] = 255;
  }
  return data;
}

function drawCurve(context, values, left, top, width, height) {
  const { lines, low, high } = observations;
  const points = values.length / lines;
  const style = getComputedStyle(document.documentElement);
  context.fillStyle = style.getPropertyValue("--canvas");
  context.fillRect(left, top, width, height);
  const at = (value) => top + height - ((value - low) / (high - low)) * height;
  if (low < 0 && high > 0) {
    context.strokeStyle = style.getPropertyValue("--line");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(left, at(0));
    context.lineTo(left + width, at(0));
    context.stroke();
  }
  context.lineWidth = Math.max(1.5, width / 90);
  for (let line = 0; line < lines; line++) {
    context.strokeStyle = lines === 1 ? style.getPropertyValue("--accent") : PALETTE[line % PALETTE.length];
    context.beginPath();
    for (let point = 0; point < points; point++) {
      const x = left + ((point + 0.5) / points) * width;
      const y = clamp(at(values[point * lines + line]), top, top + height);
      if (point) context.lineTo(x, y);
      else context.moveTo(x, y);
    }
    context.stroke();
  }
}

// Draw an observation of the data set; of a model without an encoder, what it decodes to.
function drawRow(canvas, row, key, index = state.model) {
  if (!models[index].encoded) {
    decode(key, wholeCode(codeOf(row, index), index), noiseOf(row, index), (outputs) =>
      draw(canvas, lastStage(outputs, index)), { index });
    return;
  }
  if (!isImages) {
    const size = observations.shape.reduce((a, b) => a * b, 1);
    draw(canvas, array(observations.values).subarray(row * size, (row + 1) * size));
    return;
  }
  const { columns } = observations;
  const context = canvas.getContext("2d");
  context.drawImage(sheet, (row % columns) * imageWidth, Math.floor(row / columns) * imageHeight,
    imageWidth, imageHeight, 0, 0, canvas.width, canvas.height);
}
const lastStage = (outputs, index = state.model) => outputs[models[index].stages[models[index].stages.length - 1]];

// --- colours --------------------------------------------------------------------------------------
// Okabe and Ito's colours for categories, a part of viridis for what has an order: both also for colour-blind people.

const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d31", "#7b5ea7",
  "#999999", "#b8c400", "#a8325a", "#2bb5a0"];
const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

// The end that is as dark, or as light, as the page itself is left out.
function ramp(share) {
  const [first, last] = isDark() ? [0.28, 1] : [0, 0.92];
  const at = (first + (last - first) * clamp(share, 0, 1)) * (RAMP.length - 1);
  const low = Math.min(Math.floor(at), RAMP.length - 2);
  const mix = RAMP[low].map((value, channel) => value + (at - low) * (RAMP[low + 1][channel] - value));
  return `rgb(${mix.map(Math.round).join(",")})`;
}
function factorColor(factor, value) {
  const { categorical, range } = factors[factor];
  if (Number.isNaN(value)) return getComputedStyle(document.documentElement).getPropertyValue("--hill");
  if (categorical) return PALETTE[value % PALETTE.length];
  return ramp(range[1] > range[0] ? (value - range[0]) / (range[1] - range[0]) : 0.5);
}

// --- plots ----------------------------------------------------------------------------------------

// A canvas's context in CSS pixels, cleared, with room for axes.
function plotContext(canvas) {
  const width = canvas.clientWidth || 320, height = canvas.clientHeight || 240;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  context.fillStyle = color("--canvas");
  context.fillRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  return { context, color, width, height, left: 40, right: width - 10, top: 10, bottom: height - 34 };
}

function axes(plot, [x0, x1], [y0, y1], across, up, ticks = {}) {
  const { context, color, left, right, top, bottom } = plot;
  const toX = (x) => left + ((x - x0) / (x1 - x0 || 1)) * (right - left);
  const toY = (y) => bottom - ((y - y0) / (y1 - y0 || 1)) * (bottom - top);
  context.strokeStyle = color("--line");
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, top + 0.5, right - left, bottom - top);
  context.fillStyle = color("--quiet");
  context.textAlign = "center";
  for (const [value, text] of ticks.x ?? niceTicks(x0, x1)) context.fillText(text, toX(value), bottom + 14, 70);
  context.fillText(across, (left + right) / 2, bottom + 29, right - left);
  context.textAlign = "right";
  for (const [value, text] of ticks.y ?? niceTicks(y0, y1)) context.fillText(text, left - 5, toY(value) + 4, 34);
  context.save();
  context.translate(11, (top + bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.fillText(up, 0, 0, bottom - top);
  context.restore();
  return { toX, toY, fromX: (px) => x0 + ((px - left) / (right - left)) * (x1 - x0),
    fromY: (py) => y0 + ((bottom - py) / (bottom - top)) * (y1 - y0) };
}
function niceTicks(low, high) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / 4));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => span / one <= 5);
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9; value += step)
    ticks.push([value, String(Number(value.toFixed(6)))]);
  return ticks;
}
