import math
from typing import ClassVar

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.data.batches import to_tensor
from unweave.errors import ArgumentError
from unweave.figures import codes_and_noise, reconstructions, samples, save_traversal_animation, traversals
from unweave.figures.model_pictures import code_noise_rows, reconstruction_rows, traversal_rows
from unweave.figures.traversal import draw_images, traverse
from unweave.methods import Method, Posterior
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
    with pytest.raises(ArgumentError, match="method = 'noise': does not generate images from codes"):
        codes_and_noise(method, data)
    with pytest.raises(ArgumentError, match="method = 'Linear': does not generate images"):
        samples(torch.nn.Linear(2, 2), data)


class Stages(Method):
    """Two codes, c and z: y is the level c, x is y with z added in its left half."""

    noise_correlation = None
    parts: ClassVar = {"c": slice(0, 1), "z": slice(1, 2)}

    def __init__(self, image_shape):
        super().__init__()
        self.register_buffer("left", torch.zeros(1, 1, *image_shape[:2]))
        self.left[..., : image_shape[1] // 2] = 1

    def encode(self, images):
        mean = torch.stack([images.mean((1, 2, 3)), images[:, 0, 0, 0]], dim=1)
        return Posterior(mean, torch.full_like(mean, -torch.inf))

    def decode(self, codes):
        return self.decode_stages(codes)["x"]

    def decode_stages(self, codes):
        c, z = codes[:, 0, None, None, None], codes[:, 1, None, None, None]
        y = c.expand(-1, 1, *self.left.shape[2:])
        return {"y": y, "x": y + z * self.left}


@pytest.fixture
def staged():
    images = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1), dtype=np.uint8)
    data = uw.data.from_arrays(images, name="noise")
    method = Stages(data.image_shape)
    method.spec = MethodSpec("stages", list(data.image_shape))
    return method, data


def test_stages_have_a_row_each(staged):
    method, data = staged
    assert [row.label for row in reconstruction_rows(method, data, columns=2)] == ["image", "y", "x"]
    rows = traversal_rows(method, data, columns=3)
    # z does not reach y, which has no row of its own.
    assert [row.label for row in rows] == ["c0: y", "c0: x", "z0: x"]
    assert [row.gap_above for row in rows] == [False, False, True]
    assert [list(row.captions) for row in rows] == [[], [], ["-2.0", "0.0", "2.0"]]
    assert [row.detail.split()[0] for row in rows if row.detail] == ["deviation", "deviation"]
    assert [row.label for row in traversal_rows(method, data, part="z")] == ["z0: x"]
    assert [row.label for row in traversal_rows(method, data, latents=[1, 0])] == ["z0: x", "c0: y", "c0: x"]
    with pytest.raises(ArgumentError, match="latents = 2: the model has latents 0 to 1"):
        traversals(method, data, latents=[2])
    with pytest.raises(ArgumentError, match="part = 'y'"):
        traversals(method, data, part="y")


def test_a_traversal_moves_one_code_by_deviations_of_codes_without_noise(staged):
    method, data = staged
    c, z = traverse(method, data, [-2.0, 0.0, 2.0], seed=1)
    codes = method.encode(to_tensor(draw_images(data, 256, 1))).mean
    base, spread = codes[0], codes.std(dim=0, correction=0)
    expected = codes.mean(dim=0) + torch.tensor([-2.0, 0.0, 2.0])[:, None] * spread
    np.testing.assert_array_equal(c.stages["y"], bytes_of(expected[:, 0]))
    right = torch.full((3,), float(base[0]))
    np.testing.assert_array_equal(z.stages["x"][:, :, 4:], bytes_of(right)[:, :, 4:])
    np.testing.assert_array_equal(z.stages["x"][:, :, :4], bytes_of(base[0] + expected[:, 1])[:, :, :4])


def bytes_of(levels):
    """Grey images (n, 8, 8, 1) of levels (n,)."""
    return (
        np.rint(np.clip(levels.numpy(), 0, 1) * 255)
        .astype(np.uint8)[:, None, None, None]
        .repeat(8, 1)
        .repeat(8, 2)
    )


@pytest.fixture
def gan():
    data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8), name="black")
    return uw.methods.create("infogan", data, num_categories=3, noise_size=4, width=4).eval(), data


def test_pictures_are_of_the_method_in_use(gan):
    method, data = gan
    expected = np.asarray(samples(method, data, rows=1, columns=3))
    method.train()  # batch normalisation would mix the images of a picture
    np.testing.assert_array_equal(samples(method, data, rows=1, columns=3), expected)
    assert method.training


def test_a_category_is_one_row_and_codes_go_over_their_prior(gan):
    method, data = gan
    category, *continuous = traverse(method, data, [-2.0, 0.0, 2.0], seed=5)
    assert (category.label, category.captions) == ("c0–2", ("0", "1", "2"))
    assert {one.label for one in continuous} == {"c3", "c4"}
    reach = [float(value) for value in continuous[0].captions]
    assert reach == pytest.approx([-0.95, 0, 0.95], abs=0.15)  # of U(-1, 1)
    codes, noise = method.sample_inputs(256, torch.Generator().manual_seed(5))
    wanted = codes[:1].repeat(3, 1)
    wanted[:, :3] = torch.eye(3)
    with torch.inference_mode():
        images = method.generate(wanted, noise[:1].expand(3, -1)).numpy().transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(category.stages[""], np.rint(images * 255).astype(np.uint8))


def test_codes_and_noise_are_apart(gan):
    method, data = gan
    rows = code_noise_rows(method, data, seed=2, columns=4)
    assert [row.label for row in rows] == ["category 0", "category 1", "category 2"]
    codes, noise = method.sample_inputs(8, torch.Generator().manual_seed(2))
    code = codes[:1].clone()
    code[:, :3] = torch.eye(3)[2]
    with torch.inference_mode():
        image = method.generate(code, noise[3:4]).numpy()[0, 0]
    tile = np.asarray(rows[2].tiles[3])[:, :, 0]
    np.testing.assert_array_equal(tile[::3, ::3], np.rint(image * 255).astype(np.uint8))


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
