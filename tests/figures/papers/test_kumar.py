"""The figures and tables of Kumar et al., from simulated scores and from trained runs."""

import shutil
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import unweave as uw
from unweave.analyses import simulate_results
from unweave.analyses.reconstruction import reconstruction_trade_off
from unweave.figures.papers.kumar import (
    PAPER,
    attribute_table,
    best_traversals,
    paper_traversals,
    score_table,
    trade_off,
    values_per_image,
)
from unweave.figures.traversal import traversal_units
from unweave.study import NotInStudyError, Results


@pytest.fixture(scope="module")
def table():
    return simulate_results(
        data=["dsprites", "cars3d"], methods=["factor_vae", "beta_vae"], seeds=3, strengths=2
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A study of two tiny runs on the pendulum, a data set that needs no files."""
    folder = tmp_path_factory.mktemp("runs")
    data = uw.data.load("pendulum")
    table = simulate_results(data=["pendulum"], methods=["beta_vae", "factor_vae"], seeds=1, strengths=1)
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
    found = reconstruction_trade_off(table).query("data == 'dsprites' and method == 'beta_vae'")
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
    assert rows["SAP"].str.fullmatch(r"\d\.\d{3} \(\d\.\d{3}, \d\.\d{3}, \d\.\d{3}\)").all()  # three seeds


def test_the_attribute_table_shows_twelve_in_per_cent(table):
    base = table[
        (table["metric"] == "mig") & (table["representation"] == "mean") & (table["data"] == "dsprites")
    ]
    parts = [
        base.assign(
            metric=f"attribute_classification.attribute_{k}",
            value=0.5 + 0.01 * k * (base["strength"] == 2) + 0.001 * base["seed"],
        )
        for k in range(14)
    ]
    rows = attribute_table(Results("s", pd.concat([table, *parts])))
    attributes = [f"attribute {k}" for k in range(13, 1, -1)]
    assert rows.columns.tolist() == ["Data set", "Method", *attributes, "Runs"]
    # Seeds add 0, 0.1 and 0.2 per cent.
    shown = rows.loc[rows["Method"] == "β-VAE (β = 2)", "attribute 13"].tolist()
    assert shown == ["63.1 (63.0, 63.1, 63.2)"]
    plain = "50.1 (50.0, 50.1, 50.2)"
    assert rows["attribute 2"].tolist() == [plain, "52.1 (52.0, 52.1, 52.2)", plain, plain]
    assert rows["Runs"].tolist() == [3] * 4
    with pytest.raises(NotInStudyError, match="attribute"):
        attribute_table(Results("s", table))


def test_a_method_without_strength_has_its_row_in_the_attribute_table(table):
    vae = table[(table["metric"] == "mig") & (table["representation"] == "mean") & (table["strength"] == 1)]
    vae = vae.assign(method="vae", strength=np.nan, strength_name="", metric="attribute_classification.hat")
    rows = attribute_table(Results("s", vae.assign(value=0.5)))
    assert rows[["Method", "hat"]].drop_duplicates().to_numpy().tolist() == [
        ["VAE", "50.0 (50.0, 50.0, 50.0)"]
    ]


def test_traversals_of_trained_runs(trained):
    one = Results("s", trained.table[trained.table["method"] == "beta_vae"], runs=trained.runs)
    alone, both = (best_traversals(results, columns=3)["pendulum"] for results in (one, trained))
    assert texts(alone)[0] == "Pendulum, β-VAE (β = 1)"
    assert texts(both)[: len(texts(alone))] == texts(alone)
    assert any(text.startswith("Pendulum, FactorVAE") for text in texts(both))
    assert both.get_figheight() <= alone.get_figheight()  # side by side
    assert texts(alone)[-3:] == ["-2.0", "0.0", "2.0"]


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def test_text_beside_traversals_can_be_read_at_paper_width(trained):
    figure = best_traversals(trained)["pendulum"]
    assert figure.get_figwidth() == 6.75
    assert min(text.get_fontsize() for text in figure.axes[0].texts) >= 6
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [
        text.get_window_extent(canvas.get_renderer()) for text in figure.axes[0].texts if text.get_text()
    ]
    boxes += [image.get_window_extent(canvas.get_renderer()) for image in figure.axes[0].images]
    assert not [(a, b) for a, b in combinations(boxes, 2) if a.overlaps(b)]
    assert all(figure.bbox.contains(*corner) for box in boxes for corner in (box.min, box.max))


def test_the_units_of_a_traversal_are_told_where_the_prior_depends_on_labels(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 1), np.uint8)
    data = uw.data.from_arrays(images, factors=np.arange(12)[:, None] % 3, names=["kind"])
    rows = {}
    for name in ("beta_vae", "idvae"):
        method = uw.methods.create(
            name, data, latent_size=2, architecture="mlp", labels=["kind"] if name == "idvae" else None
        )
        rows[name] = traversal_units(method)
    assert rows == {"beta_vae": "", "idvae": ", in deviations of its codes (labels not given)"}
    caption = next(one.caption for one in PAPER.exhibits if one.name == "kumar-traversals-best")
    assert "-2 to 2" not in caption
    assert "where a heading says so, they count standard deviations of its codes" in caption


def test_each_data_set_has_its_picture_and_what_is_missing_is_said(trained):
    other = trained.table.assign(data="cars3d", run="other-" + trained.table["run"])
    found = best_traversals(Results("s", pd.concat([trained.table, other]), runs=trained.runs), columns=3)
    assert list(found) == ["pendulum"]
    assert "Not shown: Cars3D, β-VAE (β = 1)" in " ".join(texts(found["pendulum"]))
    twice = shutil.copytree(trained.runs, trained.runs.parent / "twice")
    for run in trained.table["run"].unique():
        shutil.copytree(twice / run, twice / f"other-{run}")
    found = best_traversals(Results("s", pd.concat([trained.table, other]), runs=twice), columns=3)
    assert list(found) == ["pendulum", "cars3d"]
    assert texts(found["cars3d"])[0] == "Cars3D, β-VAE (β = 1)"


def test_errors_are_per_pixel_where_there_are_runs(trained):
    assert values_per_image(trained) == {"pendulum": 100}
    assert trade_off(trained).axes[0].get_xlabel() == "reconstruction error, per pixel"
    sums, means = (
        reconstruction_trade_off(trained.table, values_per_image=sizes)["error"]
        for sizes in ({}, {"pendulum": 100})
    )
    assert (sums / 100).tolist() == means.tolist()


def test_what_cannot_be_shown_is_said(table, tmp_path):
    with pytest.raises(NotInStudyError, match="scores only"):
        best_traversals(Results("s", table))
    with pytest.raises(NotInStudyError, match="cannot be shown: dSprites, β-VAE"):
        best_traversals(Results("s", table, runs=tmp_path))
    assert values_per_image(Results("s", table, runs=tmp_path)) == {}


def test_traversals_at_the_papers_settings_say_what_the_study_lacks(trained):
    sprites = Results("s", trained.table.assign(data="dsprites"), runs=trained.runs)
    with pytest.raises(NotInStudyError, match="none of the settings"):
        paper_traversals(trained)
    with pytest.raises(NotInStudyError, match="scores only"):
        paper_traversals(Results("s", sprites.table))
    found = paper_traversals(sprites, columns=3)
    assert list(found) == ["dsprites"]
    said = " ".join(texts(found["dsprites"]))
    assert said.startswith("dSprites, β-VAE (β = 1)")
    lacking = "lacks β-VAE 4, DIP-VAE-II 5, β-VAE 60, DIP-VAE-II 500, DIP-VAE-I 10."
    assert lacking in said.replace("\n", " ")


def test_axes_make_no_effect_of_noise(table):
    noise = np.random.default_rng(0).uniform(0.3, 0.3001, len(table))
    for axes in trade_off(Results("s", table.assign(value=noise))).axes:
        assert np.ptp(axes.get_ylim()) == pytest.approx(0.1)
        assert np.ptp(axes.get_xlim()) == pytest.approx(0.05 * 0.30005, rel=1e-3)


def test_a_trade_off_of_a_single_setting_is_left_out(table):
    single = table[(table["strength"] == 1) & (table["method"] == "beta_vae") & (table["data"] == "dsprites")]
    assert not single.empty
    with pytest.raises(NotInStudyError, match="a single reconstruction error: a figure against it"):
        trade_off(Results("s", single))
