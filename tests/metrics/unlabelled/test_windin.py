"""WINDIN where the information is known."""

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.unlabelled import windin as module
from unweave.metrics.unlabelled.windin import windin

GRID = np.indices((4, 8)).reshape(2, -1).T * 100.0


def test_separate_codes():
    # Far apart: I(z_i; x) = log 4, log 8, and the codes are independent.
    score = windin.compute(GRID, np.zeros((32, 2)), samples=4000)
    informativeness = np.log([4, 8])
    np.testing.assert_allclose(score.details["informativeness"], informativeness, atol=1e-2)
    np.testing.assert_allclose(score.details["dependence"], 0, atol=0.1)
    expected = np.square(informativeness).sum() / informativeness.sum()
    assert score.value == pytest.approx(expected, abs=0.05)


def test_duplicated_codes_tell_nothing_new():
    doubled = np.hstack([GRID, GRID])
    score = windin.compute(doubled, np.zeros((32, 4)))
    np.testing.assert_allclose(score.details["per_code"], 0, atol=1e-6)
    assert score.value == pytest.approx(0, abs=1e-6)


def test_noise_codes_have_no_weight():
    noise = np.zeros((32, 1))
    score = windin.compute(np.hstack([GRID, noise]), np.zeros((32, 3)))
    np.testing.assert_allclose(score.details["weights"][2], 0, atol=1e-12)
    np.testing.assert_allclose(score.details["dependence"][2], 0, atol=1e-9)


def test_gaussian_channel():
    # z = x + noise of the same variance, x Gaussian: I = 1/2 log 2 per code.
    mean = np.random.default_rng(0).normal(size=(2000, 1))
    score = windin.compute(mean, np.zeros((2000, 1)))
    assert score.value == pytest.approx(0.5 * np.log(2), abs=0.05)


def test_points_are_taken_in_turns(monkeypatch):
    whole = windin.compute(GRID, np.zeros((32, 2))).value
    monkeypatch.setattr(module, "DENSITIES_AT_ONCE", 1000)
    assert windin.compute(GRID, np.zeros((32, 2))).value == pytest.approx(whole)


def test_degenerate():
    assert windin.compute(np.zeros((1, 3)), np.zeros((1, 3))).value == pytest.approx(0)
    assert windin.compute(np.ones((9, 3)), np.zeros((9, 3))).value == pytest.approx(0, abs=1e-12)
    with pytest.raises(ArgumentError, match="samples"):
        windin.compute(GRID, np.zeros((32, 2)), samples=0)
    with pytest.raises(ArgumentError, match="needs the shape of mean"):
        windin.compute(GRID, np.zeros((32, 3)))


def shared_information(covariance):
    """I(z_i; z_rest) of a Gaussian, for each i."""
    whole = np.linalg.slogdet(covariance)[1]
    rest = [np.delete(np.delete(covariance, i, 0), i, 1) for i in range(len(covariance))]
    return np.array(
        [0.5 * (np.log(covariance[i, i]) + np.linalg.slogdet(r)[1] - whole) for i, r in enumerate(rest)]
    )


@pytest.mark.parametrize("correlation", [0.3, 0.9])
def test_one_posterior_with_correlated_noise(correlation):
    score = windin.compute(np.ones((1, 3)), np.zeros((1, 3)), samples=20_000, correlation=correlation)
    noise = np.full((3, 3), correlation) + (1 - correlation) * np.eye(3)
    np.testing.assert_allclose(score.details["dependence"], shared_information(noise), atol=0.03)
    np.testing.assert_allclose(score.details["informativeness"], 0, atol=1e-9)


def test_a_gaussian_channel_with_correlated_noise():
    mean = np.random.default_rng(0).normal(size=(3000, 3))
    score = windin.compute(mean, np.zeros((3000, 3)), correlation=0.8)
    covariance = np.cov(mean.T) + np.full((3, 3), 0.8) + 0.2 * np.eye(3)
    np.testing.assert_allclose(score.details["dependence"], shared_information(covariance), atol=0.05)
    assert score.value == pytest.approx(np.mean(0.5 * np.log(2) - shared_information(covariance)), abs=0.06)
    assert windin.compute(mean[:, :1], np.zeros((3000, 1)), correlation=0.8).details[
        "dependence"
    ] == pytest.approx(0)


def test_correlations_that_are_not_allowed():
    for wrong in (1.0, -0.1, np.nan):
        with pytest.raises(ArgumentError, match="correlation"):
            windin.compute(GRID, np.zeros((32, 2)), correlation=wrong)
