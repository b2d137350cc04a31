"use strict";
// The large image: a start from the data set or from the user, and what the model makes of the present code.

let preview = null; // a code that the mouse shows and nobody has chosen yet
const large = new Map(); // canvases by what they show

function buildImages() {
  const pictures = byId("pictures");
  pictures.replaceChildren();
  large.clear();
  const add = (key, caption) => {
    const canvas = observationCanvas(caption, model().stages.length > 1 ? 104 : 160);
    large.set(key, canvas);
    pictures.append(element("figure", { class: "picture" }, canvas, element("figcaption", { text: caption })));
  };
  if (model().encoded) add("start", "start");
  const { stages } = model();
  for (const stage of stages) add(`stage ${stage}`, stages.length > 1 ? stage : "decoded");
  byId("open-button").hidden = !model().encoder;
  byId("pick-button").textContent = model().encoded ? "Pick…" : "Pick a sample…";
}

function drawImages() {
  const start = large.get("start");
  if (start && state.start === "own") draw(start, state.own.values);
  else if (start && state.start === "mean") start.getContext("2d").clearRect(0, 0, start.width, start.height);
  else if (start) drawRow(start, state.start, "start");
  drawDecoded();
  noteStart();
}
function drawDecoded() {
  const code = preview ?? state.code;
  decode("large", code, state.noise, (outputs) => {
    for (const stage of model().stages) {
      const canvas = large.get(`stage ${stage}`);
      if (canvas && outputs[stage]) draw(canvas, outputs[stage]);
    }
    byId("pictures").dataset.drawn = String(Number(byId("pictures").dataset.drawn ?? 0) + 1);
  }, { urgent: true });
}

function noteStart() {
  const note = byId("picture-note");
  if (state.start === "own") note.textContent = `Yours: ${state.own.name}`;
  else if (state.start === "mean") note.textContent = moved() ? "A code without an image." : "The centre of the codes.";
  else if (!model().encoded) note.textContent = `Sample ${state.start + 1} of the prior.`;
  else {
    const facts = factors.map(({ name }, factor) => `${name} ${factorText(factor, factorValue(state.start, factor))}`);
    const file = observations.files[state.start];
    note.textContent = [`Image ${state.start + 1} of ${observations.count}`, ...(file ? [file] : []), ...facts].join(" · ");
  }
}

// --- choosing a start -----------------------------------------------------------------------------

let opening = null; // the user's image while it is read and encoded, unless another start is chosen meanwhile

function startFrom(row) {
  opening = null;
  state.start = row;
  state.posterior = model().encoded && row !== "mean" ? posteriorOf(row) : null;
  state.code = startCode();
  if (!model().encoded) [state.noise, state.noiseChanged] = [startNoise(), false];
  preview = null;
  changed("start");
}

function startFromOwn(name, values) {
  say("");
  opening = null;
  if (!model().encoder) return;
  const asked = (opening = { name, values });
  run("own", state.model, "encode", [values], ({ mean, log_variance: log }) => {
    if (opening !== asked) return;
    opening = null;
    state.own = asked;
    state.start = "own";
    state.posterior = { mean, deviation: log.map((value) => Math.exp(0.5 * value)) };
    state.code = wholeCode(mean);
    preview = null;
    changed("start");
  }, true);
}

// A file of the user, as from_folder would read it: upright, on white, cut around the centre, Lanczos.
async function openFile(file) {
  if (!file) return;
  const asked = (opening = { name: file.name });
  try {
    asked.values = isImages ? readImage(await createImageBitmap(file)) : readVector(await file.text());
  } catch (error) {
    const what = isImages ? "an image that this browser reads" : `a file of ${observations.shape.join(" × ")} numbers`;
    say(`${file.name} is not ${what}. ${error instanceof RangeError ? error.message : ""}`.trim());
  }
  if (opening !== asked) return;
  opening = null;
  if (asked.values) startFromOwn(asked.name, asked.values);
}

function readVector(text) {
  const values = text.split(/[\s,;]+/).filter(Boolean).map(Number);
  const needed = observations.shape.reduce((a, b) => a * b, 1);
  if (values.length !== needed || !values.every(Number.isFinite))
    throw new RangeError(`It has ${values.length} numbers; needed are ${needed}.`);
  return Float32Array.from(values);
}

