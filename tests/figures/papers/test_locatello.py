"""Every figure and table of Locatello et al. from small studies."""

import itertools
import shutil

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

import unweave as uw
from unweave.figures.papers.kumar import best_traversals
from unweave.figures.papers.locatello import PAPER
from unweave.figures.style import paper_style
from unweave.study import NotInStudyError, Results
from unweave.study.collecting import collect
from unweave.study.driver import prepare
from unweave.study.perform import load_data
from unweave.study.results import as_table
from unweave.study.source import Source
from unweave.study.spec import check
from unweave.study.worker import work

METRICS = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "sap", "udr", "gaussian_total_correlation")
TASKS = [
    f"downstream_{name}.{part}"
    for name in ("logistic", "gbt")
    for part in (10, 100, 1000, 10000, "efficiency")
]
SAMPLED = (
    "gaussian_total_correlation",
    "unsupervised.reconstruction",
    "unsupervised.kl",
    "unsupervised.elbo",
)
BY_NUMBER = {exhibit.name.split("-")[1]: exhibit for exhibit in PAPER.exhibits}


def study(data=("dsprites", "cars3d"), methods=("beta_vae", "annealed_vae"), strengths=2, seeds=3):
    """Scores drawn at random, of runs on a full grid."""
    rng = np.random.default_rng(0)
    measured = [(name, "mean") for name in (*METRICS, *TASKS)] + [(name, "sampled") for name in SAMPLED]
    grid = itertools.product(data, methods, range(strengths), range(seeds))
    rows = [
        {
            "run": "-".join(map(str, point)),
            **dict(zip(("data", "method", "strength", "seed"), point, strict=True)),
            "strength_name": "beta",
            "correlation": 0.0,
            "latent_size": 10,
            "steps": 1,
            "settings": "{}",
            "metric": metric,
            "representation": representation,
            "protocol": "dlib",
            "value": rng.random(),
            "seconds": 0.0,
        }
        for point in grid
        for metric, representation in measured
    ]
    return Results("random", as_table(rows))


def drawn(figure):
    """Draws a figure; warnings are errors here, so a figure that does not fit its page would fail."""
    with paper_style():
        FigureCanvasAgg(figure).draw()
    return figure


def texts(figure):
    found = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        found += [axes.get_title(), axes.get_ylabel(), *(text.get_text() for text in axes.texts)]
    return [text for text in found if text]


def test_exhibits_are_complete_and_in_order():
    numbers = [name for name in BY_NUMBER if name != "explained"]
    assert numbers == [f"fig{n:02}" for n in range(1, 12)] + ["table1"] + [f"fig{n}" for n in range(12, 17)]
    for exhibit in PAPER.exhibits:
        assert exhibit.source.startswith("Locatello et al., ")
        assert exhibit.caption.endswith(".")


@pytest.mark.parametrize("exhibit", PAPER.exhibits[1:], ids=lambda exhibit: exhibit.name)
def test_an_exhibit_is_drawn_from_a_small_study(exhibit):
    made = exhibit.make(study())
    if isinstance(made, pd.DataFrame):
        assert len(made) > 0
        return
    assert isinstance(made, Figure)
    shown = " ".join(texts(drawn(made)))
    assert "Cars3D" in shown or exhibit.name.split("-")[1] in ("fig05", "fig10")
    assert "runs" in shown or "settings" in shown  # it says how many


@pytest.mark.parametrize("exhibit", PAPER.exhibits[1:], ids=lambda exhibit: exhibit.name)
def test_a_study_of_one_data_set_and_two_seeds_is_drawn_but_for_transfer(exhibit):
    results = study(data=("shapes",), seeds=2)
    if exhibit.name.split("-")[1] in ("fig10", "fig11"):
        with pytest.raises(NotInStudyError, match="one data set"):
            exhibit.make(results)
    else:
        made = exhibit.make(results)
        assert isinstance(made, pd.DataFrame) or drawn(made)


@pytest.mark.parametrize("exhibit", PAPER.exhibits, ids=lambda exhibit: exhibit.name)
def test_a_study_without_the_scores_says_what_is_missing(exhibit):
    table = study().table
    with pytest.raises(NotInStudyError, match="the study has"):
        exhibit.make(Results("other", table.assign(metric="z_diff")))


def test_heat_maps_have_the_correlations_times_100():
    results = study(data=("cars3d",), seeds=5)
    table = results.table
    mig = table.loc[table["metric"] == "mig", "value"].to_numpy()
    table.loc[table["metric"] == "dci", "value"] = -mig
    kept = table[table["metric"].isin(["mig", "dci"])]
    (axes,) = drawn(BY_NUMBER["fig06"].make(Results("two", kept))).axes
    assert [text.get_text() for text in axes.texts] == ["100", "−100", "−100", "100"]
    assert all(text.get_fontweight() == "bold" for text in axes.texts)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["MIG", "DCI"]


