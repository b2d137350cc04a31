"""Every figure and table of Locatello et al. from small studies."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

import unweave as uw
from unweave.figures.locatello import EXHIBITS
from unweave.figures.style import paper_style
from unweave.study import NotInStudyError, Results
from unweave.study.results import as_table

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
BY_NUMBER = {exhibit.name.split("-")[1]: exhibit for exhibit in EXHIBITS}


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
    assert list(BY_NUMBER) == [f"fig{n:02}" for n in range(1, 12)] + ["table1"] + [
        f"fig{n}" for n in range(12, 17)
    ]
    for exhibit in EXHIBITS:
        assert exhibit.source.startswith("Locatello et al., ")
        assert exhibit.caption.endswith(".")


@pytest.mark.parametrize("exhibit", EXHIBITS[1:], ids=lambda exhibit: exhibit.name)
def test_an_exhibit_is_drawn_from_a_small_study(exhibit):
    made = exhibit.make(study())
    if isinstance(made, pd.DataFrame):
        assert len(made) == 10
        return
    assert isinstance(made, Figure)
    shown = " ".join(texts(drawn(made)))
    assert "Cars3D" in shown or exhibit.name.split("-")[1] in ("fig05", "fig10")
    assert "runs" in shown or "settings" in shown  # it says how many


@pytest.mark.parametrize("exhibit", EXHIBITS[1:], ids=lambda exhibit: exhibit.name)
def test_a_study_of_one_data_set_and_two_seeds_is_drawn_but_for_transfer(exhibit):
    results = study(data=("shapes",), seeds=2)
    if exhibit.name.split("-")[1] in ("fig10", "fig11"):
        with pytest.raises(NotInStudyError, match="one data set"):
            exhibit.make(results)
    else:
        made = exhibit.make(results)
        assert isinstance(made, pd.DataFrame) or drawn(made)


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_a_study_without_the_scores_says_what_is_missing(exhibit):
    table = study().table
    with pytest.raises(NotInStudyError, match="the study has"):
        exhibit.make(Results("other", table.assign(metric="z_diff")))


def test_heat_maps_have_the_correlations_times_100():
    results = study(data=("cars3d",))
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
    picture = BY_NUMBER["fig01"].make(trained)
    assert isinstance(picture, Image.Image)
    np.testing.assert_array_equal(np.asarray(picture), np.asarray(BY_NUMBER["fig01"].make(trained)))
    assert picture.width > 12 * 64


def test_reconstructions_need_runs_and_their_data(trained):
    with pytest.raises(NotInStudyError, match="scores only"):
        BY_NUMBER["fig01"].make(study())
    elsewhere = Results("gone", trained.table.assign(run="b"), trained.runs)
    with pytest.raises(NotInStudyError, match="not a run directory"):
        BY_NUMBER["fig01"].make(elsewhere)
