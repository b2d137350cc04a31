"use strict";
// Networks as lists of layers, executed on one observation at a time in typed arrays.
// The kinds of layers are described in layers.py, which writes the lists.

// --- arrays of the page ---------------------------------------------------------------------------

// The bytes of weights, or of all other arrays: base64 of raw deflate.
async function unpack(text) {
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).arrayBuffer();
}

// An array: see arrays.py.
function arrayOf({ weights, others }, entry) {
  const length = entry.shape.reduce((product, side) => product * side, 1);
  if (entry.kind === "f4") return new Float32Array(others, entry.start, length);
  if (entry.kind === "i4") return new Int32Array(others, entry.start, length);
  if (entry.kind === "u1") return new Uint8Array(others, entry.start, length);
  const rows = entry.shape[0];
  const width = rows ? length / rows : 0;
  const steps = new Float32Array(others, entry.steps, rows);
  const low = new Uint8Array(weights, entry.start, length);
  const high = new Int8Array(weights, weights.byteLength / 2 + entry.start, length);
  const result = new Float32Array(length);
  for (let row = 0, i = 0; row < rows; row++) {
    const step = steps[row];
    for (const stop = i + width; i < stop; i++) result[i] = (high[i] * 256 + low[i]) * step;
  }
  return result;
}

// --- functions of entries -------------------------------------------------------------------------

function erf(x) {
  // By its series for small |x|, and else by the continued fraction of erfc.
  const a = Math.abs(x);
  if (a < 2.5) {
    let term = a, sum = a;
    for (let n = 1; n < 60; n++) {
      term *= (-a * a) / n;
      sum += term / (2 * n + 1);
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let fraction = 0;
  for (let n = 40; n > 0; n--) fraction = n / 2 / (a + fraction);
  return Math.sign(x) * (1 - Math.exp(-a * a) / ((a + fraction) * Math.sqrt(Math.PI)));
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const halfToEven = (x) => (Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));

const MAPS = {
  relu: () => (x) => (x > 0 ? x : 0),
  leaky_relu: ({ negative_slope: slope }) => (x) => (x > 0 ? x : slope * x),
  sigmoid: () => sigmoid,
  tanh: () => Math.tanh,
  exp: () => Math.exp,
  log: () => Math.log,
  log1p: () => Math.log1p,
  expm1: () => Math.expm1,
  sqrt: () => Math.sqrt,
  rsqrt: () => (x) => 1 / Math.sqrt(x),
  reciprocal: () => (x) => 1 / x,
  neg: () => (x) => -x,
  abs: () => Math.abs,
  sin: () => Math.sin,
  cos: () => Math.cos,
  erf: () => erf,
  sign: () => Math.sign,
  floor: () => Math.floor,
  ceil: () => Math.ceil,
  round: () => halfToEven,
  trunc: () => Math.trunc,
  isfinite: () => (x) => (Number.isFinite(x) ? 1 : 0),
  logical_not: () => (x) => (x === 0 ? 1 : 0),
  clamp: ({ min = -Infinity, max = Infinity }) => (x) => (x < min ? min : x > max ? max : x),
  logit: ({ eps }) => (x) => {
    const p = eps === undefined ? x : Math.min(Math.max(x, eps), 1 - eps);
    return Math.log(p / (1 - p));
  },
  elu: ({ alpha = 1, scale = 1, input_scale: inner = 1 }) => (x) =>
    x > 0 ? scale * x : scale * alpha * Math.expm1(inner * x),
  softplus: ({ beta = 1, threshold = 20 }) => (x) =>
    beta * x > threshold ? x : Math.log1p(Math.exp(beta * x)) / beta,
  silu: () => (x) => x * sigmoid(x),
  gelu: ({ approximate }) =>
    approximate === "tanh"
      ? (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)))
      : (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
};

const PAIRS = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  rsub: (a, b) => b - a,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  pow: (a, b) => (b === 2 ? a * a : a ** b),
  max: Math.max,
  min: Math.min,
  logaddexp: (a, b) => {
    const most = Math.max(a, b);
    return most === -Infinity ? most : most + Math.log1p(Math.exp(-Math.abs(a - b)));
  },
  gt: (a, b) => +(a > b),
  ge: (a, b) => +(a >= b),
  lt: (a, b) => +(a < b),
  le: (a, b) => +(a <= b),
  eq: (a, b) => +(a === b),
  ne: (a, b) => +(a !== b),
};

