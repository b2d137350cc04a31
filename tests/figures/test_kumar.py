"""The figures and tables of Kumar et al., from simulated scores and from trained runs."""

import runpy
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import unweave as uw
from unweave.figures.kumar import attribute_table, best_traversals, score_table, trade_off, values_per_image
from unweave.study import NotInStudyError, Results
from unweave.study.analyses import kumar

simulate = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "simulated_study.py"))["simulate"]


@pytest.fixture(scope="module")
def table():
    return simulate(data=["dsprites", "cars3d"], methods=["factor_vae", "beta_vae"], seeds=3, strengths=2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A study of two tiny runs on the pendulum, a data set that needs no files."""
    folder = tmp_path_factory.mktemp("runs")
    data = uw.data.load("pendulum")
    table = simulate(data=["pendulum"], methods=["beta_vae", "factor_vae"], seeds=1, strengths=1)
    for run, name in table.drop_duplicates("run")[["run", "method"]].to_numpy():
        method = uw.methods.create(name, data, latent_size=2, reconstruction="gaussian")
        uw.train(method, data, steps=1, batch_size=4, out=folder / run)
    return Results("s", table, runs=folder)


def test_points_are_labelled_with_their_strengths(table):
    figure = trade_off(Results("s", table))
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes) == 4
    sprites = figure.axes[0]
    assert sprites.get_title() == "dSprites"
    assert sprites.get_xlabel() == "reconstruction error, sum over pixels"
    assert sorted(text.get_text() for text in sprites.texts) == ["1", "10", "2", "20"]
    found = kumar.trade_off(table).query("data == 'dsprites' and method == 'beta_vae'")
    line = next(line for line in sprites.lines if len(line.get_xdata()) == 2 and line.get_marker() == "o")
    assert line.get_xdata().tolist() == found["error"].tolist()
    assert line.get_ydata().tolist() == found["sap"].tolist()


def test_the_table_has_a_row_per_setting_and_marks_the_best(table):
    rows = score_table(Results("s", table))
    assert rows["Method"].tolist() == 2 * [
        "β-VAE (β = 1)",
        "β-VAE (β = 2)",
        "FactorVAE (γ = 10)",
        "FactorVAE (γ = 20)",
    ]
    assert rows.columns.tolist() == [
        "Data set", "Method", "Z-diff", "SAP", "Reconstruction error", "Best SAP", "Runs",
    ]  # fmt: skip
    assert (rows["Best SAP"] == "✓").sum() == 4
    assert rows["SAP"].str.fullmatch(r"\d\.\d{3} \[\d\.\d{3}, \d\.\d{3}\]").all()


def test_the_attribute_table_shows_twelve_in_per_cent(table):
    base = table[
        (table["metric"] == "mig") & (table["representation"] == "mean") & (table["data"] == "dsprites")
    ]
    parts = [
        base.assign(
            metric=f"attribute_classification.attribute_{k}", value=0.5 + 0.01 * k * (base["strength"] == 2)
        )
        for k in range(14)
    ]
    rows = attribute_table(Results("s", pd.concat([table, *parts])))
    assert rows.columns.tolist() == ["Data set", "Method", *(f"attribute {k}" for k in range(13, 1, -1))]
    assert rows.loc[rows["Method"] == "β-VAE (β = 2)", "attribute 13"].tolist() == [63.0]
    assert rows["attribute 2"].tolist() == [50.0, 52.0, 50.0, 50.0]
    with pytest.raises(NotInStudyError, match="attribute"):
        attribute_table(Results("s", table))


def test_traversals_of_trained_runs(trained):
    alone = best_traversals(
        Results("s", trained.table[trained.table["method"] == "beta_vae"], runs=trained.runs), columns=3
    )
    both = best_traversals(trained, columns=3)
    assert both.width > 1.5 * alone.width - 100
    assert both.height == alone.height


def test_errors_are_per_pixel_where_there_are_runs(trained):
    assert values_per_image(trained) == {"pendulum": 100}
    assert trade_off(trained).axes[0].get_xlabel() == "reconstruction error, per pixel"
    sums, means = (
        kumar.trade_off(trained.table, values_per_image=sizes)["error"] for sizes in ({}, {"pendulum": 100})
    )
    assert (sums / 100).tolist() == means.tolist()


def test_what_cannot_be_shown_is_said(table, tmp_path):
    with pytest.raises(NotInStudyError, match="scores only"):
        best_traversals(Results("s", table))
    with pytest.raises(NotInStudyError, match="dsprites cannot be shown"):
        best_traversals(Results("s", table, runs=tmp_path))
    with pytest.raises(NotInStudyError, match="no SAP on shapes3d"):
        best_traversals(Results("s", table, runs=tmp_path), data="shapes3d")
    assert values_per_image(Results("s", table, runs=tmp_path)) == {}
