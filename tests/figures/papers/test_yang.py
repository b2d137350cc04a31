"""The figures of Yang et al., from simulated studies."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from unweave.analyses import simulate_results
from unweave.analyses.correlated_noise import correlation_costs, scores_by_correlation
from unweave.figures.papers.yang import PAPER, costs, decline_table, invariance_table, violins
from unweave.study import NotInStudyError, Results

EXHIBIT = {exhibit.name: exhibit for exhibit in PAPER.exhibits}


def study(seeds=6, latents=(10,), correlations=(0.0, 0.9)):
    table = simulate_results(
        data=["small_norb", "dsprites"], methods=["factor_vae", "beta_vae"], seeds=seeds, strengths=1,
        correlations=correlations,
    )  # fmt: skip
    return Results("s", pd.concat([table.assign(latent_size=n, run=f"{n}-" + table["run"]) for n in latents]))


def test_violins_stand_at_their_methods_with_medians_drawn():
    results = study()
    figure = violins(results)
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    assert axes.get_title() == "SmallNORB"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["β-VAE", "FactorVAE"]
    assert len(axes.collections) == 4 * 3  # two methods, two correlations: a violin, its points, its median
    rows = scores_by_correlation(results.table).query(
        "data == 'small_norb' and method == 'beta_vae' and correlation == 0.9"
    )
    lines = axes.collections[5].get_segments()[0]
    assert lines[:, 1].tolist() == [rows["value"].median()] * 2
    assert 0 < lines[:, 0].mean() < 0.5


def test_few_seeds_are_drawn_as_points():
    axes = violins(study(seeds=3)).axes[0]
    assert len(axes.collections) == 4 * 2


def test_figure_5_is_of_twenty_latents():
    figure = EXHIBIT["yang-fig05-mig-20-latents"].make(study(latents=(10, 20)))
    assert figure.legends[0].get_title().get_text() == "20 latents"
    assert violins(study(latents=(10, 20))).legends[0].get_title().get_text() == "10 latents"
    with pytest.raises(NotInStudyError, match="20 latents"):
        EXHIBIT["yang-fig05-mig-20-latents"].make(study())


def test_costs_are_of_one_data_set():
    results = study()
    figure = costs(results)
    FigureCanvasAgg(figure).draw()
    assert figure.legends[0].get_title().get_text() == "dSprites, 10 latents"
    assert len(figure.axes) == 4
    runs = correlation_costs(results.table).query(
        "data == 'dsprites' and method == 'beta_vae' and correlation == 0.9"
    )
    points = np.asarray(figure.axes[0].collections[1].get_offsets())
    np.testing.assert_allclose(points, runs[["reconstruction", "kl"]])
    assert costs(results, "small_norb").legends[0].get_title().get_text() == "SmallNORB, 10 latents"
    with pytest.raises(NotInStudyError, match="cars3d"):
        costs(results, "cars3d")


def test_many_correlations_all_have_a_colour():
    figure = violins(study(seeds=2, correlations=tuple(np.arange(8) / 10)))
    assert len(figure.legends[0].get_patches()) == 8


def test_the_table_tells_the_decline():
    rows = decline_table(study(seeds=2, latents=(20, 10)))
    assert rows["Latents"].tolist() == [10] * 4 + [20] * 4
    assert rows["Method"].tolist() == ["β-VAE", "FactorVAE"] * 4
    assert rows["Data set"].tolist()[:4] == ["SmallNORB", "SmallNORB", "dSprites", "dSprites"]
    assert rows["Runs"].unique().tolist() == ["2 + 2"]
    assert not rows["Difference"].str.contains(r"\[").any()  # of two seeds
    many = decline_table(study(seeds=5))
    assert many["Difference"].str.contains(r"\[").all()


@pytest.mark.parametrize("exhibit", PAPER.exhibits, ids=lambda exhibit: exhibit.name)
def test_a_study_without_correlation_says_so(exhibit):
    with pytest.raises(NotInStudyError, match="correlation"):
        exhibit.make(study(seeds=2, correlations=(0.0,)))


def test_the_table_of_theorem_1_has_both_sides():
    results = study(seeds=2)
    rows = results.table[results.table["metric"] == "mig"]
    parts = {
        "information_invariance": 0.4,
        "information_invariance.left": 1.067,
        "information_invariance.right": 1.068,
    }
    added = [rows.assign(metric=name, value=value) for name, value in parts.items()]
    table = pd.concat([results.table, *added], ignore_index=True)
    found = invariance_table(replace(results, table=table))
    assert found["Theorem 1, left side"].unique().tolist() == [1.067]
    assert found["Theorem 1, right side"].unique().tolist() == [1.068]
    assert found["Gap of Assumption 2"].unique().tolist() == [0.4]
    assert set(found["s"]) == {0.0, 0.9}


def test_axes_make_no_effect_of_noise():
    results = study(correlations=(0.0, 1e-6))  # the total correlation of such noise is 0
    noise = np.random.default_rng(0).uniform(0.3, 0.3001, len(results.table))
    flat = Results("s", results.table.assign(value=noise))
    for axes in violins(flat).axes:
        low, high = axes.get_ylim()
        assert high - low == pytest.approx(0.1)
    figure = costs(flat)
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert high - low == pytest.approx(0.5)
        low, high = axes.get_xlim()
        assert high - low == pytest.approx(0.05 * 0.30005, rel=1e-3)


def test_wide_axes_stay_as_they_are():
    figure = violins(study())
    spans = [np.ptp(axes.get_ylim()) for axes in figure.axes]
    assert min(spans) > 0.1


def test_costs_at_a_single_error_are_left_out():
    results = study()
    with pytest.raises(NotInStudyError, match="a single reconstruction error"):
        costs(Results("s", results.table.assign(value=0.5)))
