import math

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.figures import reconstructions, samples, save_traversal_animation, traversals
from unweave.methods import Method
from unweave.methods.spec import MethodSpec
from unweave.objectives import kl_to_standard_normal, usage


@pytest.fixture
def trained():
    images = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    data = uw.data.from_arrays(images, name="noise")
    method = uw.methods.create("beta_vae", data, latent_size=3)
    return uw.train(method, data, steps=3, batch_size=4, log_every=1), data


def test_pictures_depend_on_the_seed_alone(trained):
    run, data = trained
    first, again = (np.asarray(traversals(run.method, data, seed=3)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = np.asarray(reconstructions(run.method, data, seed=1))
    assert (other != np.asarray(reconstructions(run.method, data, seed=2))).any()


def test_rows_of_a_traversal_are_equally_far_apart(trained):
    run, data = trained
    sheet = np.asarray(traversals(run.method, data))
    dark = (sheet[:, -30] != 255).any(axis=1)  # a column of pixels through the last tiles
    starts = np.flatnonzero(dark & ~np.roll(dark, 1))
    assert len(starts) == 3
    assert starts[2] - starts[1] == starts[1] - starts[0]


def test_vectors_are_drawn_as_lines():
    data = uw.data.from_function(["a"], [(0.0, 1.0)], lambda factors: np.sin(factors * np.arange(20)))
    method = uw.methods.create("vae", data, latent_size=2, reconstruction="gaussian")
    assert traversals(method, data).width > 200


def test_wrong_arguments_are_refused(trained, tmp_path):
    run, data = trained
    with pytest.raises(ArgumentError, match=r"ends in .gif"):
        save_traversal_animation(run.method, data, tmp_path / "x.png")
    with pytest.raises(ArgumentError, match="columns"):
        traversals(run.method, data, columns=1)
    with pytest.raises(ArgumentError, match="span = 0"):
        traversals(run.method, data, span=0)
    with pytest.raises(ArgumentError, match="frames = 1: needs at least 2"):
        save_traversal_animation(run.method, data, tmp_path / "x.gif", frames=1)
    with pytest.raises(ArgumentError, match="rows = 0"):
        samples(run.method, data, rows=0)


def test_samples_are_those_of_the_method(trained):
    run, data = trained
    picture, again, other = (np.asarray(samples(run.method, data, seed, 2, 3)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(picture, again)
    assert (picture != other).any()
    with torch.inference_mode():
        drawn = run.method.sample(6, torch.Generator().manual_seed(5)).numpy()
    pixels = np.rint(drawn.transpose(0, 2, 3, 1) * 255).repeat(3, axis=1).repeat(3, axis=2)
    top, left, step = 20 + 22 + 18, 20, 96 + 4  # margin and title, margin, tile and gap
    for index, tile in enumerate(pixels):
        y, x = top + index // 3 * step, left + index % 3 * step
        np.testing.assert_array_equal(picture[y : y + 96, x : x + 96], tile)


class Noise(Method):
    """Generates noise and can do nothing else."""

    def __init__(self, image_shape):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(image_shape))

    def sample(self, n, generator=None):
        return torch.randn(n, *self.scale.shape, generator=generator) * self.scale


def test_each_picture_asks_for_what_it_needs():
    data = uw.data.load("pendulum")
    method = Noise(data.image_shape)
    method.spec = MethodSpec("noise", list(data.image_shape))
    assert samples(method, data, rows=1, columns=2).width > 0
    for draw in (reconstructions, traversals):
        with pytest.raises(ArgumentError, match="method = 'noise': does not both encode and decode images"):
            draw(method, data)
    with pytest.raises(ArgumentError, match="method = 'Linear': does not generate images"):
        samples(torch.nn.Linear(2, 2), data)


def test_latents_of_a_prior_given_labels_are_measured_by_their_own_moments():
    mean, log_variance = 10 + 3 * torch.randn(500, 2), torch.full((500, 2), -4.0)
    mean[:, 1], log_variance[:, 1] = 7.0, 1.0  # not used: the same for all
    kl, centre, scale = usage(mean, log_variance, conditional=True)
    spread = (mean[:, 0].var(correction=0) + math.exp(-4)).sqrt()
    torch.testing.assert_close(centre, torch.stack([mean[:, 0].mean(), torch.tensor(7.0)]))
    torch.testing.assert_close(scale, torch.stack([spread, torch.tensor(math.exp(0.5))]))
    one = torch.distributions.Normal(mean[:, 0], math.exp(-2))
    expected = torch.distributions.kl_divergence(one, torch.distributions.Normal(centre[0], spread)).mean()
    torch.testing.assert_close(kl, torch.stack([expected, torch.tensor(0.0)]), atol=1e-5, rtol=1e-5)
    unconditional = usage(mean, log_variance, conditional=False)
    torch.testing.assert_close(unconditional.kl, kl_to_standard_normal(mean, log_variance).mean(0))
    assert unconditional.centre.tolist() == [0, 0]
    assert unconditional.scale.tolist() == [1, 1]
