"""RMIG: equal to MIG without noise, and to sampling with it."""

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.information.mig import mig
from unweave.metrics.information.rmig import rmig
from unweave.metrics.sample import check_sample


@pytest.fixture
def sample():
    generator = np.random.default_rng(0)
    factors = generator.integers(0, [3, 6, 8], (400, 3))
    return check_sample(
        factors @ generator.normal(size=(3, 4)) + 0.1 * generator.normal(size=(400, 4)), factors
    )


def test_without_noise_it_is_mig(sample):
    assert rmig.compute(sample).value == mig.compute(sample).value
    vanishing = np.full(sample.codes.shape, -40.0)
    # The largest code of a dimension lies on an edge that is not an inner one, so no mass is split.
    np.testing.assert_allclose(
        rmig.compute(sample, log_variance=vanishing).details["matrix"],
        mig.compute(sample).details["matrix"],
        atol=1e-9,
    )


def test_with_noise_it_agrees_with_samples(sample):
    generator = np.random.default_rng(1)
    log_variance = generator.normal(-2, 0.5, sample.codes.shape)
    score = rmig.compute(sample, log_variance=log_variance, num_bins=10, limits=(-3, 3))
    noise = generator.normal(size=(100, *sample.codes.shape)) * np.exp(0.5 * log_variance)
    drawn = check_sample((sample.codes + noise).reshape(-1, 4), np.tile(sample.factors, (100, 1)))
    by_counting = rmig.compute(drawn, num_bins=10, limits=(-3, 3))
    np.testing.assert_allclose(score.details["matrix"], by_counting.details["matrix"], atol=0.02)


def test_noise_loses_information(sample):
    quiet = rmig.compute(sample, log_variance=np.full(sample.codes.shape, -4.0)).details["matrix"]
    loud = rmig.compute(sample, log_variance=np.full(sample.codes.shape, 4.0)).details["matrix"]
    assert (loud < quiet).all()


def test_points_with_limits():
    factors = np.array([[0], [0], [1], [1]])
    score = rmig.compute(check_sample([[-9.0], [-0.1], [0.0], [5.0]], factors), num_bins=2, limits=(-1, 1))
    assert score.value == pytest.approx(1)


def test_degenerate(sample):
    constant = check_sample(np.zeros((10, 2)), np.arange(10) % 2)
    assert rmig.compute(constant, log_variance=np.zeros((10, 2))).value == pytest.approx(0, abs=1e-12)
    with pytest.raises(ArgumentError, match="log_variance"):
        rmig.compute(sample, log_variance=np.zeros((400, 3)))
    with pytest.raises(ArgumentError, match="limits"):
        rmig.compute(sample, limits=(1, 1))
    with pytest.raises(ArgumentError, match="num_bins"):
        rmig.compute(sample, limits=(0, 1), num_bins=0)
    with pytest.raises(ArgumentError, match="at least 2 points"):
        rmig.compute(check_sample([[0.0]], [[1]]))
