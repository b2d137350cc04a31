"""Bootstrap intervals against closed forms, and grouped against one group at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from unweave.analyses.statistics.intervals import bootstrap_interval, bootstrap_samples, grouped_intervals
from unweave.errors import ArgumentError


def test_the_mean_of_normal_data_is_covered_as_often_as_the_level_says() -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"group": np.repeat(np.arange(2000), 50), "value": rng.normal(3.0, 2.0, 100_000)})
    found = grouped_intervals(table, ["group"], statistic="mean", level=0.9)
    covered = ((found["low"] <= 3.0) & (found["high"] >= 3.0)).mean()
    assert 0.86 < covered < 0.92  # 0.9 less the percentile bootstrap's small-sample loss of about 0.01


def test_the_interval_of_a_mean_is_the_normal_interval_for_many_values() -> None:
    values = np.random.default_rng(2).normal(size=5000)
    low, high = bootstrap_interval(values, "mean", draws=4000)
    error = values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


def test_the_resampled_median_has_its_exact_distribution() -> None:
    # Of n = 2m + 1 values, the sample median is at most the k-th if at least m + 1 draws are among the first k.
    n, draws = 11, 200_000
    samples = bootstrap_samples(np.arange(n, dtype=float)[None], "median", draws, np.random.default_rng(3))[0]
    exact = [stats.binom.sf(n // 2, n, k / n) for k in range(1, n + 1)]
    seen = [(samples <= k - 1).mean() for k in range(1, n + 1)]
    np.testing.assert_allclose(seen, exact, atol=0.005)


@pytest.mark.parametrize("statistic", ["median", "mean"])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_resampling_agrees_with_all_possible_samples(n: int, statistic: str) -> None:
    values = np.array([0.0, 1.0, 3.0, 7.0])[:n]
    every = getattr(np, statistic)(list(itertools.product(values, repeat=n)), axis=1).round(9)
    expected = {value: (every == value).mean() for value in np.unique(every)}
    drawn = bootstrap_samples(values[None], statistic, 50_000, np.random.default_rng(4))[0].round(9)
    assert set(drawn) == set(expected)
    for value, share in expected.items():
        assert (drawn == value).mean() == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_grouped_is_one_group_at_a_time(statistic: str) -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "method": rng.choice(["a", "b", "c"], 200),
            "strength": rng.choice([1.0, 2.0, np.nan], 200),
            "score": rng.normal(size=200),
        }
    )
    table.loc[::9, "score"] = np.nan
    found = grouped_intervals(table, ["method", "strength"], "score", statistic)
    assert list(found.columns) == ["method", "strength", "score", "low", "high", "n", "values"]
    assert len(found) == 9
    for row in found.itertuples():
        same = (table["method"] == row.method) & (
            table["strength"].isna() if np.isnan(row.strength) else table["strength"] == row.strength
        )
        values = table.loc[same, "score"].to_numpy()
        expected = np.nanmedian(values) if statistic == "median" else np.nanmean(values)
        assert row.score == pytest.approx(expected)
        assert (row.low, row.high) == pytest.approx(bootstrap_interval(values, statistic))
        assert row.n == np.count_nonzero(~np.isnan(values))


def test_the_order_of_values_does_not_matter_and_the_seed_does() -> None:
    values = np.random.default_rng(6).normal(size=30)
    assert bootstrap_interval(values) == bootstrap_interval(values[::-1])
    assert bootstrap_interval(values, "mean") != bootstrap_interval(values, "mean", seed=1)


def test_an_interval_moves_and_scales_with_its_values() -> None:
    values = np.random.default_rng(7).normal(size=20)
    low, high = bootstrap_interval(values)
    assert bootstrap_interval(3 * values + 1) == pytest.approx((3 * low + 1, 3 * high + 1))


def test_fewer_than_five_values_have_no_interval_and_are_kept() -> None:
    for n in range(5):
        assert np.isnan(bootstrap_interval(np.arange(float(n)))).all()
    assert np.isfinite(bootstrap_interval(np.arange(5.0))).all()
    table = pd.DataFrame({"group": ["a", *"bbbb", *"ccccc"], "value": [1.0, 4.0, 2.0, 3.0, 2.0, *range(5)]})
    found = grouped_intervals(table, ["group"])
    assert found["n"].tolist() == [1, 4, 5]
    assert found["low"].isna().tolist() == [True, True, False]
    assert found["values"].tolist() == [(1.0,), (2.0, 2.0, 3.0, 4.0), ()]


def test_a_table_without_values_gives_no_groups() -> None:
    found = grouped_intervals(pd.DataFrame({"group": ["a"], "value": [np.nan]}), ["group"])
    assert found.empty
    assert list(found.columns) == ["group", "value", "low", "high", "n", "values"]


@pytest.mark.parametrize(
    "wrong", [{"statistic": "mode"}, {"level": 1.0}, {"level": 0.0}, {"draws": 0}, {"seed": -1}]
)
def test_wrong_arguments_are_named(wrong: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        bootstrap_interval(np.arange(3.0), **wrong)
