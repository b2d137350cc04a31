"""Gaussian total correlation of known covariances."""

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.sample import check_sample
from unweave.metrics.unlabelled.gaussian_total_correlation import (
    gaussian_total_correlation,
    total_correlation_of,
)


def with_covariance(covariance, rows=50):
    """Codes whose sample covariance is exactly this one."""
    noise = np.random.default_rng(0).normal(size=(rows, len(covariance)))
    white = np.linalg.qr(noise - noise.mean(axis=0))[0] * np.sqrt(rows - 1)
    return check_sample(white @ np.linalg.cholesky(covariance).T + 3, np.zeros(rows, dtype=int))


def test_two_correlated_codes():
    sample = with_covariance(np.array([[4.0, 1.8], [1.8, 1.0]]))
    assert gaussian_total_correlation.compute(sample, jitter=0).value == pytest.approx(
        -0.5 * np.log(1 - 0.81)
    )
    np.testing.assert_allclose(
        np.cov(sample.codes.T), gaussian_total_correlation.compute(sample).details["covariance"]
    )


def test_independent_codes():
    assert gaussian_total_correlation.compute(with_covariance(np.diag([1.0, 9, 0.1]))).value == pytest.approx(
        0
    )


def test_jitter_keeps_the_value_finite():
    sample = with_covariance(np.array([[1.0, 0.5], [0.5, 1.0]]))
    plain = gaussian_total_correlation.compute(sample, jitter=0).value
    collapsed = check_sample(np.hstack([sample.codes, np.full((50, 1), 0.1)]), sample.factors)
    assert gaussian_total_correlation.compute(collapsed).value == pytest.approx(plain, abs=1e-4)
    assert np.isnan(gaussian_total_correlation.compute(collapsed, jitter=0).value)
    doubled = check_sample(np.hstack([sample.codes, sample.codes]), sample.factors)
    assert 5 < gaussian_total_correlation.compute(doubled).value < 15


def test_singular_covariances():
    assert total_correlation_of(np.ones((2, 2))) == np.inf
    assert np.isnan(total_correlation_of(np.diag([1.0, 0.0])))


def test_degenerate():
    assert gaussian_total_correlation.compute(with_covariance(np.array([[2.0]]))).value == pytest.approx(0)
    with pytest.raises(ArgumentError, match="jitter"):
        gaussian_total_correlation.compute(with_covariance(np.eye(2)), jitter=-1)
    with pytest.raises(ArgumentError, match="at least 2 points"):
        gaussian_total_correlation.compute(check_sample([[0.0]], [[1]]))
