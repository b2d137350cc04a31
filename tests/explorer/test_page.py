"""The page in a browser: every interaction, on a VAE, a multi-stage model, a GAN, curves and own photographs."""

import io
import json
import re
import time

import numpy as np
import pytest
import torch
from PIL import Image

import unweave as uw
from unweave.explorer import render_page, write_page
from unweave.explorer.dependences import factor_matrices
from unweave.metrics.information.discretise import discretise

pytestmark = pytest.mark.xdist_group("browser")


def drag(page, selector, share, click=False):
    """Move the mouse within an element, to a share of its width; perhaps click there."""
    from selenium.webdriver import ActionChains

    element = page.find(selector)
    page.run("arguments[0].scrollIntoView({ block: 'center' })", element)
    across = round((share - 0.5) * element.size["width"])
    actions = ActionChains(page.driver, duration=20).move_to_element_with_offset(element, across, 0)
    (actions.click() if click else actions).perform()
    page.settle()


def press(page, selector, *keys):
    element = page.find(selector)
    page.run("arguments[0].focus()", element)
    element.send_keys(*keys)
    page.settle()


def code(page):
    return np.array(page.value("Array.from(state.code)"))


# --- one file, offline ------------------------------------------------------------------------------


def test_the_page_loads_nothing_and_says_so(page, vae_page):
    text = vae_page.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1).replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in re.sub(r"data:image/png;base64,[^\"]*", "", policy)
    page.open(vae_page)
    # Neither of what was loaded has an address outside the file.
    assert page.value(
        "performance.getEntriesByType('resource').every(({ name }) => /^(data|blob):/.test(name))"
    )
    assert page.value("runner.workers.length") >= 1  # not the fallback
    page.run(
        "const script = document.createElement('script'); script.textContent = 'window.bad = 1'; "
        "document.body.append(script)"
    )
    assert page.value("window.bad") is None
    assert any("Content Security Policy" in message for message in page.errors())


def test_a_model_of_the_papers_takes_less_than_one_and_a_half_megabytes():
    data = uw.data.from_arrays(np.zeros((4, 64, 64, 1), np.uint8))
    run = uw.train(uw.methods.create("beta_vae", data), data, steps=1, batch_size=4)
    weights = re.search(r'id="weights">([^<]*)<', render_page([run], data)).group(1)
    assert 1_000_000 < len(weights) < 1_500_000


# --- latents ----------------------------------------------------------------------------------------


def test_sliders_are_sorted_by_kl_and_inactive_ones_are_grey(page, vae_page):
    page.open(vae_page)
    shown = [int(row.get_attribute("data-column")) for row in page.all(".slider")]
    kl = page.value("model().latents.map(({ importance }) => importance)")
    assert [kl[column] for column in shown] == sorted(kl, reverse=True)
    active = page.value("model().latents.map(({ active }) => active)")
    assert [("inactive" in row.get_attribute("class")) for row in page.all(".slider")] == [
        not active[c] for c in shown
    ]
    assert page.pixels(".slider .hills").any()


def test_a_slider_moves_its_latent_and_the_image(page, vae_page, vaes):
    _, (run, _) = vaes
    page.open(vae_page)
    before = page.pixels("#pictures .picture:last-child canvas")
    column = int(page.find(".slider").get_attribute("data-column"))
    start = code(page)
    page.run(
        "const input = document.querySelector('.slider input'); input.value = input.max; "
        "input.dispatchEvent(new Event('input'))"
    )
    page.settle()
    now = code(page)
    assert now[column] == pytest.approx(page.value(f"model().latents[{column}].high"), abs=1e-5)
    assert np.array_equal(np.delete(now, column), np.delete(start, column))
    shown = page.pixels("#pictures .picture:last-child canvas")
    assert (shown != before).any()
    decoded = run.decode(now[None])[0, :, :, 0]
    np.testing.assert_allclose(shown[::4].reshape(32, 32) / 255, decoded, atol=2e-3 + 0.5 / 255)


def test_sliders_have_keys_and_labels(page, vae_page):
    page.open(vae_page)
    column = int(page.find(".slider").get_attribute("data-column"))
    before = code(page)[column]
    press(page, ".slider input", "\ue014")  # right
    assert code(page)[column] > before
    press(page, ".slider input", "\ue012", "\ue012")  # left
    assert code(page)[column] < before
    unlabelled = """[...document.querySelectorAll("input, select, button, canvas[role], [role=slider]")].filter(
        (one) => !(one.getAttribute("aria-label") || one.labels?.length || one.textContent || one.ariaHidden))"""
    assert page.value(f"{unlabelled}.map((one) => one.outerHTML)") == []


def test_the_posterior_is_a_bar_with_a_width(page, vae_page):
    page.open(vae_page)
    column = int(page.find(".slider").get_attribute("data-column"))
    mean, deviation = page.value(f"[state.posterior.mean[{column}], state.posterior.deviation[{column}]]")
    low, high = page.value(f"[model().latents[{column}].low, model().latents[{column}].high]")
    bar = page.find(".slider .posterior").rect
    span = page.find(".slider .span").rect
    assert bar["width"] / span["width"] == pytest.approx(4 * deviation / (high - low), abs=0.02)
    middle = (bar["x"] + bar["width"] / 2 - span["x"]) / span["width"]
    assert middle == pytest.approx((mean - low) / (high - low), abs=0.02)


