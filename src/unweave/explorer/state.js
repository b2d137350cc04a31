"use strict";
// What the page shows now, in one object; its link; and the workers that run the models.

const content = JSON.parse(document.getElementById("content").textContent);
const observations = content.observations;
const models = content.models;
const byId = (id) => document.getElementById(id);

const state = {
  model: 0,
  start: 0, // a row of the data, or "own", or "mean"
  code: null, // Float32Array (D,) of the current model
  noise: null, // Float32Array (E,), if the model takes noise
  noiseChanged: false, // whether it is another one than that of the start
  posterior: null, // { mean, deviation } of the start image in the current model
  own: null, // the user's image: { name, values }
  latent: 0, // the selected one, a column
  factor: 0,
  measure: "",
  across: 0,
  up: 1,
  color: 0,
  a: 0,
  b: 1,
  other: 1,
  all: false, // whether all latents have a row of traversals
  theme: "",
  names: [], // of each model: what people call its latents, by label
};

const model = () => models[state.model];
const factors = observations.factors;
const hasFactors = factors.length > 0 && models.some((one) => one.encoded);

// An element with text, attributes and children; text is only ever text.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function say(text) {
  const message = byId("message");
  message.textContent = text;
  message.classList.toggle("shown", Boolean(text));
  if (text) message.scrollIntoView({ block: "nearest" }); // a file may be dropped anywhere on the page
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const shortNumber = (value) => (Object.is(Math.round(value * 100) / 100, -0) ? "0.00" : value.toFixed(2));

// --- latents and their names ----------------------------------------------------------------------

const nameOf = (column, index = state.model) => {
  const latent = models[index].latents[column];
  return state.names[index][latent.label] ?? latent.name;
};
const titleOf = (column, index = state.model) => {
  const name = nameOf(column, index);
  const label = models[index].latents[column].label;
  return name ? `${name} (${label})` : label;
};
const categoryOf = (column, index = state.model) =>
  models[index].categories.find((columns) => columns.includes(column));

// What moves by itself: categories first, then latents from the most used on.
function units(index = state.model) {
  const { latents, categories } = models[index];
  const single = latents.map((_, column) => column).filter((column) => !latents[column].category);
  single.sort((one, other) => latents[other].importance - latents[one].importance);
  return [
    ...categories.map((columns) => ({ column: columns[0], columns, active: true })),
    ...single.map((column) => ({ column, columns: [column], active: latents[column].active })),
  ];
}
const unitTitle = (unit, index = state.model) => {
  if (unit.columns.length === 1) return titleOf(unit.column, index);
  const { latents } = models[index];
  const last = unit.columns[unit.columns.length - 1];
  const label = `${latents[unit.column].label}–${latents[last].label}`;
  const name = nameOf(unit.column, index);
  return name ? `${name} (${label})` : label;
};

// --- arrays ---------------------------------------------------------------------------------------

let bytes = null;
const kept = new Map();
function array(number) {
  if (!kept.has(number)) kept.set(number, arrayOf(bytes, content.arrays[number]));
  return kept.get(number);
}
const rowsOf = (index) => content.arrays[models[index].codes].shape[0];
const codeOf = (row, index = state.model) => {
  const size = models[index].latents.length;
  return array(models[index].codes).subarray(row * size, (row + 1) * size);
};
function posteriorOf(row, index = state.model) {
  const size = models[index].latents.length;
  const log = array(models[index].log_variance).subarray(row * size, (row + 1) * size);
  return { mean: codeOf(row, index), deviation: log.map((value) => Math.exp(0.5 * value)) };
}
// The code of an image as a decoder takes it: of a category one value for certain.
function wholeCode(code, index = state.model) {
  const whole = Float32Array.from(code);
  for (const columns of models[index].categories) {
    const best = columns.reduce((one, other) => (code[other] > code[one] ? other : one), columns[0]);
    for (const column of columns) whole[column] = column === best ? 1 : 0;
  }
  return whole;
}
const noiseOf = (row, index = state.model) => {
  const number = models[index].noise;
  if (number === null) return null;
  const [count, size] = content.arrays[number].shape;
  const at = (row % count) * size;
  return array(number).slice(at, at + size);
};
const factorValue = (row, factor) => array(observations.factor_values)[row * factors.length + factor];
function factorText(factor, value) {
  const { values, continuous } = factors[factor];
  if (Number.isNaN(value)) return "unknown";
  return values[value] ?? (continuous ? String(Number(value.toPrecision(3))) : String(value));
}

