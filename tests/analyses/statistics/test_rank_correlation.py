"""Rank correlations against SciPy's, and their intervals against resampling the rows themselves."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from unweave.analyses.statistics.rank_correlation import rank_correlations


@pytest.fixture
def scores(rng):
    quality = rng.normal(size=120)
    return pd.DataFrame(
        {
            "seed": np.arange(120) % 12,
            "x": quality + rng.normal(size=120),
            "y": np.round(quality + rng.normal(size=120)),  # with ties
            "z": rng.random(120),
        }
    )


def test_values_are_spearmans(scores):
    found = rank_correlations(scores, ["x", "y"], ["y", "z"], draws=10)
    assert found[["row", "column"]].to_numpy().tolist() == [["x", "y"], ["x", "z"], ["y", "y"], ["y", "z"]]
    expected = [stats.spearmanr(scores[r], scores[c]).statistic for r in "xy" for c in "yz"]
    np.testing.assert_allclose(found["value"], expected, atol=1e-12)
    assert (found["n"] == 120).all()


def test_a_resample_is_that_of_the_repeated_rows(scores):
    found = rank_correlations(scores, ["x"], ["y"], draws=1, seed=5).iloc[0]
    counts = np.random.default_rng(5).multinomial(12, np.full(12, 1 / 12))
    repeated = scores.loc[scores.index.repeat(counts[scores["seed"]])]
    expected = stats.spearmanr(repeated["x"], repeated["y"]).statistic
    assert found["low"] == pytest.approx(expected, abs=1e-12)
    assert found["high"] == pytest.approx(expected, abs=1e-12)


def test_the_interval_is_wider_when_the_runs_of_a_seed_are_alike(rng):
    seed = np.repeat(np.arange(30), 20)
    shared = rng.normal(size=(2, 30))[:, seed]
    alone = pd.DataFrame({"seed": seed, "x": rng.normal(size=600), "y": rng.normal(size=600)})
    alike = alone.assign(x=alone["x"] + 3 * shared[0], y=alone["y"] + 3 * shared[1])
    widths = []
    for table in (alone, alike):
        found = rank_correlations(table, ["x"], ["y"]).iloc[0]
        widths.append(found["high"] - found["low"])
    # Independent runs: about 2 * 1.96 / sqrt(600). All runs of a seed the same: about 2 * 1.96 / sqrt(30).
    assert widths[0] == pytest.approx(0.16, rel=0.25)
    assert widths[1] > 3 * widths[0]


def test_each_pair_is_compared_on_the_runs_that_have_both(scores):
    scores.loc[:9, "x"] = np.nan
    found = rank_correlations(scores, ["x", "y"], ["z"], draws=20).set_index("row")
    assert found["n"].to_dict() == {"x": 110, "y": 120}
    expected = stats.spearmanr(scores["x"][10:], scores["z"][10:]).statistic
    assert found.loc["x", "value"] == pytest.approx(expected, abs=1e-12)


def test_what_cannot_be_known_is_nan(scores):
    constant = rank_correlations(scores.assign(x=1.0), ["x"], ["y"], draws=20).iloc[0]
    assert constant[["value", "low", "high"]].isna().all()
    assert rank_correlations(scores[:2], ["x"], ["y"]).iloc[0][["value", "low", "high"]].isna().all()
    two_seeds = rank_correlations(scores[scores["seed"] < 2], ["x"], ["y"]).iloc[0]
    assert not np.isnan(two_seeds["value"])
    assert two_seeds[["low", "high"]].isna().all()


def test_perfect_agreement_has_no_spread(scores):
    found = rank_correlations(scores.assign(w=-np.exp(scores["x"])), ["x"], ["w"]).iloc[0]
    assert found[["value", "low", "high"]].tolist() == pytest.approx([-1, -1, -1])
