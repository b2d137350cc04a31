"""A browser for the tests of the page, shared by all of them, and small trained models."""

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import unweave as uw
from unweave.explorer import write_page

# As root, as in a container, Chromium runs without its sandbox; nothing is fetched, and nothing reports home.
OPTIONS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    "--window-size=1280,900",
]


class Page:
    """A page of the explorer in a browser."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, path, link=""):
        self.driver.get("about:blank")
        self.driver.get(f"{Path(path).resolve().as_uri()}{link}")
        self.wait("return document.documentElement.dataset.ready === 'true'")
        self.settle()
        return self

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def value(self, expression):
        return self.run(f"return {expression}")

    def wait(self, script, seconds=120):
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, f"{script}: not within {seconds} seconds; {self.errors()}"
            time.sleep(0.02)

    def settle(self):
        """Wait until nothing is left to decode, and the link is written."""
        self.wait("return !runner.waiting.size && !runner.workers.some((entry) => entry.job)")

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def click(self, selector):
        self.run("arguments[0].scrollIntoView({ block: 'center' })", self.find(selector))
        self.find(selector).click()
        self.settle()

    def errors(self):
        """What the browser complained about."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def pixels(self, selector):
        """All bytes of a canvas."""
        script = """const canvas = document.querySelector(arguments[0]);
        return Array.from(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data)"""
        return np.array(self.run(script, selector))

    def link(self):
        """The view in the page's address, once it is written."""
        self.wait("return location.hash.slice(1) === link()")
        return self.value("location.hash")


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """Headless Chromium; the tests are skipped where there is none."""
    selenium = pytest.importorskip("selenium", reason="the tests in a browser need selenium")
    browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    chromedriver = shutil.which("chromedriver")
    if not browser or not chromedriver:
        pytest.skip("no browser: the tests of the explorer need chromium and chromedriver")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    assert selenium.__version__
    options = ChromeOptions()
    options.binary_location = browser
    for option in [*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, ChromeService(chromedriver, log_output=os.devnull))
    driver.set_script_timeout(180)
    yield driver
    driver.quit()


@pytest.fixture
def page(driver):
    page = Page(driver)
    page.errors()  # those of earlier tests
    yield page
    assert page.errors() == []


# --- data and models -------------------------------------------------------------------------------


def squares(size=32, channels=1):
    """A square at 4 x 4 positions, in 4 sizes: factors of which a small model learns something at once."""
    factors = np.stack(np.meshgrid(*[np.arange(4)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    images = np.zeros((len(factors), size, size, channels), np.uint8)
    for image, (x, y, scale) in zip(images, factors, strict=True):
        side = 3 + 2 * scale
        top, left = (size - 12) * y // 3, (size - 12) * x // 3
        image[top : top + side, left : left + side] = 255
    return uw.data.from_arrays(images, dict(zip(("x", "y", "scale"), factors.T, strict=True)), name="squares")


@pytest.fixture(scope="session")
def vaes():
    """Two seeds of a VAE, trained a little."""
    data = squares()
    runs = []
    for seed in (0, 1):
        method = uw.methods.create(
            "beta_vae", data, beta=1, latent_size=4, architecture={"name": "conv", "width": 0.25}
        )
        runs.append(uw.train(method, data, steps=120, batch_size=16, seed=seed, learning_rate=3e-3))
    return data, runs


@pytest.fixture(scope="session")
def stages(vaes):
    """A multi-stage model on the first of the VAEs."""
    data, (first, _) = vaes
    method = uw.methods.create("ms_vae", data, first=first, latent_size=2, width=4)
    return data, uw.train(method, data, steps=20, batch_size=16)


@pytest.fixture(scope="session")
def vae_page(vaes, tmp_path_factory):
    data, runs = vaes
    return write_page(runs, tmp_path_factory.mktemp("vae") / "page.html", data)


@pytest.fixture(scope="session")
def photographs(tmp_path_factory):
    """A folder of colour images of other sizes, with names that would be markup, and a run on them."""
    folder = tmp_path_factory.mktemp("photographs")
    rng = np.random.default_rng(0)
    for number in range(40):
        smooth = Image.fromarray(rng.integers(0, 256, (4, 5, 3), np.uint8)).resize(
            (90, 70), Image.Resampling.BICUBIC
        )
        smooth.save(folder / f"<img src=x onerror=alert({number})>.png".replace("/", "-"))
    return folder