def test_lines_are_the_medians_of_each_method():
    results = study(data=("cars3d",), seeds=3)
    table = results.table
    figure = drawn(BY_NUMBER["fig15"].make(results))
    rows = table[(table["metric"] == "gaussian_total_correlation") & (table["representation"] == "sampled")]
    medians = rows.groupby(["method", "strength"])["value"].median()
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    for line, method in zip(lines, ("beta_vae", "annealed_vae"), strict=True):
        np.testing.assert_allclose(line.get_ydata(), medians[method])
    without = BY_NUMBER["fig02"].make(results)
    assert sum(len(line.get_xdata()) == 2 for line in without.axes[0].lines) == 1


def test_a_cloud_has_markers_where_two_methods_share_a_colour():
    plain = study(data=("cars3d",), methods=("beta_vae", "factor_vae"))
    mixed = study(data=("cars3d",), methods=("factor_vae", "ivae"))
    for results, markers in ((plain, ["o", "o"]), (mixed, ["s", "h"])):
        figure = drawn(BY_NUMBER["fig13"].make(results))
        assert [handle.get_marker() for handle in figure.legends[0].legend_handles] == markers
        points = sum(len(cloud.get_offsets()) for cloud in figure.axes[0].collections)
        assert points == 2 * 2 * 3
        assert len(figure.axes[0].collections) == len(set(markers))


def test_table_1_says_what_was_compared():
    table = BY_NUMBER["table1"].make(study())
    assert table["setting chosen by"].unique().tolist() == ["a metric", "UDR", "ELBO", "chance"]
    assert table["probability"].between(0, 1).all()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    data = uw.data.load("solids3d")
    method = uw.methods.create("beta_vae", data, latent_size=2)
    uw.train(method, data, steps=1, batch_size=2, out=folder / "a", log_every=1)
    table = study(data=("solids3d",), methods=("beta_vae",), strengths=1, seeds=1).table.assign(run="a")
    return Results("trained", table, folder)


def test_reconstructions_stand_beside_their_images(trained):
    first, again = (drawn(BY_NUMBER["fig01"].make(trained)) for _ in range(2))
    (image,) = first.axes[0].images
    np.testing.assert_array_equal(image.get_array(), again.axes[0].images[0].get_array())
    height, width, _ = image.get_array().shape
    assert width > 12 * height
    assert texts(first) == ["solids3d", "β-VAE, beta = 0, seed 0"]
    assert first.get_figwidth() == 6.75
    assert min(text.get_fontsize() for text in first.axes[0].texts) >= 6


@pytest.fixture
def own_images(tmp_path):
    """A study of one run on a folder of images, made as a study makes it."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for place in range(6):
        pixels = np.zeros((12, 12), np.uint8)
        pixels[2 * place : 2 * place + 2] = 255
        Image.fromarray(pixels).save(folder / f"{place}.png")
    (folder / "factors.csv").write_text("\n".join(["file,row", *(f"{n}.png,{n}" for n in range(6))]))
    values = {
        "name": "own",
        "training": {"steps": 1, "batch_size": 2, "architecture": "mlp", "latent_size": 2, "image_size": 8},
        "runs": {"data": str(folder), "method": "beta_vae", "beta": 4, "seed": 0},
        "evaluation": {
            "metrics": [{"metric": "unsupervised", "num_images": 4}],
            "num_train": 4,
            "num_test": 2,
        },
    }
    study_folder = prepare(check(Source(values)), Source(values), tmp_path / "out")
    work(study_folder, "cpu")
    return collect(study_folder)


def test_a_study_of_ones_own_images_shows_them(own_images):
    figure = drawn(BY_NUMBER["fig01"].make(own_images))
    assert "/mine" in "".join(texts(figure))
    strip = np.asarray(figure.axes[0].images[0].get_array())
    tile = strip[
        :, : strip.shape[0]
    ]  # the first: an image of the folder, at the size that the study reads it
    shown = {tuple(np.asarray(Image.fromarray(tile).resize((8, 8)).convert("L")).max(axis=1) > 127)}
    folder = own_images.table["data"].iloc[0]
    expected = {
        tuple(image.max(axis=(1, 2)) > 127)
        for image in uw.data.from_folder(folder, size=8).images(np.arange(6))
    }
    assert shown <= expected
    table = own_images.table.assign(metric="sap", representation="mean")
    traversed = best_traversals(Results("own", table, own_images.runs), columns=3)
    assert list(traversed) == [folder]
    moved = shutil.move(folder, f"{folder}-moved")
    load_data.cache_clear()
    elsewhere = Results("own", own_images.table.assign(data=str(moved)), own_images.runs)
    assert "/mine-moved" in "".join(texts(BY_NUMBER["fig01"].make(elsewhere)))
    with pytest.raises(NotInStudyError, match="no model can be shown"):
        BY_NUMBER["fig01"].make(own_images)


def test_reconstructions_need_runs_and_their_data(trained):
    with pytest.raises(NotInStudyError, match="scores only"):
        BY_NUMBER["fig01"].make(study())
    elsewhere = Results("gone", trained.table.assign(run="b"), trained.runs)
    with pytest.raises(NotInStudyError, match="not a run directory"):
        BY_NUMBER["fig01"].make(elsewhere)
