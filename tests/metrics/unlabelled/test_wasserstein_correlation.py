"""Wasserstein correlation against a matrix root, and where a matrix root loses its digits."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from unweave.errors import ArgumentError
from unweave.metrics.sample import check_sample
from unweave.metrics.unlabelled.wasserstein_correlation import wasserstein_correlation, wasserstein_of


def test_two_correlated_codes():
    # diag = I, so the root is that of S itself, with eigenvalues 1.9 and 0.1.
    expected = 4 - 2 * (np.sqrt(1.9) + np.sqrt(0.1))
    assert wasserstein_of(np.array([[1.0, 0.9], [0.9, 1.0]])) == pytest.approx(expected)


def test_against_a_matrix_root():
    for seed in range(5):
        noise = np.random.default_rng(seed).normal(size=(9, 5))
        covariance = noise.T @ noise / 9
        root = sqrtm(covariance * np.diag(covariance)[:, None])
        expected = 2 * np.trace(covariance) - 2 * np.trace(root)
        assert wasserstein_of(covariance) == pytest.approx(expected)


def test_codes_of_different_scale():
    scale = np.array([1e4, 1.0, 1e-4])
    correlation = np.array([[1.0, 0, 0], [0, 1, 0.5], [0, 0.5, 1]])
    whole = wasserstein_of(scale[:, None] * correlation * scale)
    part = wasserstein_of(scale[1:, None] * correlation[1:, 1:] * scale[1:])
    assert part > 0
    assert whole == pytest.approx(part, abs=1e-7)


def test_normalised_is_free_of_scale():
    codes = np.random.default_rng(0).normal(size=(60, 3)) @ [[1, 1, 0], [0, 1, 1], [0, 0, 1]]
    factors = np.zeros(60, dtype=int)
    small, large = check_sample(codes, factors), check_sample(100 * codes, factors)
    assert wasserstein_correlation.compute(large).value == pytest.approx(
        1e4 * wasserstein_correlation.compute(small).value
    )
    normalised = wasserstein_correlation.compute(small, normalised=True)
    assert wasserstein_correlation.compute(large, normalised=True).value == pytest.approx(normalised.value)
    assert normalised.details["distance"] == wasserstein_correlation.compute(small).value


def test_degenerate():
    constant = check_sample(np.full((9, 2), 0.1), np.zeros(9, dtype=int))
    assert wasserstein_correlation.compute(constant).value == 0
    assert wasserstein_correlation.compute(constant, normalised=True).value == 0
    assert wasserstein_of(np.diag([1.0, 0.0])) == pytest.approx(0)
    assert wasserstein_of(np.ones((2, 2))) == pytest.approx(4 - 2 * np.sqrt(2))
    with pytest.raises(ArgumentError, match="at least 2 points"):
        wasserstein_correlation.compute(check_sample([[0.0]], [[1]]))
