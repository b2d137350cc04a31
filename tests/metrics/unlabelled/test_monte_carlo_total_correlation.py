"""Sampled total correlation against Gaussians of known total correlation."""

import numpy as np
import pytest
import torch

from unweave.errors import ArgumentError
from unweave.metrics.unlabelled import monte_carlo_total_correlation as module
from unweave.metrics.unlabelled.monte_carlo_total_correlation import monte_carlo_total_correlation
from unweave.objectives import correlated_log_density


@pytest.mark.parametrize("correlation", [0.3, 0.9])
def test_one_correlated_gaussian(correlation):
    mean, log_variance = np.tile([1.0, -2.0, 0.5], (64, 1)), np.tile([0.0, 2.0, -3.0], (64, 1))
    score = monte_carlo_total_correlation.compute(mean, log_variance, correlation=correlation, samples=100)
    expected = -0.5 * np.log((1 - correlation) ** 2 * (1 + 2 * correlation))
    assert score.value == pytest.approx(expected, abs=5 * score.details["standard_error"])
    assert score.details["standard_error"] < 0.02


def test_many_posteriors_make_a_correlated_gaussian():
    generator = np.random.default_rng(0)
    mean = generator.multivariate_normal([0, 0], [[0.6, 0.5], [0.5, 0.6]], 1000)
    log_variance = np.full(mean.shape, np.log(0.4))
    score = monte_carlo_total_correlation.compute(mean, log_variance, batch_size=1000, samples=2)
    assert score.value == pytest.approx(-0.5 * np.log(1 - 0.5**2), abs=0.05)
    few = [
        monte_carlo_total_correlation.compute(mean, log_variance, batch_size=8, seed=s).value
        for s in range(20)
    ]
    assert np.mean(few) > score.value


def test_the_density_is_that_of_the_objectives():
    generator = np.random.default_rng(0)
    mean, log_variance = generator.normal(size=(5, 3)), generator.normal(size=(5, 3))
    points = generator.normal(size=(7, 3))
    parts = module.marginal_log_densities(points, mean, log_variance)
    whole = parts.sum(axis=2) + module._dependence(points, mean, log_variance, 0.4)
    tensors = [torch.from_numpy(array) for array in (points[:, None], mean, log_variance)]
    np.testing.assert_allclose(whole, correlated_log_density(*tensors, 0.4).numpy())


def test_points_are_taken_in_turns(monkeypatch):
    generator = np.random.default_rng(0)
    mean, log_variance = generator.normal(size=(70, 3)), generator.normal(size=(70, 3))
    whole = monte_carlo_total_correlation.compute(mean, log_variance)
    monkeypatch.setattr(module, "DENSITIES_AT_ONCE", 5000)
    assert monte_carlo_total_correlation.compute(mean, log_variance).value == pytest.approx(whole.value)
    assert len(whole.details["rows"]) == 64


def test_seeds():
    mean, log_variance = np.random.default_rng(0).normal(size=(2, 100, 3))
    first, again, other = (
        monte_carlo_total_correlation.compute(mean, log_variance, seed=s).value for s in (1, 1, 2)
    )
    assert first == again != other


def test_degenerate():
    assert monte_carlo_total_correlation.compute(np.zeros((1, 3)), np.zeros((1, 3))).value == pytest.approx(
        0, abs=1e-12
    )
    line = np.random.default_rng(0).normal(size=(10, 1))
    assert monte_carlo_total_correlation.compute(line, line).value == pytest.approx(0, abs=1e-12)
    far = np.array([[0.0, 0.0], [1e6, 1e6]])
    assert monte_carlo_total_correlation.compute(far, np.zeros((2, 2))).value == pytest.approx(np.log(2))


def test_refuses():
    good = np.zeros((4, 2))
    with pytest.raises(ArgumentError, match="needs the shape of mean"):
        monte_carlo_total_correlation.compute(good, np.zeros((4, 3)))
    with pytest.raises(ArgumentError, match=r"mean\[0, 0\] = nan: needs finite"):
        monte_carlo_total_correlation.compute(good + np.nan, good)
    with pytest.raises(ArgumentError, match=r"mean = .*shape \(n, D\)"):
        monte_carlo_total_correlation.compute(np.zeros(4), np.zeros(4))
    for wrong in ({"batch_size": 0}, {"samples": 0}, {"correlation": 1.0}, {"correlation": -0.1}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            monte_carlo_total_correlation.compute(good, good, **wrong)


def test_factorised_densities_leave_out_the_noise_itself():
    """Yang et al., appendix D: a posterior that ignores the image has 0, not -1/2 log det R."""
    mean = np.zeros((64, 10))
    options = {"correlation": 0.9, "samples": 60}
    exact = monte_carlo_total_correlation.score(mean, log_variance=mean, **options)
    appendix = monte_carlo_total_correlation.score(mean, log_variance=mean, density="factorised", **options)
    of_noise = -0.5 * np.linalg.slogdet(0.1 * np.eye(10) + 0.9)[1]
    assert of_noise == pytest.approx(9.26, abs=0.5)
    assert exact.value == pytest.approx(of_noise, abs=0.15)
    assert appendix.value == pytest.approx(0, abs=1e-9)
    assert appendix.params["density"] == "factorised"
