"""MCC against scipy and under permutations."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from unweave.errors import ArgumentError
from unweave.metrics.mcc import mcc
from unweave.metrics.score import check_sample

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers(0, [3, 6, 9], (200, 3))


@pytest.mark.parametrize(("method", "other"), [("pearson", pearsonr), ("spearman", spearmanr)])
def test_correlations(method, other):
    codes = GENERATOR.normal(size=(200, 4)) + FACTORS[:, [0, 1, 2, 0]]
    score = mcc(check_sample(codes, FACTORS), method=method)
    expected = [[abs(other(z, v)[0]) for v in FACTORS.T] for z in codes.T]
    np.testing.assert_allclose(score.details["matrix"], expected)
    assert len(score.details["per_pair"]) == 3


def test_finds_the_assignment():
    score = mcc(check_sample(-2.0 * FACTORS[:, [2, 0, 1]] + 1, FACTORS))
    assert score.value == pytest.approx(1)
    np.testing.assert_array_equal(score.details["factors"], [2, 0, 1])
    cubes = check_sample(FACTORS.astype(float) ** 3, FACTORS)
    assert mcc(cubes).value < 0.99
    assert mcc(cubes, method="spearman").value == pytest.approx(1)


def test_fewer_codes_than_factors():
    assert mcc(check_sample(FACTORS[:, 1:2], FACTORS)).value == pytest.approx(1)


def test_constants_correlate_with_nothing():
    codes = np.hstack([FACTORS[:, :2], np.full((200, 1), 0.1)])
    for method in ("pearson", "spearman"):
        score = mcc(check_sample(codes, FACTORS), method=method)
        assert score.value == pytest.approx(2 / 3, abs=0.001)
        np.testing.assert_array_equal(score.details["matrix"][2], 0)
    assert mcc(check_sample(FACTORS[:, :1], np.ones((200, 1), dtype=int))).value == 0


def test_refuses():
    with pytest.raises(ArgumentError, match="did you mean 'spearman'"):
        mcc(check_sample(FACTORS, FACTORS), method="spaerman")
    with pytest.raises(ArgumentError, match="at least 2 points"):
        mcc(check_sample([[0.0]], [[1]]))
