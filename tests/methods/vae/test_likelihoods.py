import math

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.methods.vae.likelihoods import Gaussian


@pytest.fixture
def images():
    pixels = np.random.default_rng(0).integers(0, 256, (64, 8, 8, 1), np.uint8)
    return uw.data.from_arrays(pixels, name="noise")


def test_a_learned_variance_starts_where_pixels_are(images):
    """A pixel in [0, 1] of which nothing is known has the variance 1/12, which these pixels have."""
    method = uw.methods.create("vae", images, reconstruction="gaussian_learned", architecture="mlp")
    assert method.likelihood.log_variance.exp().item() == pytest.approx(1 / 12)
    assert method.likelihood.log_variance.requires_grad
    pixels = torch.from_numpy(images.images(np.arange(64)) / 255).float()
    grey = torch.full_like(pixels, 0.5)
    best = 32 * (
        math.log(2 * math.pi * (pixels - grey).square().mean()) + 1
    )  # at the best variance; 64 pixels
    assert best < method.likelihood(grey, pixels).item() < best + 0.1
    assert Gaussian()(grey, pixels).item() > best + 40


def test_a_learned_variance_of_vectors_and_a_fixed_one_start_at_one(images):
    vectors = uw.data.from_function(["a"], [(0.0, 1.0)], lambda factors: factors @ np.ones((1, 6)))
    for data, reconstruction in ((vectors, "gaussian_learned"), (images, "gaussian")):
        method = uw.methods.create("vae", data, reconstruction=reconstruction, architecture="mlp")
        assert method.likelihood.log_variance.item() == 0