function readImage(picture) {
  const aspect = imageWidth / imageHeight;
  const width = clamp(Math.round(picture.height * aspect), 1, picture.width);
  const height = clamp(Math.round(picture.width / aspect), 1, picture.height);
  const canvas = element("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.drawImage(picture, -Math.floor((picture.width - width) / 2), -Math.floor((picture.height - height) / 2));
  const { data } = context.getImageData(0, 0, width, height);
  const values = new Float32Array(imageChannels * imageHeight * imageWidth);
  for (let channel = 0; channel < imageChannels; channel++) {
    const plane = new Float64Array(width * height);
    for (let i = 0; i < plane.length; i++)
      plane[i] = imageChannels === 3
        ? data[4 * i + channel]
        : Math.floor((data[4 * i] * 19595 + data[4 * i + 1] * 38470 + data[4 * i + 2] * 7471 + 0x8000) / 65536);
    const wide = resample(plane, width, height, imageWidth);
    const small = transpose(resample(transpose(wide, imageWidth, height), height, imageWidth, imageHeight),
      imageHeight, imageWidth);
    values.set(small.map((value) => value / 255), channel * imageHeight * imageWidth);
  }
  return values;
}

// Each row of `plane` (height, width) at another width, by the Lanczos filter of three lobes, rounded to bytes.
function resample(plane, width, height, target) {
  if (width === target) return plane;
  const scale = width / target, reach = 3 * Math.max(scale, 1), stretch = Math.max(scale, 1);
  const sinc = (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
  const result = new Float64Array(target * height);
  for (let x = 0; x < target; x++) {
    const centre = (x + 0.5) * scale;
    const from = Math.max(0, Math.floor(centre - reach + 0.5)), to = Math.min(width, Math.floor(centre + reach + 0.5));
    const weights = [];
    let total = 0;
    for (let i = from; i < to; i++) {
      const at = (i + 0.5 - centre) / stretch;
      const weight = Math.abs(at) < 3 ? sinc(at) * sinc(at / 3) : 0;
      weights.push(weight);
      total += weight;
    }
    for (let y = 0; y < height; y++) {
      let sum = 0;
      for (let i = from; i < to; i++) sum += weights[i - from] * plane[y * width + i];
      result[y * target + x] = clamp(Math.round(sum / total), 0, 255);
    }
  }
  return result;
}
function transpose(plane, width, height) {
  const result = new Float64Array(plane.length);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) result[x * height + y] = plane[y * width + x];
  return result;
}

// --- the picker -----------------------------------------------------------------------------------

const picker = { page: 0, done: null, perPage: 48 };

function pick(heading, done) {
  picker.done = done;
  byId("picker-heading").textContent = heading;
  showPickerPage();
  byId("picker").showModal();
}
function showPickerPage() {
  const count = rowsOf(state.model), pages = Math.ceil(count / picker.perPage);
  picker.page = (picker.page + pages) % pages;
  const from = picker.page * picker.perPage, to = Math.min(count, from + picker.perPage);
  forget("pick ");
  const buttons = [];
  for (let row = from; row < to; row++) {
    const canvas = observationCanvas("", 56);
    canvas.setAttribute("aria-hidden", "true");
    drawRow(canvas, row, `pick ${row}`);
    const click = () => {
      byId("picker").close();
      picker.done(row);
    };
    const file = model().encoded ? observations.files[row] : undefined;
    const label = file ? `Image ${row + 1}: ${file}` : `Image ${row + 1}`;
    buttons.push(element("button", { type: "button", class: "tile", "aria-label": label, title: file, onclick: click }, canvas));
  }
  byId("picker-images").replaceChildren(...buttons);
  byId("picker-page").textContent = `${from + 1} to ${to} of ${count}`;
  byId("picker-previous").disabled = byId("picker-next").disabled = pages < 2;
}

function connectImages() {
  byId("random-button").addEventListener("click", () => {
    const count = rowsOf(state.model);
    const before = typeof state.start === "number" ? state.start : 0;
    startFrom((before + 1 + Math.floor(Math.random() * (count - 1))) % count); // never the same again
  });
  byId("pick-button").addEventListener("click", () => pick("Pick an image", startFrom));
  byId("reset-button").addEventListener("click", () => {
    state.code = startCode();
    preview = null;
    changed("code");
  });
  byId("open-button").addEventListener("click", () => byId("file").click());
  byId("file").setAttribute("accept", isImages ? "image/*" : ".csv,.txt");
  byId("file").addEventListener("change", () => {
    openFile(byId("file").files[0]);
    byId("file").value = "";
  });
  byId("picker-previous").addEventListener("click", () => (picker.page--, showPickerPage()));
  byId("picker-next").addEventListener("click", () => (picker.page++, showPickerPage()));
  const drop = byId("drop");
  let depth = 0;
  const show = (by) => (drop.hidden = !model().encoder || (depth = Math.max(0, depth + by)) === 0);
  addEventListener("dragenter", (event) => (event.preventDefault(), show(1)));
  addEventListener("dragleave", () => show(-1));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    drop.hidden = true;
    if (model().encoder) openFile(event.dataTransfer.files[0]);
  });
}
