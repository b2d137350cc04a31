"""Tests, corrections and letters against other computations of the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from unweave.analyses.statistics.significance import compact_letters, holm, mann_whitney


def test_many_mann_whitney_tests_are_those_of_scipy_one_by_one() -> None:
    rng = np.random.default_rng(3)
    pairs = [
        (rng.normal(size=n), rng.normal(0.5, size=m)) for n, m in [(3, 5), (3, 5), (20, 30), (9, 9), (20, 30)]
    ]
    pairs += [(np.round(one, 0), np.round(other, 0)) for one, other in pairs]
    expected = [stats.mannwhitneyu(one, other).pvalue for one, other in pairs]
    np.testing.assert_allclose(mann_whitney([*pairs, (np.empty(0), np.ones(3))]), [*expected, 1.0])


def test_exact_mann_whitney_by_counting_all_splits() -> None:
    one, other = np.array([0.1, 0.4, 0.2]), np.array([0.3, 0.6, 0.7, 0.5])
    pooled = np.concatenate([one, other])
    sums = [
        sum(a > b for a in split for b in pooled if b not in split)
        for split in itertools.combinations(pooled, 3)
    ]
    seen = sum(a > b for a in one for b in other)
    share = 2 * np.mean([value <= seen for value in sums])
    assert mann_whitney([(one, other)])[0] == pytest.approx(min(1, share))


def test_holm_by_its_step_down_procedure() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005, 0.6])
    np.testing.assert_allclose(holm(p), [0.04, 0.09, 0.09, 0.025, 0.6])
    rng = np.random.default_rng(4)
    p = rng.uniform(0, 0.2, 12)
    for level in np.linspace(0.01, 0.9, 30):
        rejected, order = set(), np.argsort(p)
        for step, index in enumerate(order):
            if p[index] >= level / (len(p) - step):
                break
            rejected.add(index)
        assert set(np.flatnonzero(holm(p) < level)) == rejected
    assert holm(np.empty(0)).shape == (0,)


def test_letters_say_exactly_which_pairs_differ() -> None:
    rng = np.random.default_rng(5)
    for size in (1, 2, 5, 8):
        for _ in range(30):
            different = np.triu(rng.random((size, size)) < rng.random(), 1)
            different |= different.T
            shown = compact_letters(different)
            for i, j in itertools.combinations(range(size), 2):
                assert (not set(shown[i]) & set(shown[j])) == different[i, j]
            assert shown[0].startswith("a")


def test_letters_of_a_chain() -> None:
    different = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool)
    assert compact_letters(different) == ["a", "ab", "b"]
