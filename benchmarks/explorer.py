"""Speed of the explorer in headless Chromium: images that the papers' 64-pixel network encodes and decodes in a second.

The kernels run on one thread. The baseline is the textbook's form of the same layers, loops around a sum of products,
compiled by the same browser in the same turns, so that a slow moment of the machine hits both. The last line is what
a person sees: images that the whole page decodes in a worker and draws, one after the other.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

TURNS, IMAGES_A_TURN, PLAIN_IMAGES_A_TURN, DRAWN = 7, 20, 2, 60
GOAL = 30  # decoded images a second, in the page

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
)

# Dense layers and convolutions as their formulas have them; all other layers are the page's own.
PLAIN_KINDS = """
const PLAIN = {
  ...KINDS,
  dense(layer, { weight, bias }) {
    return (out, x) => {
      for (let unit = 0; unit < out.length; unit++) {
        let sum = bias ? bias[unit] : 0;
        for (let i = 0; i < x.length; i++) sum += weight[unit * x.length + i] * x[i];
        out[unit] = sum;
      }
    };
  },
  conv(layer, { weight, bias }) {
    const { image: [inChannels, inHeight, inWidth], result: [outChannels, outHeight, outWidth] } = layer.options;
    const { kernel: [kernelHeight, kernelWidth], stride, padding, transposed } = layer.options;
    return (out, x) => {
      const plane = outHeight * outWidth;
      for (let o = 0; o < outChannels; o++) out.fill(bias ? bias[o] : 0, o * plane, (o + 1) * plane);
      const [height, width] = transposed ? [inHeight, inWidth] : [outHeight, outWidth];
      const [tall, wide] = transposed ? [outHeight, outWidth] : [inHeight, inWidth];
      for (let o = 0; o < outChannels; o++)
        for (let i = 0; i < inChannels; i++)
          for (let y = 0; y < height; y++)
            for (let z = 0; z < width; z++)
              for (let ky = 0; ky < kernelHeight; ky++)
                for (let kx = 0; kx < kernelWidth; kx++) {
                  const row = y * stride[0] - padding[0] + ky, column = z * stride[1] - padding[1] + kx;
                  if (row < 0 || row >= tall || column < 0 || column >= wide) continue;
                  const small = y * width + z, large = row * wide + column;
                  const pair = transposed ? i * outChannels + o : o * inChannels + i;
                  const factor = weight[(pair * kernelHeight + ky) * kernelWidth + kx];
                  if (transposed) out[o * tall * wide + large] += x[i * height * width + small] * factor;
                  else out[o * height * width + small] += x[i * tall * wide + large] * factor;
                }
    };
  },
};
function preparePlain(program) {
  const kept = { dense: KINDS.dense, conv: KINDS.conv };
  Object.assign(KINDS, { dense: PLAIN.dense, conv: PLAIN.conv });
  const run = prepare(program, bytes, content.arrays);
  Object.assign(KINDS, kept);
  return run;
}
"""

PREPARE = f"""{PLAIN_KINDS}
const {{ encoder, decoder }} = models[0];
const image = Float32Array.from({{ length: 64 * 64 }}, (_, i) => (i * 0.37) % 1), code = Float32Array.from(codeOf(0));
window.programs = {{
  encode: [prepare(encoder, bytes, content.arrays), preparePlain(encoder), image],
  decode: [prepare(decoder, bytes, content.arrays), preparePlain(decoder), code],
}};
return Object.values(programs).map(([ours, plain, input]) => {{
  const [one, other] = [ours(input), plain(input)];
  const error = (name) => Math.max(...one[name].map((value, i) => Math.abs(value - other[name][i])));
  return Math.max(...Object.keys(one).map(error));
}});"""

TURN = """const [ours, plain, input] = programs[arguments[0]];
return [[ours, arguments[1]], [plain, arguments[2]]].map(([run, count]) => {
  const start = performance.now();
  for (let i = 0; i < count; i++) run(input);
  return (1000 * count) / (performance.now() - start);
});"""

# As somebody who drags a slider: the next image is asked for when the last one is drawn.
DRAW = """const [count, done] = arguments, { low, high } = model().latents[0];
const start = performance.now();
let drawn = 0;
const step = () => {
  if (drawn === count) return done((1000 * count) / (performance.now() - start));
  const code = Float32Array.from(state.code);
  code[0] = low + ((high - low) * drawn++) / count;
  decode("large", code, state.noise, (outputs) => {
    draw(large.get(`stage ${model().stages[0]}`), lastStage(outputs));
    step();
  }, { urgent: true });
};
step();"""


def main() -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    try:
        from selenium.webdriver import Chrome, ChromeOptions, ChromeService
    except ImportError:
        browser = None
    if not browser or not chromedriver:
        print("explorer: skipped; needs chromium, chromedriver and selenium")
        return
    with tempfile.TemporaryDirectory() as folder:
        page = write_model(Path(folder) / "page.html")
        options = ChromeOptions()
        options.binary_location = browser
        for option in (*OPTIONS, f"--user-data-dir={folder}/profile"):
            options.add_argument(option)
        driver = Chrome(options, ChromeService(chromedriver, log_output=os.devnull))
        try:
            measure(driver, page)
        finally:
            driver.quit()


def write_model(path: Path) -> Path:
    """The papers' network with its first weights: speed does not depend on what it has learned."""
    import unweave as uw

    images = np.random.default_rng(0).integers(0, 256, (64, 64, 64, 1), np.uint8)
    data = uw.data.from_arrays(images)
    run = uw.train(uw.methods.create("beta_vae", data), data, steps=1, batch_size=16)
    return uw.explorer.write_page([run], path, data)


def measure(driver: Any, page: Path) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    driver.set_script_timeout(180)
    driver.get(page.as_uri())
    WebDriverWait(driver, 120, 0.05).until(
        lambda _: driver.execute_script(
            "return document.documentElement.dataset.ready === 'true' && !runner.waiting.size"
        )
    )
    worst = max(driver.execute_script(PREPARE))
    assert worst < 1e-4, f"the kernels differ from their formulas by {worst}"
    print(
        f"64 x 64 pixels, in {driver.capabilities['browserName']} {driver.capabilities['browserVersion']}, one thread"
    )
    print(f"{'':8}{'images/s':>10}{'formulas':>10}{'ratio':>8}")
    for what in ("encode", "decode"):
        turns = [
            driver.execute_script(TURN, what, IMAGES_A_TURN, PLAIN_IMAGES_A_TURN) for _ in range(TURNS + 1)
        ]
        ours, plain = (statistics.median(speeds) for speeds in zip(*turns[1:], strict=True))
        print(f"{what:8}{ours:>10.0f}{plain:>10.0f}{ours / plain:>8.1f}")
    drawn = statistics.median(driver.execute_async_script(DRAW, DRAWN) for _ in range(3))
    print(
        f"decoded by a worker and drawn: {drawn:.0f} images/s (goal: {GOAL}); load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