// The factor that a latent tells most about.
function bestFactor(column) {
  const [matrix] = Object.values(model().matrices);
  if (matrix === undefined) return 0;
  const row = array(matrix).subarray(column * factors.length, (column + 1) * factors.length);
  return row.reduce((best, value, factor) => (value > row[best] ? factor : best), 0);
}

// --- running the models ---------------------------------------------------------------------------
// Jobs have a key: a newer job with the same key replaces the one that still waits. The large image goes first.

const runner = { workers: [], waiting: new Map(), local: null, number: 0 };

const WORKER = `
let programs = null;
onmessage = ({ data }) => {
  if (data.models) {
    programs = data.models.map((one) => ({
      encode: one.encoder && prepare(one.encoder, data.bytes, data.arrays),
      decode: prepare(one.decoder, data.bytes, data.arrays),
    }));
    postMessage({ ready: true });
  } else postMessage({ id: data.id, outputs: programs[data.model][data.what](...data.inputs) });
};`;

async function startRunner() {
  const [weights, others] = await Promise.all(["weights", "arrays"].map((id) => unpack(byId(id).textContent)));
  bytes = { weights, others };
  const setup = {
    bytes,
    arrays: content.arrays,
    models: models.map(({ encoder, decoder }) => ({ encoder, decoder })),
  };
  const count = (navigator.hardwareConcurrency || 1) >= 4 ? 2 : 1;
  try {
    const text = byId("kernels").textContent + WORKER;
    const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    runner.workers = await Promise.all(
      Array.from({ length: count }, () => startWorker(address, setup)),
    );
  } catch {
    // Some browsers allow no workers in files from disk: then the page itself computes.
    runner.local = setup.models.map((one) => ({
      encode: one.encoder && prepare(one.encoder, bytes, content.arrays),
      decode: prepare(one.decoder, bytes, content.arrays),
    }));
  }
}

function startWorker(address, setup) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(address);
    const entry = { worker, job: null };
    worker.onerror = (event) => {
      reject(new Error(event.message));
      entry.job = null;
      next();
    };
    worker.onmessage = ({ data }) => {
      if (data.ready) return resolve(entry);
      const { job } = entry;
      entry.job = null;
      next();
      job.done(data.outputs);
    };
    worker.postMessage(setup);
  });
}

// Run a model's "encode" or "decode"; `done` gets the outputs, unless a newer job of the same key comes first.
function run(key, index, what, inputs, done, urgent = false) {
  runner.waiting.delete(key);
  runner.waiting.set(key, { id: ++runner.number, model: index, what, inputs, done, urgent });
  next();
}
const decode = (key, code, noise, done, { index = state.model, urgent = false } = {}) =>
  run(key, index, "decode", noise ? [code, noise] : [code], done, urgent);

function forget(prefix) {
  for (const key of [...runner.waiting.keys()]) if (key.startsWith(prefix)) runner.waiting.delete(key);
}

function next() {
  if (runner.local) return nextHere();
  for (const entry of runner.workers) {
    if (entry.job || !runner.waiting.size) continue;
    entry.job = takeJob();
    const { id, model: index, what, inputs } = entry.job;
    entry.worker.postMessage({ id, model: index, what, inputs: inputs.map((input) => Float32Array.from(input)) });
  }
}

function takeJob() {
  let chosen = null;
  for (const [key, job] of runner.waiting) if (!chosen || (job.urgent && !chosen[1].urgent)) chosen = [key, job];
  runner.waiting.delete(chosen[0]);
  return chosen[1];
}

let scheduled = false;
function nextHere() {
  if (scheduled || !runner.waiting.size) return;
  scheduled = true;
  setTimeout(() => {
    scheduled = false;
    if (!runner.waiting.size) return;
    const job = takeJob();
    job.done(runner.local[job.model][job.what](...job.inputs));
    nextHere();
  }, 0);
}

// --- the link -------------------------------------------------------------------------------------
// The state is in the part of the address after #: a link is a view.