// --- matrix products ------------------------------------------------------------------------------

// c (m, n) += a (m, k) b (k, n), from given starts. Blocks of 4 x 4 of (m, k) let each entry of b be used four times
// once it is read, and each of c take four products.
function multiply(a, b, c, m, k, n, aStart, bStart, cStart) {
  let i = 0;
  for (; i + 4 <= m; i += 4) {
    const a0 = aStart + i * k, a1 = a0 + k, a2 = a1 + k, a3 = a2 + k;
    const c0 = cStart + i * n, c1 = c0 + n, c2 = c1 + n, c3 = c2 + n;
    let p = 0;
    for (; p + 4 <= k; p += 4) {
      const a00 = a[a0 + p], a01 = a[a0 + p + 1], a02 = a[a0 + p + 2], a03 = a[a0 + p + 3];
      const a10 = a[a1 + p], a11 = a[a1 + p + 1], a12 = a[a1 + p + 2], a13 = a[a1 + p + 3];
      const a20 = a[a2 + p], a21 = a[a2 + p + 1], a22 = a[a2 + p + 2], a23 = a[a2 + p + 3];
      const a30 = a[a3 + p], a31 = a[a3 + p + 1], a32 = a[a3 + p + 2], a33 = a[a3 + p + 3];
      const b0 = bStart + p * n, b1 = b0 + n, b2 = b1 + n, b3 = b2 + n;
      for (let j = 0; j < n; j++) {
        const x0 = b[b0 + j], x1 = b[b1 + j], x2 = b[b2 + j], x3 = b[b3 + j];
        c[c0 + j] += a00 * x0 + a01 * x1 + a02 * x2 + a03 * x3;
        c[c1 + j] += a10 * x0 + a11 * x1 + a12 * x2 + a13 * x3;
        c[c2 + j] += a20 * x0 + a21 * x1 + a22 * x2 + a23 * x3;
        c[c3 + j] += a30 * x0 + a31 * x1 + a32 * x2 + a33 * x3;
      }
    }
    for (; p < k; p++) {
      const a00 = a[a0 + p], a10 = a[a1 + p], a20 = a[a2 + p], a30 = a[a3 + p];
      const b0 = bStart + p * n;
      for (let j = 0; j < n; j++) {
        const x = b[b0 + j];
        c[c0 + j] += a00 * x;
        c[c1 + j] += a10 * x;
        c[c2 + j] += a20 * x;
        c[c3 + j] += a30 * x;
      }
    }
  }
  for (; i < m; i++) {
    const a0 = aStart + i * k, c0 = cStart + i * n;
    for (let p = 0; p < k; p++) {
      const factor = a[a0 + p], b0 = bStart + p * n;
      for (let j = 0; j < n; j++) c[c0 + j] += factor * b[b0 + j];
    }
  }
}

// --- layers ---------------------------------------------------------------------------------------
// Each kind is a function of the layer and of its constants, and gives one that fills `out` from its inputs.

