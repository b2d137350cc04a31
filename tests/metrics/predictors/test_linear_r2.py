"""R^2 of least squares against scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from unweave.errors import ArgumentError
from unweave.metrics import score as score_by_name
from unweave.metrics.predictors.linear_r2 import linear_r2
from unweave.metrics.sample import check_sample

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers(0, [3, 6, 9], (300, 3))


def test_agrees_with_scikit_learn_at_any_scale():
    mixed = FACTORS @ GENERATOR.normal(size=(3, 4)) + GENERATOR.normal(size=(300, 4))
    codes = mixed * [1e4, 1, 1e-4, 10] + [5, 0, 1, -9]
    score = linear_r2.compute(check_sample(codes, FACTORS))
    expected = [LinearRegression().fit(mixed, v).score(mixed, v) for v in FACTORS.T]
    np.testing.assert_allclose(score.details["per_factor"], expected)
    assert score.value == pytest.approx(np.mean(expected))


def test_a_rotation_is_linear():
    rotation = np.linalg.qr(GENERATOR.normal(size=(3, 3)))[0]
    assert linear_r2.compute(check_sample(FACTORS @ rotation, FACTORS)).value == pytest.approx(1)


def test_continuous_factors():
    sources = GENERATOR.normal(size=(300, 2))
    codes = sources @ GENERATOR.normal(size=(2, 3)) + GENERATOR.normal(size=(300, 3))
    expected = [LinearRegression().fit(codes, v).score(codes, v) for v in sources.T]
    np.testing.assert_allclose(score_by_name("linear_r2", codes, sources).details["per_factor"], expected)


def test_only_ordered_factors():
    codes = np.stack([FACTORS[:, 0], GENERATOR.normal(size=300)], axis=1)
    score = linear_r2.compute(check_sample(codes, FACTORS), ordered=[0])
    assert score.value == pytest.approx(1)
    np.testing.assert_array_equal(np.isnan(score.details["per_factor"]), [False, True, True])


def test_degenerate():
    constant = check_sample(np.full((300, 2), 0.1), FACTORS)
    assert linear_r2.compute(constant).value == pytest.approx(0)
    np.testing.assert_array_equal(linear_r2.compute(constant).details["coefficients"], 0)
    with_constant = np.hstack([FACTORS, np.zeros((300, 1), dtype=int)])
    score = linear_r2.compute(check_sample(FACTORS, with_constant))
    assert score.value == pytest.approx(1)
    np.testing.assert_array_equal(score.details["excluded"], [3])
    few = check_sample(GENERATOR.normal(size=(3, 5)), [[0], [4], [1]])
    assert linear_r2.compute(few).value == pytest.approx(1)
    for ordered in ([9], [-1]):
        with pytest.raises(ArgumentError, match="columns from 0 to 3"):
            linear_r2.compute(check_sample(FACTORS, with_constant), ordered=ordered)
    with pytest.raises(ArgumentError, match="needs a factor that varies"):
        linear_r2.compute(check_sample(FACTORS, with_constant), ordered=[3])
    with pytest.raises(ArgumentError, match="at least 2 points"):
        linear_r2.compute(check_sample([[0.0]], [[1]]))