function readLink() {
  const link = new URLSearchParams(location.hash.slice(1));
  const whole = (name, count, otherwise) => {
    const value = Number(link.get(name) ?? NaN);
    return Number.isInteger(value) && value >= 0 && value < count ? value : otherwise;
  };
  state.model = whole("m", models.length, 0);
  const size = model().latents.length;
  state.start = link.get("i") === "mean" ? "mean" : whole("i", rowsOf(state.model), 0);
  const first = units().filter((unit) => unit.columns.length === 1);
  state.latent = whole("l", size, units()[0].column);
  state.factor = whole("f", Math.max(1, factors.length), bestFactor(state.latent));
  state.measure = link.get("d") ?? "";
  state.across = whole("x", size, first[0]?.column ?? 0);
  state.up = whole("y", size, first[1]?.column ?? first[0]?.column ?? 0);
  state.color = whole("c", Math.max(1, factors.length), bestFactor(state.across));
  state.a = whole("a", rowsOf(state.model), 0);
  state.b = whole("b", rowsOf(state.model), Math.min(1, rowsOf(state.model) - 1));
  state.other = whole("o", models.length, models.length > 1 ? (state.model === 0 ? 1 : 0) : 0);
  state.all = link.get("all") === "1";
  state.theme = ["dark", "light"].includes(link.get("t")) ? link.get("t") : "";
  state.names = models.map((one, index) => {
    const names = {};
    for (const { label } of one.latents) {
      const name = link.get(`n${index}.${label}`);
      if (name !== null) names[label] = name.slice(0, 100);
    }
    return names;
  });
  const given = numbers(link.get("e"));
  state.noise = startNoise();
  state.noiseChanged = Boolean(state.noise && given?.length === state.noise.length);
  if (state.noiseChanged) state.noise = given;
  const code = numbers(link.get("z"));
  return code?.length === size ? code : null;
}

function numbers(text) {
  if (!text) return null;
  const values = text.split("_").map(Number);
  return values.every(Number.isFinite) ? Float32Array.from(values) : null;
}

function link() {
  const parts = new URLSearchParams();
  const put = (name, value, otherwise) => {
    if (value !== otherwise) parts.set(name, value);
  };
  const first = units().filter((unit) => unit.columns.length === 1);
  put("m", state.model, 0);
  put("i", state.start === "own" ? "mean" : state.start, 0); // the user's image is in no link, only its code
  if (moved()) parts.set("z", Array.from(state.code, (value) => Number(value.toFixed(3))).join("_"));
  if (state.noise && state.noiseChanged)
    parts.set("e", Array.from(state.noise, (value) => Number(value.toFixed(2))).join("_"));
  put("l", state.latent, units()[0].column);
  put("f", state.factor, bestFactor(state.latent));
  put("d", state.measure, Object.keys(model().matrices)[0] ?? "");
  put("x", state.across, first[0]?.column ?? 0);
  put("y", state.up, first[1]?.column ?? first[0]?.column ?? 0);
  put("c", state.color, bestFactor(state.across));
  put("a", state.a, 0);
  put("b", state.b, Math.min(1, rowsOf(state.model) - 1));
  put("o", state.other, models.length > 1 ? (state.model === 0 ? 1 : 0) : 0);
  put("all", state.all ? "1" : "", "");
  put("t", state.theme, "");
  state.names.forEach((names, index) => {
    for (const [label, name] of Object.entries(names)) parts.set(`n${index}.${label}`, name);
  });
  return parts.toString();
}

// Whether the code is another one than that of the start.
function moved() {
  if (state.start === "own") return true;
  const start = startCode();
  return state.code.some((value, column) => Math.abs(value - start[column]) > 5e-4);
}
function startCode() {
  if (state.start === "own") return wholeCode(state.posterior.mean);
  if (state.start === "mean") return wholeCode(model().latents.map(({ centre }) => centre));
  return wholeCode(codeOf(state.start));
}

// A sample of the prior is a code with the noise that was drawn beside it; images have none of their own.
function startNoise() {
  return noiseOf(!model().encoded && typeof state.start === "number" ? state.start : 0);
}

let linkTimer = 0;
function writeLink() {
  clearTimeout(linkTimer);
  linkTimer = setTimeout(() => {
    try {
      history.replaceState(null, "", `#${link()}`);
    } catch {
      // A page within a notebook has no address of its own.
    }
  }, 150);
}
