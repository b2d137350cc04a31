"""MCC against scipy and under permutations."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from unweave.errors import ArgumentError
from unweave.metrics import score as score_by_name
from unweave.metrics.predictors.mcc import mcc
from unweave.metrics.sample import check_sample

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers(0, [3, 6, 9], (200, 3))


@pytest.mark.parametrize(("method", "other"), [("pearson", pearsonr), ("spearman", spearmanr)])
def test_correlations(method, other):
    codes = GENERATOR.normal(size=(200, 4)) + FACTORS[:, [0, 1, 2, 0]]
    score = mcc.compute(check_sample(codes, FACTORS), method=method)
    expected = [[abs(other(z, v)[0]) for v in FACTORS.T] for z in codes.T]
    np.testing.assert_allclose(score.details["matrix"], expected)
    assert len(score.details["per_pair"]) == 3


def test_finds_the_assignment():
    score = mcc.compute(check_sample(-2.0 * FACTORS[:, [2, 0, 1]] + 1, FACTORS))
    assert score.value == pytest.approx(1)
    np.testing.assert_array_equal(score.details["factors"], [2, 0, 1])
    cubes = check_sample(FACTORS.astype(float) ** 3, FACTORS)
    assert mcc.compute(cubes).value < 0.99
    assert mcc.compute(cubes, method="spearman").value == pytest.approx(1)


def test_fewer_codes_than_factors():
    assert mcc.compute(check_sample(FACTORS[:, 1:2], FACTORS)).value == pytest.approx(1)


def test_constants_correlate_with_nothing():
    codes = np.hstack([FACTORS[:, :2], np.full((200, 1), 0.1)])
    for method in ("pearson", "spearman"):
        score = mcc.compute(check_sample(codes, FACTORS), method=method)
        assert score.value == pytest.approx(2 / 3, abs=0.001)
        np.testing.assert_array_equal(score.details["matrix"][2], 0)
    assert mcc.compute(check_sample(FACTORS[:, :1], np.ones((200, 1), dtype=int))).value == 0


@pytest.mark.parametrize(("method", "other"), [("pearson", pearsonr), ("spearman", spearmanr)])
def test_continuous_factors_count_as_the_numbers_they_are(method, other):
    sources = GENERATOR.normal(size=(200, 2)) * [1e-3, 1e6]
    codes = np.exp(sources[:, ::-1] / [1e6, 1e-3]) + GENERATOR.normal(size=(200, 2))
    found = score_by_name("mcc", codes, sources, method=method)
    expected = [[abs(other(z, v)[0]) for v in sources.T] for z in codes.T]
    np.testing.assert_allclose(found.details["matrix"], expected)
    np.testing.assert_array_equal(found.details["factors"], [1, 0])
    test = (codes[:9], sources[:9])
    judged = score_by_name("mcc", codes, sources, test, method=method)
    np.testing.assert_array_equal(judged.details["factors"], [1, 0])  # the assignment of the others
    on_test = [abs(other(codes[:9, i], sources[:9, k])[0]) for i, k in enumerate([1, 0])]
    assert judged.value == pytest.approx(np.mean(on_test))
    assert "interval" in score_by_name("mcc", codes, sources, bootstrap=3).details


def test_whole_factors_are_numbers_of_any_size():
    codes = GENERATOR.normal(size=(200, 3)) + FACTORS
    far_apart = np.array([-5.0, 10, 1e7, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14])[FACTORS]
    assert (
        score_by_name("mcc", codes, FACTORS.astype(float)).value
        == mcc.compute(check_sample(codes, FACTORS)).value
    )
    for factors in (FACTORS, far_apart, -far_apart.astype(int), 1e10 * far_apart):
        expected = np.abs(np.corrcoef(codes.T, factors.T)[:3, 3:])
        np.testing.assert_allclose(score_by_name("mcc", codes, factors).details["matrix"], expected)


def test_continuous_factors_must_be_finite_and_other_metrics_refuse_them():
    sources = GENERATOR.normal(size=(50, 2))
    with pytest.raises(ArgumentError, match="bin a continuous factor first"):
        score_by_name("mig", sources, sources)
    for bad in (np.nan, np.inf):
        broken = sources.copy()
        broken[3, 1] = bad
        with pytest.raises(ArgumentError, match=r"factors\[3, 1\] = .*needs finite"):
            score_by_name("mcc", sources, broken)


def test_refuses():
    with pytest.raises(ArgumentError, match="did you mean 'spearman'"):
        mcc.compute(check_sample(FACTORS, FACTORS), method="spaerman")
    with pytest.raises(ArgumentError, match="at least 2 points"):
        mcc.compute(check_sample([[0.0]], [[1]]))