# --- traversals -------------------------------------------------------------------------------------


def test_the_large_image_follows_the_mouse_along_a_row(page, vae_page):
    page.open(vae_page)
    start = code(page)
    still = page.pixels("#pictures .picture:last-child canvas")
    column = int(page.find(".strip").get_attribute("data-column"))
    drag(page, ".strip-images", 0.95)
    left = page.pixels("#pictures .picture:last-child canvas")
    assert (left != still).any()
    assert np.array_equal(code(page), start)  # nothing is kept until a click
    drag(page, ".strip-images", 0.05, click=True)
    moved = code(page)
    centre, scale = page.value(f"[model().latents[{column}].centre, model().latents[{column}].scale]")
    assert moved[column] == pytest.approx(centre - 2 * scale, abs=0.1 * scale)
    press(page, ".strip-images", "\ue014")
    assert code(page)[column] == pytest.approx(moved[column] + 0.1 * scale, abs=1e-3)


def test_a_row_shows_what_pytorch_decodes(page, vae_page, vaes):
    _, (run, _) = vaes
    page.open(vae_page)
    column = int(page.find(".strip").get_attribute("data-column"))
    codes = np.tile(code(page), (2, 1))
    codes[:, column] = page.value("[strips[0].values[0], strips[0].values[8]]")
    expected = run.decode(codes)[..., 0]
    for tile, image in zip((1, 9), expected, strict=True):
        shown = page.pixels(f".strip canvas:nth-child({tile})")[::4].reshape(32, 32) / 255
        np.testing.assert_allclose(shown, image, atol=2e-3 + 0.5 / 255)


# --- images -----------------------------------------------------------------------------------------


def test_an_image_of_the_data_set_is_picked(page, vae_page, vaes):
    _, (run, _) = vaes
    page.open(vae_page)
    page.click("#pick-button")
    page.click("#picker-images button:nth-child(6)")
    assert page.value("state.start") == 5
    shown = page.pixels("#pictures .picture canvas")[::4].reshape(32, 32)
    np.testing.assert_allclose(code(page), run.encode(shown[None, :, :, None].astype(np.uint8))[0], atol=1e-4)


def test_a_users_own_image_is_encoded_in_the_page(page, vae_page, vaes, tmp_path):
    _, (run, _) = vaes
    rng = np.random.default_rng(3)
    pixels = np.asarray(Image.fromarray(rng.integers(0, 256, (6, 8), np.uint8)).resize((96, 64)))
    path = tmp_path / "<b>mine.png"
    Image.fromarray(pixels).save(path)
    page.open(vae_page)
    page.find("#file").send_keys(str(path))
    page.wait("return state.start === 'own'")
    page.settle()
    cut = Image.fromarray(pixels).crop((16, 0, 80, 64)).resize((32, 32), Image.Resampling.LANCZOS)
    mean, log_variance = run.posterior(np.array(cut)[None, :, :, None])
    np.testing.assert_allclose(code(page), mean[0], atol=2e-2)
    np.testing.assert_allclose(
        page.value("Array.from(state.posterior.deviation)"), np.exp(0.5 * log_variance[0]), atol=2e-2
    )
    assert page.find("#picture-note").text == "Yours: <b>mine.png"
    assert not page.all("#picture-note b")


def test_an_image_is_dropped_on_the_page(page, vae_page, vaes):
    _, (run, _) = vaes
    pixels = np.zeros((32, 32), np.uint8)
    pixels[4:12, 20:28] = 255
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    page.open(vae_page)
    page.run(
        """const moved = new DataTransfer();
        moved.items.add(new File([Uint8Array.from(arguments[0])], "dropped.png", { type: "image/png" }));
        const send = (kind) => document.body.dispatchEvent(
          new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: moved }));
        send("dragenter");
        window.offered = !document.getElementById("drop").hidden;
        send("drop");""",
        list(buffer.getvalue()),
    )
    page.wait("return state.start === 'own'")
    page.settle()
    assert page.value("window.offered")
    assert not page.find("#drop").is_displayed()
    np.testing.assert_allclose(code(page), run.encode(pixels[None, :, :, None])[0], atol=2e-3)
    # The bars are those of the posterior of this image, and the other model encodes it too.
    column = int(page.find(".slider").get_attribute("data-column"))
    _, log_variance = run.posterior(pixels[None, :, :, None])
    assert page.value(f"state.posterior.deviation[{column}]") == pytest.approx(
        np.exp(0.5 * log_variance[0, column]), abs=2e-3
    )
    page.click("#models button:nth-child(2)")
    assert page.find("#picture-note").text == "Yours: dropped.png"
    # A link has its code, not the image.
    seen, link = code(page), page.link()
    page.open(vae_page, link)
    np.testing.assert_allclose(code(page), seen, atol=1e-3)
    assert page.find("#picture-note").text == "A code without an image."
    page.click("#reset-button")
    assert page.find("#picture-note").text == "The centre of the codes."
    assert not page.find(".slider .posterior").is_displayed()


def test_another_image_and_back_to_its_code(page, vae_page):
    page.open(vae_page)
    page.run("Math.random = () => 0.5")
    page.click("#random-button")
    assert page.value("state.start") == 32
    page.click("#random-button")
    assert page.value("state.start") == 0  # another one, though the draw is the same
    start = code(page)
    drag(page, ".strip-images", 0.05, click=True)
    assert not np.array_equal(code(page), start)
    page.click("#reset-button")
    np.testing.assert_array_equal(code(page), start)