const KINDS = {
  constant(layer, { value }) {
    return (out) => out.set(value);
  },

  dense(layer, { weight, bias }) {
    const width = layer.shape[layer.shape.length - 1];
    return (out, x) => {
      const rows = out.length / width, inner = x.length / rows;
      for (let row = 0, o = 0; row < rows; row++) {
        const start = row * inner;
        for (let unit = 0, w = 0; unit < width; unit++, o++) {
          let s0 = bias ? bias[unit] : 0, s1 = 0, s2 = 0, s3 = 0, i = 0;
          for (; i + 4 <= inner; i += 4, w += 4) {
            s0 += weight[w] * x[start + i];
            s1 += weight[w + 1] * x[start + i + 1];
            s2 += weight[w + 2] * x[start + i + 2];
            s3 += weight[w + 3] * x[start + i + 3];
          }
          for (; i < inner; i++, w++) s0 += weight[w] * x[start + i];
          out[o] = s0 + s1 + s2 + s3;
        }
      }
    };
  },

  conv(layer, { weight, bias }) {
    const { image: inputs, result: outputs, kernel, stride, padding, dilation, groups, transposed } = layer.options;
    const [inChannels, inHeight, inWidth] = inputs, [outChannels, outHeight, outWidth] = outputs;
    const inPlane = inHeight * inWidth, outPlane = outHeight * outWidth;
    const area = kernel[0] * kernel[1];
    const inside = inChannels / groups, outside = outChannels / groups;
    // Patches: for every entry of the kernel and every position of the smaller image, where it lies in the larger.
    const large = transposed ? outputs : inputs, small = transposed ? inputs : outputs;
    const plane = small[1] * small[2];
    const where = new Int32Array(area * plane);
    for (let ky = 0, i = 0; ky < kernel[0]; ky++)
      for (let kx = 0; kx < kernel[1]; kx++)
        for (let y = 0; y < small[1]; y++)
          for (let x = 0; x < small[2]; x++, i++) {
            const row = y * stride[0] - padding[0] + ky * dilation[0];
            const column = x * stride[1] - padding[1] + kx * dilation[1];
            const within = row >= 0 && row < large[1] && column >= 0 && column < large[2];
            where[i] = within ? row * large[2] + column : -1;
          }
    const block = area * plane;
    const patches = new Float32Array((transposed ? outside : inside) * block);
    // A transposed convolution is the product with the transposed weights.
    let factor = weight;
    if (transposed) {
      const width = outside * area;
      factor = new Float32Array(weight.length);
      for (let group = 0; group < groups; group++)
        for (let i = 0; i < inside; i++)
          for (let o = 0; o < width; o++)
            factor[group * inside * width + o * inside + i] = weight[(group * inside + i) * width + o];
    }
    return (out, x) => {
      if (bias) for (let channel = 0; channel < outChannels; channel++)
        out.fill(bias[channel], channel * outPlane, (channel + 1) * outPlane);
      else out.fill(0);
      for (let group = 0; group < groups; group++) {
        const from = group * inside * inPlane, to = group * outside * outPlane;
        const start = group * inside * outside * area;
        if (transposed) {
          patches.fill(0);
          multiply(factor, x, patches, outside * area, inside, plane, start, from, 0);
          for (let channel = 0, i = 0; channel < outside; channel++) {
            const base = to + channel * outPlane;
            for (let j = 0; j < block; j++, i++) if (where[j] >= 0) out[base + where[j]] += patches[i];
          }
        } else {
          for (let channel = 0, i = 0; channel < inside; channel++) {
            const base = from + channel * inPlane;
            for (let j = 0; j < block; j++, i++) patches[i] = where[j] < 0 ? 0 : x[base + where[j]];
          }
          multiply(factor, patches, out, outside, inside * area, plane, start, 0, to);
        }
      }
    };
  },

  normalise(layer) {
    const { size, epsilon } = layer.options;
    return (out, x) => {
      for (let start = 0; start < x.length; start += size) {
        let mean = 0, variance = 0;
        for (let i = start; i < start + size; i++) mean += x[i];
        mean /= size;
        for (let i = start; i < start + size; i++) variance += (x[i] - mean) ** 2;
        const scale = 1 / Math.sqrt(variance / size + epsilon);
        for (let i = start; i < start + size; i++) out[i] = (x[i] - mean) * scale;
      }
    };
  },

  affine(layer, { scale, shift }) {
    const { inner } = layer.options;
    return (out, x) => {
      for (let i = 0, channel = 0; i < x.length; channel = (channel + 1) % scale.length)
        for (const stop = i + inner; i < stop; i++) out[i] = x[i] * scale[channel] + shift[channel];
    };
  },

  map(layer) {
    const f = MAPS[layer.options.f](layer.options);
    return (out, x) => {
      for (let i = 0; i < out.length; i++) out[i] = f(x[i]);
    };
  },

  pair(layer) {
    const f = PAIRS[layer.options.f];
    return (out, a, b) => {
      const stepA = a.length === 1 ? 0 : 1, stepB = b.length === 1 ? 0 : 1;
      for (let i = 0; i < out.length; i++) out[i] = f(a[i * stepA], b[i * stepB]);
    };
  },

  choose() {
    return (out, condition, a, b) => {
      const [step, stepA, stepB] = [condition, a, b].map((value) => (value.length === 1 ? 0 : 1));
      for (let i = 0; i < out.length; i++) out[i] = condition[i * step] ? a[i * stepA] : b[i * stepB];
    };
  },

  take(layer, { index }) {
    const { start, each, fill, sizes } = layer.options;
    if (start !== undefined) return (out, x) => out.set(x.subarray(start, start + out.length));
    if (each !== undefined)
      return (out, x) => {
        for (let i = 0, o = 0; i < x.length; i++) for (const stop = o + each; o < stop; o++) out[o] = x[i];
      };
    const joined = new Float64Array(sizes.reduce((sum, size) => sum + size, 0));
    return (out, ...inputs) => {
      let offset = 0;
      for (const input of inputs) {
        joined.set(input, offset);
        offset += input.length;
      }
      for (let i = 0; i < out.length; i++) out[i] = index[i] < 0 ? fill : joined[index[i]];
    };
  },

  reduce(layer) {
    const { f, size, correction } = layer.options;
    return (out, x) => {
      for (let group = 0; group < out.length; group++) {
        const from = group * size, to = from + size;
        let value = f === "max" ? -Infinity : f === "min" ? Infinity : 0;
        if (f === "max") for (let i = from; i < to; i++) value = Math.max(value, x[i]);
        else if (f === "min") for (let i = from; i < to; i++) value = Math.min(value, x[i]);
        else for (let i = from; i < to; i++) value += x[i];
        if (f === "mean") value /= size;
        if (f === "var") {
          const mean = value / size;
          value = 0;
          for (let i = from; i < to; i++) value += (x[i] - mean) ** 2;
          value /= size - correction;
        }
        out[group] = value;
      }
    };
  },

  softmax(layer) {
    const { size } = layer.options;
    return (out, x) => {
      for (let from = 0; from < x.length; from += size) {
        let most = -Infinity, sum = 0;
        for (let i = from; i < from + size; i++) most = Math.max(most, x[i]);
        for (let i = from; i < from + size; i++) sum += out[i] = Math.exp(x[i] - most);
        for (let i = from; i < from + size; i++) out[i] /= sum;
      }
    };
  },

  argmax(layer) {
    const { size } = layer.options;
    return (out, x) => {
      for (let group = 0; group < out.length; group++) {
        let best = 0;
        for (let i = 1; i < size; i++) if (x[group * size + i] > x[group * size + best]) best = i;
        out[group] = best;
      }
    };
  },

  lookup(layer, { table }) {
    return (out, x) => {
      const width = out.length / x.length;
      for (let i = 0; i < x.length; i++) out.set(table.subarray(x[i] * width, (x[i] + 1) * width), i * width);
    };
  },
};

// --- programs -------------------------------------------------------------------------------------

// A program, ready to run: a function of its inputs that gives its outputs by name.
function prepare(program, bytes, entries) {
  const values = program.inputs.map((shape) => new Float32Array(shape.reduce((a, b) => a * b, 1)));
  const steps = [];
  for (const layer of program.layers) {
    const constants = {};
    for (const name in layer.constants) constants[name] = arrayOf(bytes, entries[layer.constants[name]]);
    const length = layer.shape.reduce((a, b) => a * b, 1);
    const out = layer.double ? new Float64Array(length) : new Float32Array(length);
    const run = KINDS[layer.kind](layer, constants);
    values.push(out);
    if (layer.kind === "constant") run(out);
    else steps.push({ run, out, inputs: layer.inputs.map((number) => values[number]) });
  }
  return (...inputs) => {
    inputs.forEach((input, number) => values[number].set(input));
    for (const { run, out, inputs: from } of steps) run(out, ...from);
    const outputs = {};
    for (const name in program.outputs) outputs[name] = Float32Array.from(values[program.outputs[name]]);
    return outputs;
  };
}
