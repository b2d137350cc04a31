"""Densities of models against closed forms, in nats and in bits."""

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.evaluation import find_metric


@pytest.fixture(scope="module")
def gaussian():
    """One Gaussian, fitted to points, and the points."""
    points = np.random.default_rng(0).normal(3, 2, (400, 3)).astype(np.float32)
    data = uw.data.from_arrays(points)
    method = uw.methods.create("gaussian_mixture", data, num_components=1)
    return uw.train(method, data, 1, batch_size=400), data, points.astype(np.float64)


def test_nats_and_bits_of_vectors(gaussian):
    run, data, points = gaussian
    score = uw.evaluate(run, data, "log_density")["log_density"]
    variance = points.var(0)
    densities = -0.5 * ((points - points.mean(0)) ** 2 / variance + np.log(2 * np.pi * variance)).sum(1)
    assert score.value == pytest.approx(densities.mean(), rel=1e-5)
    assert score.details["standard_error"] == pytest.approx(densities.std(ddof=1) / 20, rel=1e-4)
    assert score.details["bits_per_dimension"] == pytest.approx(-densities.mean() / (3 * np.log(2)), rel=1e-5)
    assert score.details["num_images"] == 400


def test_bits_of_bytes_that_are_noise():
    """Uniform bytes have 8 bits; a Gaussian over their logits, which are logistic, a little more."""
    images = np.random.default_rng(0).integers(0, 256, (200, 8, 8, 1)).astype(np.uint8)
    data = uw.data.from_arrays(images)
    run = uw.train(uw.methods.create("gaussian_mixture", data, num_components=1), data, 1, batch_size=200)
    score = uw.evaluate(run, data, "log_density")["log_density"]
    assert 8 < score.details["bits_per_dimension"] < 8.1
    logistic, normal = -2.0, -0.5 * np.log(2 * np.pi * np.e * np.pi**2 / 3)  # -entropies
    assert score.value / 64 == pytest.approx(normal, abs=0.03)
    assert score.value / 64 < logistic
    assert uw.evaluate(run, data, "log_density")["log_density"].value == score.value


def test_another_data_set(gaussian):
    run, data, _ = gaussian

    @uw.data.register_data("others")
    def others():
        return np.zeros((5, 3), np.float32)

    @uw.data.register_data("longer")
    def longer():
        return np.zeros((5, 4), np.float32)

    params = {"log_density": {"data": "others"}}
    score = uw.evaluate(run, data, "log_density", params=params)["log_density"]
    assert score.value == pytest.approx(run.method.log_density(torch.zeros(1, 3)).item())
    assert score.details["num_images"] == 5
    with pytest.raises(ArgumentError, match="has images"):
        uw.evaluate(run, data, "log_density", params={"log_density": {"data": "longer"}})
    with pytest.raises(ArgumentError, match="data set = 'mnist_tset': did you mean"):
        uw.evaluate(run, data, "log_density", params={"log_density": {"data": "mnist_tset"}})


def test_a_method_without_a_density():
    data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    method = uw.methods.create("vae", data, latent_size=2)
    with pytest.raises(ArgumentError, match="log_density"):
        uw.evaluate(method, data, "log_density")
    assert not find_metric("log_density").in_all