def test_a_file_that_is_no_image_is_refused_with_a_word(page, vae_page, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not an image")
    page.open(vae_page)
    page.run("scrollTo(0, document.documentElement.scrollHeight)")
    page.find("#file").send_keys(str(path))
    page.wait("return document.getElementById('message').textContent")
    assert page.find("#message").text == "notes.txt is not an image that this browser reads."
    page.wait("return document.getElementById('message').getBoundingClientRect().top >= 0", seconds=10)


# --- factors, two latents, swap ---------------------------------------------------------------------


def test_a_cell_of_the_matrix_shows_latent_and_factor(page, vae_page):
    page.open(vae_page)
    cells = page.all(".cell")
    assert len(cells) == 4 * 3
    last = page.find(".matrix tbody tr:last-child td:last-child .cell")
    assert last.text == f"{float(last.text):.2f}"
    page.click(".matrix tbody tr:nth-child(2) td:nth-child(3) .cell")
    second = int(page.all(".slider")[1].get_attribute("data-column"))
    assert page.value("[state.latent, state.factor]") == [second, 1]
    assert page.find(".slider.selected").get_attribute("data-column") == str(second)
    assert page.find("#relation-note").text.startswith(f"z{second} against y")
    # A click on a point starts from its image.
    x, y = page.value("relationPoints[7]")
    box = page.find("#relation-plot").rect
    drag_to(page, "#relation-plot", x - box["width"] / 2, y - box["height"] / 2)
    start = page.value("state.start")
    assert np.hypot(*(np.array(page.value(f"relationPoints[{start}]")) - [x, y])) < 3
    page.click("#measures button:nth-child(2)")
    assert page.value("state.measure") == "importance"
    columns = np.array([float(cell.text) for cell in page.all(".cell")]).reshape(-1, 3).sum(axis=0)
    np.testing.assert_allclose(columns, 1, atol=0.03)


def drag_to(page, selector, x, y):
    from selenium.webdriver import ActionChains

    element = page.find(selector)
    page.run("arguments[0].scrollIntoView({ block: 'center' })", element)
    ActionChains(page.driver, duration=20).move_to_element_with_offset(
        element, round(x), round(y)
    ).click().perform()
    page.settle()


def test_a_click_among_two_latents_decodes_there(page, vae_page):
    page.open(vae_page)
    across, up = page.value("[state.across, state.up]")
    before = code(page)
    drag_to(page, "#scatter-plot", 40, -30)
    now = code(page)
    assert now[across] != before[across]
    assert now[up] != before[up]
    others = [column for column in range(4) if column not in (across, up)]
    assert np.array_equal(now[others], before[others])
    press(page, "#scatter-plot", "\ue013")  # up
    assert code(page)[up] > now[up]
    press(page, "#scatter-plot", "\ue007")  # enter: the nearest image
    assert isinstance(page.value("state.start"), int)
    page.run(
        "const box = document.getElementById('scatter-color'); box.value = '2'; box.dispatchEvent(new Event('change'))"
    )
    assert page.find("#legend").text.startswith("scale")


def test_a_double_click_among_two_latents_starts_from_the_nearest_image(page, vae_page):
    from selenium.webdriver import ActionChains

    page.open(vae_page)
    page.run(
        "const box = document.getElementById('scatter-x'); box.value = '3'; box.dispatchEvent(new Event('change'))"
    )
    assert page.value("state.across") == 3
    x, y = page.value("scatterPoints[9]")
    plot = page.find("#scatter-plot")
    page.run("arguments[0].scrollIntoView({ block: 'center' })", plot)
    ActionChains(page.driver, duration=20).move_to_element_with_offset(
        plot, round(x - plot.rect["width"] / 2), round(y - plot.rect["height"] / 2)
    ).double_click().perform()
    page.settle()
    start = page.value("state.start")
    assert np.hypot(*(np.array(page.value(f"scatterPoints[{start}]")) - [x, y])) < 3
    np.testing.assert_allclose(code(page), page.value(f"Array.from(codeOf({start}))"), atol=1e-6)


def test_a_latent_is_swapped_between_two_images(page, vae_page):
    page.open(vae_page)
    page.click("#swap-pick-a")
    page.click("#picker-images button:nth-child(11)")
    page.click("#swap-tiles .tile")
    column = int(page.find("#swap-tiles .tile").get_attribute("data-column"))
    a, b = (np.array(page.value(f"Array.from(codeOf({row}))")) for row in (10, 1))
    expected = b.copy()
    expected[column] = a[column]
    np.testing.assert_allclose(code(page), expected, atol=1e-6)


# --- two models, names, links -----------------------------------------------------------------------


def test_two_models_are_matched_by_the_hungarian_method(page, vae_page, vaes):
    data, runs = vaes
    page.open(vae_page)
    one, other = (run.encode(data) for run in runs)
    used = [np.array(page.value(f"models[{i}].latents.map(({{ active }}) => active)")) for i in (0, 1)]
    correlation = np.abs(np.corrcoef(one.T, other.T)[:4, 4:]) * np.where(used[0][:, None] & used[1], 1, 1e-3)
    import itertools

    best = max(
        itertools.permutations(range(4)),
        key=lambda order: sum(correlation[i, j] for i, j in enumerate(order)),
    )
    pairs = page.value("content.matches[0][1]")
    assert {(pair["one"], pair["other"]) for pair in pairs} == set(enumerate(best))
    assert page.all(".pair[data-one]")
    page.click("#models button:nth-child(2)")
    assert page.value("state.model") == 1
    assert page.find("#models [aria-checked=true]").text == "beta_vae, seed 1"
    np.testing.assert_allclose(code(page), page.value("Array.from(codeOf(0, 1))"), atol=1e-6)


def test_another_model_is_shown_with_its_own_code_while_the_mouse_rests_on_a_row(page, vae_page):
    page.open(vae_page)
    drag(page, ".strip-images", 0.95)
    page.run("document.querySelector('#models button:nth-child(2)').click()")  # as the keyboard does
    page.settle()
    assert page.value("state.model") == 1
    shown = page.value(
        "[...document.querySelectorAll('.slider .value')].map((one) => Number(one.textContent))"
    )
    own = page.value("units().map(({ column }) => codeOf(0, 1)[column])")
    np.testing.assert_allclose(shown, own, atol=0.006)


OWN = "startFromOwn('mine', new Float32Array(32 * 32).fill(0.5));"


def test_another_model_encodes_the_users_image_if_it_is_shown_while_the_first_does(page, vae_page, vaes):
    _, (_, second) = vaes
    page.open(vae_page)
    page.run(OWN + "showModel(1);")
    page.wait("return state.start === 'own'")
    page.settle()
    assert page.value("state.model") == 1
    with torch.no_grad():
        mean = second.method.encode(torch.full((1, 1, 32, 32), 0.5)).mean
    np.testing.assert_allclose(code(page), mean[0], atol=2e-3)


@pytest.fixture
def gray_file(tmp_path):
    """An image of the user: a fifth of white."""
    path = tmp_path / "gray.png"
    Image.fromarray(np.full((32, 32), 51, np.uint8)).save(path)
    return path


def test_the_model_that_is_shown_when_a_file_has_been_read_encodes_it(page, vae_page, vaes, gray_file):
    _, (_, second) = vaes
    page.open(vae_page)
    page.run("createImageBitmap = (plain => async (file) => (showModel(1), plain(file)))(createImageBitmap)")
    page.find("#file").send_keys(str(gray_file))
    page.wait("return state.start === 'own'")
    page.settle()
    assert page.value("state.model") == 1
    with torch.no_grad():
        mean = second.method.encode(torch.full((1, 1, 32, 32), 0.2)).mean
    np.testing.assert_allclose(code(page), mean[0], atol=2e-3)


@pytest.mark.parametrize(
    ("choice", "start"),
    [("startFrom(3)", 3), ("document.querySelector('#swap-tiles .tile').click()", 1), ("showLink()", 0)],
)
def test_an_image_that_is_chosen_while_the_users_is_encoded_stays(page, vae_page, choice, start):
    page.open(vae_page)
    page.run(choice)
    page.settle()
    expected = code(page)
    page.run(OWN + choice)
    page.settle()
    assert page.value("state.start") == start
    np.testing.assert_array_equal(code(page), expected)
    page.run(OWN)  # alone it is shown
    page.wait("return state.start === 'own'")


def test_a_start_that_is_chosen_while_a_file_is_read_stays(page, vae_page, gray_file):
    page.open(vae_page)
    page.run("createImageBitmap = (plain => async (file) => (startFrom(3), plain(file)))(createImageBitmap)")
    page.find("#file").send_keys(str(gray_file))
    page.wait("return state.start === 3")
    page.settle()
    assert page.value("[state.start, opening]") == [3, None]


def test_a_worker_whose_job_failed_goes_on(page, vae_page):
    page.open(vae_page)
    page.run("run('broken', 0, 'nothing', [], () => {});" + OWN)
    page.wait("return state.start === 'own'")
    (error,) = page.errors()
    assert "is not a function" in error


def test_models_that_differ_in_a_setting_have_different_titles(page, vaes, tmp_path):
    data, (run, _) = vaes
    other = uw.methods.create("beta_vae", data, beta=4, latent_size=4, architecture="mlp")
    runs = [run, uw.train(other, data, steps=120, batch_size=16), run]
    page.open(write_page(runs, tmp_path / "page.html", data))
    titles = [button.text for button in page.all("#models button")]
    assert titles == ["beta_vae, beta = 1, 1", "beta_vae, beta = 4", "beta_vae, beta = 1, 3"]


def test_a_name_is_kept_in_the_link(page, vae_page):
    page.open(vae_page)
    column = int(page.find(".slider").get_attribute("data-column"))
    page.click(".slider .pencil")
    page.find(".slider .name").send_keys("<i>size</i>\n")
    page.settle()
    assert page.find(".slider .label").text.startswith("<i>size</i>")
    assert not page.all(".slider i")
    link = page.link()
    page.open(vae_page, link)
    assert page.find(".slider .label").text.startswith("<i>size</i>")
    assert page.find(".strip .label").text == f"<i>size</i> (z{column})"
    assert page.find(".matrix tbody th").text == f"<i>size</i> (z{column})"


def test_a_link_is_a_view(page, vae_page):
    page.open(vae_page)
    page.click("#models button:nth-child(2)")
    page.click("#pick-button")
    page.click("#picker-images button:nth-child(4)")
    drag(page, ".strip:nth-child(2) .strip-images", 0.9, click=True)
    page.click(".matrix tbody tr:nth-child(3) td:nth-child(2) .cell")
    page.click("#theme-button")
    before = page.value("[state.model, state.start, state.latent, state.factor, state.theme]")
    seen, image = code(page), page.pixels("#pictures .picture:last-child canvas")
    link = page.link()
    page.open(vae_page, link)
    assert page.value("[state.model, state.start, state.latent, state.factor, state.theme]") == before
    np.testing.assert_allclose(code(page), seen, atol=1e-3)
    assert np.abs(page.pixels("#pictures .picture:last-child canvas") - image).max() <= 2


@pytest.mark.parametrize(
    "link", ["#m=99&i=-1&z=a_b&l=x&f=7&t=<script>&n0.z9=b", "#%zz&&&=", "#z=1_2_3", "#e=1&i=own"]
)
def test_a_damaged_link_shows_the_start(page, vae_page, link):
    page.open(vae_page, link)
    assert page.value("[state.model, state.start, state.code.length]") == [0, 0, 4]


# --- for people -------------------------------------------------------------------------------------


def test_the_tour_goes_through_the_page_and_escape_ends_it(page, vae_page):
    page.open(vae_page)
    page.click("#tour-button")
    headings = []
    while page.find("#tour").is_displayed():
        headings.append(page.find("#tour-heading").text)
        page.find("#tour-next").click()
    assert len(headings) == len(set(headings)) == 8
    page.click("#tour-button")
    press(page, "#tour-next", "\ue00c")
    assert not page.find("#tour").is_displayed()


CONTRAST = """// All visible text whose contrast to what is behind it is below 4.5 (WCAG 2, level AA).
const parse = (text) => {
  const [r, g, b, alpha = 1] = text.match(/[\\d.]+/g).map(Number);
  return [r, g, b, alpha];
};
const over = (front, back) => [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3])).concat(1);
const luminance = (color) => color.slice(0, 3)
  .map((value) => value / 255)
  .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
  .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => {
  const chain = [];
  for (let one = element; one; one = one.parentElement) chain.unshift(parse(getComputedStyle(one).backgroundColor));
  return chain.reduce((under, color) => over(color, under), [255, 255, 255, 1]);
};
const ratios = [];
for (const one of document.body.querySelectorAll("*")) {
  const hasText = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!(hasText || one.tagName === "SELECT") || one.disabled || !one.checkVisibility()) continue;
  if (["SCRIPT", "NOSCRIPT", "OPTION"].includes(one.tagName)) continue;
  const back = behind(one), front = over(parse(getComputedStyle(one).color), back);
  const [low, high] = [luminance(front), luminance(back)].sort((a, b) => a - b);
  ratios.push([(high + 0.05) / (low + 0.05), `${one.tagName}.${one.className} ${one.textContent.slice(0, 30)}`]);
}
return ratios.sort(([a], [b]) => a - b);"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_has_enough_contrast(page, vae_page, theme):
    page.open(vae_page, f"#t={theme}&n0.z0=size")
    # The strongest cell that there can be.
    page.run("document.querySelector('.cell').style.setProperty('--share', 1); say('a message'); showTour(0)")
    time.sleep(0.3)  # colours of selected rows fade in
    ratios = page.run(CONTRAST)
    page.click("#pick-button")
    ratios += page.run(CONTRAST)
    assert len(ratios) > 100
    assert [one for one in ratios if one[0] < 4.5] == []
    page.run("document.getElementById('picker').close()")


def test_the_theme_follows_the_system_until_one_is_chosen(page, vae_page):
    page.open(vae_page)
    color = "getComputedStyle(document.body).backgroundColor"
    seen = {}
    try:
        for scheme in ("dark", "light"):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            pressed = str(scheme == "dark").lower()
            page.wait(f"return document.getElementById('theme-button').ariaPressed === '{pressed}'")
            seen[scheme] = page.value(color)
        assert seen["dark"] != seen["light"]
        page.click("#theme-button")
        assert page.value(color) == seen["dark"]
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_screen_reader_has_a_name_for_all_that_can_be_used(page, vae_page):
    page.open(vae_page)
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    used = {"button", "slider", "combobox", "radio", "radiogroup", "application", "image", "link", "region"}
    shown = [node for node in nodes if node.get("role", {}).get("value") in used and not node["ignored"]]
    assert {"button", "slider", "combobox", "radio", "image"} <= {node["role"]["value"] for node in shown}
    assert [node["role"]["value"] for node in shown if not node.get("name", {}).get("value")] == []
    values = [node["value"]["value"] for node in shown if node["role"]["value"] == "slider"]
    assert len(values) == len(page.all(".slider input")) + len(page.all(".strip"))


def test_the_keyboard_keeps_its_place(page, vae_page):
    page.open(vae_page)
    focus = "document.activeElement.textContent"
    press(page, "#measures button", "\ue014")  # right: the next measure
    assert page.value("state.measure") == "importance"
    assert page.value(focus) == "DCI importance"
    press(page, "#models button", "\ue014")
    assert page.value("state.model") == 1
    assert page.value(focus) == "beta_vae, seed 1"
    press(page, ".slider .pencil", "\ue007")
    page.find(".slider .name").send_keys("mine\ue007")
    page.settle()
    assert page.value("document.activeElement.className") == "pencil"
    press(page, "#pick-button", "\ue007")
    assert page.find("#picker").is_displayed()
    press(page, "#picker-images button:nth-child(3)", "\ue007")
    assert not page.find("#picker").is_displayed()
    assert page.value("state.start") == 2
    page.click("#pick-button")
    press(page, "#picker-next", "\ue00c")
    assert not page.find("#picker").is_displayed()


def test_a_phones_width_needs_no_sideways_scrolling(page, vae_page):
    metrics = {"width": 390, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page.open(vae_page)
        assert page.value("document.documentElement.scrollWidth") <= 390
        # A finger along a row moves the latent.
        page.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        row = page.find(".strip-images")
        page.run("arguments[0].scrollIntoView({ block: 'center' })", row)
        box = page.run(
            "const { left, top, width, height } = arguments[0].getBoundingClientRect(); "
            "return [left, top, width, height]",
            row,
        )
        before = code(page)
        at = {"x": box[0] + 0.9 * box[2], "y": box[1] + box[3] / 2}
        touch = "Input.dispatchTouchEvent"
        page.driver.execute_cdp_cmd(touch, {"type": "touchStart", "touchPoints": [at]})
        page.driver.execute_cdp_cmd(touch, {"type": "touchEnd", "touchPoints": []})
        page.wait(f"return state.code.some((value, column) => value !== {before.tolist()}[column])")
        page.settle()
        # While it moves, the image follows.
        kept, image = code(page), page.pixels("#pictures .picture:last-child canvas")
        for kind, share in (("touchStart", 0.8), ("touchMove", 0.5), ("touchMove", 0.1)):
            at = {"x": box[0] + share * box[2], "y": box[1] + box[3] / 2}
            page.driver.execute_cdp_cmd(touch, {"type": kind, "touchPoints": [at]})
        page.wait("return preview !== null")
        page.settle()
        assert np.array_equal(code(page), kept)
        assert (page.pixels("#pictures .picture:last-child canvas") != image).any()
        page.driver.execute_cdp_cmd(touch, {"type": "touchEnd", "touchPoints": []})
    finally:
        page.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_long_name_and_two_models_fit_a_phone(page, vae_page):
    metrics = {"width": 390, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        name = "how_far_to_the_right_the_square_is_"
        page.open(vae_page, f"#{'&'.join(f'n{model}.z{i}={name * 2}' for model in (0, 1) for i in range(4))}")
        assert page.value("document.documentElement.scrollWidth") <= 390
        # Below each other, every row of a pair says whose it is.
        sides = [side.text for side in page.all(".pair[data-one] .side")]
        assert all(text.endswith(f"seed {number % 2}") for number, text in enumerate(sides))
        assert "right" not in page.find("#compare-note").text
        assert not page.find(".pair.head").is_displayed()
        # The tour shows the heading of a part that is higher than the screen, and not behind the image.
        page.run(
            "matchMedia = () => ({ matches: true }); showTour(tour().findIndex(([id]) => id === 'compare'))"
        )
        bottom = page.value("document.getElementById('image').getBoundingClientRect().bottom")
        top = page.value("document.getElementById('compare-heading').getBoundingClientRect().top")
        assert bottom <= top < page.value("document.getElementById('tour').getBoundingClientRect().top")
        # Of the matrix, which scrolls, the latent of a row stays in sight.
        page.run("const box = document.getElementById('matrix'); box.scrollLeft = box.scrollWidth")
        script = "return arguments[0].getBoundingClientRect().left"
        header, box = page.find(".matrix tbody th"), page.find("#matrix")
        assert page.run(script, header) >= page.run(script, box)
    finally:
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


# --- other models and data --------------------------------------------------------------------------


def test_a_multi_stage_model_has_rows_of_y_and_x(page, stages, tmp_path):
    data, run = stages
    page.open(write_page([run], tmp_path / "stages.html", data))
    assert [caption.text for caption in page.all("#pictures figcaption")] == ["start", "y", "x"]
    for strip in page.all(".strip"):
        column = int(strip.get_attribute("data-column"))
        shown = [
            line.get_attribute("data-stage") for line in strip.find_elements("css selector", ".strip-line")
        ]
        assert shown == (["y", "x"] if column < 4 else ["x"])
    now = torch.tensor(code(page)[None], dtype=torch.float32)
    with torch.no_grad():
        expected = run.method.eval().decode_stages(now)
    for number, stage in enumerate(("y", "x"), start=2):
        shown = page.pixels(f"#pictures .picture:nth-child({number}) canvas")[::4].reshape(32, 32) / 255
        np.testing.assert_allclose(shown, expected[stage][0, 0].numpy(), atol=2e-3 + 0.5 / 255)


def test_a_gan_has_code_and_noise_apart(page, vaes, tmp_path):
    data, _ = vaes
    method = uw.methods.create("infogan", data, num_categories=3, num_continuous=2, noise_size=5, width=4)
    run = uw.train(method, data, steps=2, batch_size=8)
    page.open(write_page([run], tmp_path / "gan.html", data))
    assert page.value("state.noise.length") == 5
    before, image = code(page), page.pixels("#pictures .picture:last-child canvas")
    page.click("#noise-tiles button:nth-child(3)")
    assert np.array_equal(code(page), before)
    assert (page.pixels("#pictures .picture:last-child canvas") != image).any()
    kept = page.value("Array.from(state.noise)")
    page.open(tmp_path / "gan.html", page.link())
    np.testing.assert_allclose(page.value("Array.from(state.noise)"), kept, atol=0.01)
    assert "e=" in page.link()  # still a link to this view
    page.click("#noise-button")
    assert not np.allclose(page.value("Array.from(state.noise)"), kept, atol=0.01)
    # The values of a category are never grey: the category is one thing.
    assert not {row.text for row in page.all(".matrix tr.inactive th")} & {"c0", "c1", "c2"}
    assert "by KL in nats" in page.find("#latents-note").text
    page.click("#silence-button")
    assert page.value("state.noise.every((value) => value === 0)")
    # The category is one of three values, not three sliders.
    page.run(
        "const box = document.querySelector('.slider select'); box.value = '2'; box.dispatchEvent(new Event('change'))"
    )
    page.settle()
    assert code(page)[:3].tolist() == [0, 0, 1]
    assert len(page.all(".strip:first-child canvas")) == 3


def test_a_method_without_encoder_starts_from_its_prior(page, vaes, tmp_path):
    data, _ = vaes
    run = uw.train(uw.methods.create("cgan", data, noise_size=4, width=4), data, steps=2, batch_size=8)
    page.open(write_page([run], tmp_path / "cgan.html", data))
    assert page.find("#picture-note").text == "Sample 1 of the prior."
    # What is picked or swapped is what the large image shows: the code with the noise of its tile.
    page.click("#pick-button")
    tile = page.pixels("#picker-images button:nth-child(6) canvas")
    page.click("#picker-images button:nth-child(6)")
    assert np.array_equal(page.pixels("#pictures canvas"), tile)
    page.open(tmp_path / "cgan.html", page.link())
    assert np.array_equal(page.pixels("#pictures canvas"), tile)
    page.click("#swap-tiles .tile")
    assert np.array_equal(page.pixels("#pictures canvas"), page.pixels("#swap-tiles .tile canvas"))
    assert not page.find("#open-button").is_displayed()
    assert [label.text.split("\n")[0] for label in page.all(".slider .label")] == ["x", "y", "scale"]


def test_curves_are_drawn_as_curves(page, tmp_path):
    data = uw.data.load("pendulum")
    method = uw.methods.create("vae", data, latent_size=3, reconstruction="gaussian")
    run = uw.train(method, data, steps=5, batch_size=16)
    page.open(write_page([run], tmp_path / "curves.html", data))
    before = page.pixels("#pictures .picture canvas")
    assert len(np.unique(before.reshape(-1, 4), axis=0)) > 2
    own = tmp_path / "curve.csv"
    own.write_text(",".join(f"{value:.4f}" for value in np.sin(np.linspace(0, 9, data.image_shape[0]))))
    page.find("#file").send_keys(str(own))
    page.wait("return state.start === 'own'")
    page.settle()
    assert (page.pixels("#pictures .picture canvas") != before).any()
    expected = run.encode(np.loadtxt(own, delimiter=",", dtype=np.float32)[None])
    np.testing.assert_allclose(code(page), expected[0], atol=2e-3)


def test_continuous_factors_and_rows_without_labels(page, tmp_path):
    rng = np.random.default_rng(0)
    size = rng.uniform(1, 3, 80)
    data = uw.data.from_arrays(rng.integers(0, 256, (80, 8, 8, 1), np.uint8))
    data = uw.data.with_labels(data, {row: {"size": size[row]} for row in range(60)})
    run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
    page.open(write_page([run], tmp_path / "page.html", data))
    assert page.value("factors[0].continuous")
    known = page.value("Array.from({ length: 80 }, (_, row) => Number.isFinite(factorValue(row, 0)))")
    assert sum(known) == 60
    assert "line the mean" not in page.find("#relation-note").text
    page.run(f"startFrom({known.index(False)})")
    assert page.find("#picture-note").text.endswith("size unknown")
    # Estimated from the rows with labels alone.
    codes, values = run.encode(data), data.factors(np.arange(80))[:, 0]
    labelled = ~np.isnan(values)
    binned = discretise(values[labelled][:, None], 10)
    expected = factor_matrices(codes[labelled], binned)["mutual_information"]
    shown = [
        [float(cell.text) for cell in row.find_elements("css selector", ".cell")]
        for row in page.all(".matrix tbody tr")
    ]
    order = [int(row.get_attribute("data-column")) for row in page.all(".slider")]
    np.testing.assert_allclose(shown, expected[order], atol=0.05)  # chance by permutations


def test_own_photographs_without_factors_and_fifty_latents(page, photographs, tmp_path, monkeypatch):
    data = uw.data.load(str(photographs), image_size=32)
    method = uw.methods.create("vae", data, latent_size=50, architecture={"name": "conv", "width": 0.25})
    run = uw.train(method, data, steps=3, batch_size=16)
    title = "</script><script>document.title='bad'</script><b>"
    names = {"z0": "</script><img src=x onerror=\"document.title='bad'\">"}
    page.open(write_page([run], tmp_path / "photographs.html", data, title, names))
    assert page.value("document.title") == title
    assert page.find("#title").text == title
    assert re.fullmatch(
        r"Image 1 of 40 · <img src=x onerror=alert\(\d+\)>\.png", page.find("#picture-note").text
    )
    page.click("#pick-button")
    assert "<img" in page.find("#picker-images button").get_attribute("aria-label")
    assert not page.all("img")
    page.click("#picker-close")
    assert len(page.all(".slider")) == 50
    assert not page.all("#title b, .slider img, .strip img")
    assert page.find("#factors-note").text.startswith("This data set has no factors.")
    assert not page.find("#matrix").is_displayed()
    assert not page.find("#scatter-color-label").is_displayed()
    assert len(page.all(".strip")) <= 10
    page.click("#more-button")
    assert len(page.all(".strip")) == 50
    assert page.value("imageChannels") == 3


def test_hostile_factor_names_stay_text(page, tmp_path):
    bad = "<img src=x onerror=alert(1)>"
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 1), np.uint8)
    data = uw.data.from_arrays(images, {bad: [f"{bad}{i % 2}" for i in range(60)]}, name=bad)
    run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
    page.open(write_page([run], tmp_path / "page.html", data))
    assert page.find(".matrix thead th").text == bad
    assert bad in page.find("#picture-note").text
    assert not page.all("img")


def test_categories_of_the_same_colour_share_an_entry_of_the_legend(page, tmp_path):
    rng = np.random.default_rng(0)
    factors = {"kind": np.arange(60) % 20, "on": np.arange(60) % 2}
    data = uw.data.from_arrays(rng.integers(0, 256, (60, 8, 8, 1), np.uint8), factors, categorical=["kind"])
    run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
    page.open(write_page([run], tmp_path / "page.html", data), "#c=0&f=1")
    entries = [entry.text for entry in page.all("#legend .entry")]
    assert entries == [*(f"{i}, {i + 12}" for i in range(8)), "8", "9", "10", "11"]
    # A factor with two values has no tick between them.
    shown = page.run("""const texts = [], drawn = CanvasRenderingContext2D.prototype, plain = drawn.fillText;
    drawn.fillText = function (text, ...rest) { texts.push(text); plain.call(this, text, ...rest) };
    drawRelation();
    drawn.fillText = plain;
    return texts""")
    assert shown[: shown.index("on")] == ["0", "1"]


def test_the_tour_speaks_of_what_there_is(page, tmp_path):
    data = uw.data.from_arrays(np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1), np.uint8))
    run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
    page.open(write_page([run], tmp_path / "page.html", data))
    texts = page.value("tour().map((step) => step.join(' ')).join(' ')")
    assert "cell" not in texts
    assert "factor" not in texts


def test_models_are_called_by_their_labels(page, vaes, tmp_path):
    data, runs = vaes
    path = write_page(runs, tmp_path / "labels.html", data, labels=["first <b>", "second"])
    page.open(path)
    assert page.find("#detail").text.startswith("first <b>: seed ")
    assert "beta =" not in page.find("#detail").text
    with pytest.raises(uw.UnweaveError, match="needs one for each of 2 runs"):
        write_page(runs, tmp_path / "labels.html", data, labels=["first"])


def test_a_notebook_shows_it_as_a_cell(page, vaes, tmp_path):
    data, (run, _) = vaes
    explorer = run.explore(data)
    assert repr(explorer).startswith("Explorer(a page of ")
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!DOCTYPE html><title>notebook</title>{explorer._repr_html_()}", encoding="utf-8")
    page.driver.get(notebook.as_uri())
    page.driver.switch_to.frame(page.find("iframe"))
    try:
        page.wait("return document.documentElement?.dataset.ready === 'true'")
        page.settle()
        before, image = code(page), page.pixels("#pictures .picture:last-child canvas")
        press(page, ".strip-images", *["\ue014"] * 10)
        assert not np.array_equal(code(page), before)
        assert (page.pixels("#pictures .picture:last-child canvas") != image).any()
        page.run("document.getElementById('link-button').click()")
        assert page.find("#message").text.startswith("A link needs the explorer's own file: add #z=")
    finally:
        page.driver.switch_to.default_content()


def test_names_of_the_page_are_what_the_command_reads(page, vae_page):
    page.open(vae_page)
    page.run(
        "window.saved = null; "
        "URL.createObjectURL = (blob) => { blob.text().then((text) => (window.saved = text)); return 'blob:none' }; "
        "HTMLAnchorElement.prototype.click = () => {}; setName(0, 'size')"
    )
    page.click("#names-button")
    page.wait("return window.saved")
    assert json.loads(page.value("window.saved")) == {"z0": "size"}
    assert "unweave names RUN names.json" in page.find("#message").text


@pytest.mark.parametrize("folder", ["run", "a run"])
def test_the_page_names_a_run_as_it_was_given_but_no_absolute_path(vaes, tmp_path, monkeypatch, folder):
    data, _ = vaes
    monkeypatch.chdir(tmp_path)
    method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    uw.train(method, data, steps=1, out=folder, pictures=False)
    named = f'"{folder}"' if " " in folder else folder
    assert f'"directory":{json.dumps(named)}' in render_page([uw.load(folder)], data)
    assert str(tmp_path) not in render_page([uw.load(tmp_path / folder)], data)
