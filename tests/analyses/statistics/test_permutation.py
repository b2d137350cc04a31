import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from unweave.analyses.statistics.intervals import jackknife_interval
from unweave.analyses.statistics.permutation import correlation_tests, pair_test, trend_test


def test_two_groups_in_one_block_are_the_mann_whitney_test(rng):
    one, other = rng.normal(size=5), rng.normal(1, size=4)
    test = trend_test(np.concatenate([one, other]), [0] * 5 + [1] * 4, np.zeros(9))
    assert test.p == pytest.approx(stats.mannwhitneyu(one, other, method="exact").pvalue)
    assert test.smallest == pytest.approx(2 / 126)


def test_pairs_are_the_sign_test():
    below, above = np.zeros(7), np.array([1, 1, 1, 1, 1, -1, 1])
    test = trend_test(np.concatenate([below, above]), [0] * 7 + [1] * 7, [*range(7), *range(7)])
    assert test.p == pytest.approx(stats.binomtest(6, 7).pvalue)
    assert test.effect == pytest.approx(5 / 7)


def test_a_trend_in_one_block_is_kendalls_tau(rng):
    values, order = rng.normal(size=6), np.arange(6)
    test, expected = trend_test(values, order, np.zeros(6)), stats.kendalltau(values, order, method="exact")
    assert (test.effect, test.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_blocks_with_equal_values_and_missing_runs_agree_with_counting_by_hand():
    values, order, blocks = [1, 1, 3, 2, 5, np.nan], [1, 2, 3, 1, 2, 3], [0, 0, 0, 1, 1, 1]

    def statistic(orders):
        known = [(v, o, b) for v, o, b in zip(values, orders, blocks, strict=True) if v == v]
        return sum(
            np.sign((a[0] - b[0]) * (a[1] - b[1]))
            for a, b in itertools.combinations(known, 2)
            if a[2] == b[2]
        )

    every = [
        statistic([*one, *two, 9]) for one in itertools.permutations([1, 2, 3]) for two in ((1, 2), (2, 1))
    ]
    expected = np.mean(np.abs(every) >= abs(statistic(order)))
    test = trend_test(values, order, blocks)
    assert test.p == pytest.approx(expected)
    assert test.effect == pytest.approx(statistic(order) / 4)
    assert test.smallest == pytest.approx(2 / 12)


def test_large_blocks_are_drawn(rng):
    order = np.repeat([0, 1], 15)
    values = rng.normal(size=30) + 0.6 * order
    expected = stats.mannwhitneyu(values[order == 0], values[order == 1]).pvalue
    assert trend_test(values, order, np.zeros(30)).p == pytest.approx(expected, abs=0.03)


def test_no_runs_are_no_evidence():
    test = pair_test(np.zeros((0, 0)), [], [])
    assert (test.effect, test.p, test.smallest) == (0.0, 1.0, 1.0)


def test_rank_correlations_of_one_block_are_spearmans(rng):
    runs = pd.DataFrame({"seed": 0, "a": rng.normal(size=30)})
    runs["b"] = 0.4 * runs["a"] + rng.normal(size=30)
    row = correlation_tests(runs, [("a", "b")], draws=20_000).iloc[0]
    expected = stats.spearmanr(runs["a"], runs["b"])
    assert row["value"] == pytest.approx(expected.statistic)
    assert row["p"] == pytest.approx(expected.pvalue, abs=0.01)


def test_what_blocks_have_in_common_is_no_correlation(rng):
    seeds = np.repeat(np.arange(4), 10)
    runs = pd.DataFrame(
        {"seed": seeds, "a": seeds + 0.1 * rng.normal(size=40), "b": seeds + 0.1 * rng.normal(size=40)}
    )
    row = correlation_tests(runs, [("a", "b")]).iloc[0]
    assert row["value"] > 0.9
    assert row["p"] > 0.05


def test_a_constant_score_has_no_correlation():
    row = correlation_tests(pd.DataFrame({"seed": 0, "a": range(5), "b": 1.0}), [("a", "b")]).iloc[0]
    assert np.isnan(row["value"])
    assert row["p"] == 1


def test_the_jackknife_of_a_mean_is_students_interval(rng):
    values = rng.normal(size=6)
    expected = stats.t.interval(0.95, 5, values.mean(), stats.sem(values))
    without = [np.delete(values, i).mean() for i in range(6)]
    assert jackknife_interval(values.mean(), without) == pytest.approx(expected)
    assert np.isnan(jackknife_interval(1.0, [1.0, 2.0])).all()


def test_no_p_is_zero_where_arrangements_are_drawn():
    order = np.repeat([0, 1], 12)  # 2,704,156 arrangements
    test = trend_test(np.arange(24.0), order, np.zeros(24))
    assert test.effect == 1.0
    assert 0 < test.p < 0.001


def test_runs_without_an_order_are_left_out():
    values, order, seeds = [1.0, 2.0, 9.0, 3.0, 4.0, 0.0], [1, 2, np.nan, 1, 2, np.nan], [0, 0, 0, 1, 1, 1]
    assert trend_test(values, order, seeds) == trend_test([1, 2, 3, 4], [1, 2, 1, 2], [0, 0, 1, 1])
