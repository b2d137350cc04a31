"""Reconstruction, KL and their sum where they are known."""

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.evaluation import Trained, find_metric

IMAGES = np.random.default_rng(0).integers(0, 256, (30, 32, 32, 1), dtype=np.uint8)


@pytest.fixture
def data():
    return uw.data.from_arrays(IMAGES, name="noise")


def still(data, mean, log_variance, **options):
    """A VAE whose posterior is the same for all images, and whose decoder always says 1/2."""
    method = uw.methods.create("vae", data, architecture="mlp", latent_size=3, **options)
    with torch.no_grad():
        for parameter in method.parameters():
            parameter.zero_()
    encoder = method.encoder
    method.encoder = torch.nn.Module()
    method.encoder.anchor = torch.nn.Parameter(torch.zeros(1))
    method.encoder.forward = lambda images: (
        torch.full((len(images), 3), mean) + method.encoder.anchor,
        torch.full((len(images), 3), log_variance),
    )
    assert encoder is not method.encoder
    return method


def score(method, data, labels=None, **options):
    trained = Trained(method, data, labels, np.random.default_rng(0))
    return find_metric("unsupervised").compute(trained, **{"num_images": 300, **options})


def test_closed_forms(data):
    found = score(still(data, 0.7, -1.0), data).details
    per_code = 0.5 * (np.exp(-1.0) + 0.7**2 - 1 + 1.0)
    np.testing.assert_allclose(found["kl_per_code"], per_code, rtol=1e-6)
    assert found["kl"] == pytest.approx(3 * per_code, rel=1e-6)
    assert found["reconstruction"] == pytest.approx(1024 * np.log(2), rel=1e-5)
    assert found["elbo"] == pytest.approx(-found["reconstruction"] - found["kl"])


def test_errors_of_images(data):
    rows = data.sample_rows(256, np.random.default_rng(0))
    found = score(still(data, 0.0, 0.0), data, num_images=256).details
    difference = IMAGES[rows] / 255 - 0.5
    assert found["l1"] == pytest.approx(np.abs(difference).sum((1, 2, 3)).mean(), rel=1e-5)
    assert found["l2"] == pytest.approx(np.square(difference).sum((1, 2, 3)).mean(), rel=1e-5)


def test_correlated_noise_adds_its_own_information(data):
    plain, correlated = (score(still(data, 0.0, 0.0, correlation=s), data).details["kl"] for s in (0.0, 0.6))
    noise = np.full((3, 3), 0.6) + 0.4 * np.eye(3)
    assert plain == pytest.approx(0, abs=1e-6)
    assert correlated == pytest.approx(-0.5 * np.linalg.slogdet(noise)[1], rel=1e-6)


def test_the_seed_decides_the_draws(data):
    method = uw.methods.create("vae", data, architecture="mlp", latent_size=3)
    values = [score(method, data, seed=seed).value for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize("wrong", [{"num_images": 0}, {"num_images": 2.5}, {"images": 3}])
def test_parameters_that_are_refused(data, wrong):
    method = uw.methods.create("vae", data, architecture="mlp", latent_size=3)
    with pytest.raises(ArgumentError, match="num_images"):
        uw.evaluate(method, data, ["unsupervised"], params={"unsupervised": wrong})


def test_an_interval_is_that_of_other_images(data):
    method = uw.methods.create("vae", data, architecture="mlp", latent_size=3)
    options = {"params": {"unsupervised": {"num_images": 20}}, "bootstrap": 10}
    found = uw.evaluate(method, data, ["unsupervised"], **options)["unsupervised"]
    low, high = found.details["interval"]
    assert low < found.value < high
