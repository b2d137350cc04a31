"""Each run directory gets the pictures that its method allows."""

import numpy as np
import pytest
import torch
from PIL import Image

import unweave as uw
from unweave.errors import ArgumentError
from unweave.figures import loss_curves
from unweave.methods import METHODS, register_method
from unweave.methods.method import Method, Player, Terms


def pictures_in(folder):
    return {path.name for path in folder.iterdir() if path.suffix in (".png", ".gif")}


def test_a_method_that_encodes_and_decodes_has_reconstructions_and_traversals(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
    data = uw.data.from_arrays(images, name="noise")
    method = uw.methods.create("beta_vae", data, latent_size=3)
    uw.train(method, data, steps=3, batch_size=4, out=tmp_path, log_every=1)
    assert pictures_in(tmp_path) == {
        "reconstructions.png",
        "traversals.png",
        "traversals.gif",
        "samples.png",
        "loss_curves.png",
    }
    for name in pictures_in(tmp_path):
        with Image.open(tmp_path / name) as picture:
            assert picture.width > 100
    with Image.open(tmp_path / "traversals.gif") as animation:
        assert animation.n_frames == 24


class Average(Method):
    """Learns the mean observation; can be trained and nothing else."""

    def __init__(self, image_shape):
        super().__init__()
        self.mean = torch.nn.Parameter(torch.zeros(image_shape))

    def begin(self, batch, step, generator):
        return (batch.images - self.mean).square().mean()

    def players(self):
        return [Player("model", list(self.parameters()), lambda error: Terms.of(error=(error, 1.0)))]


class Gaussian(Average):
    """Generates, but does not encode, as a GAN."""

    def sample(self, n, generator=None):
        return self.mean + torch.randn(n, *self.mean.shape, generator=generator)


@pytest.mark.parametrize(
    ("kind", "pictures"),
    [(Average, {"loss_curves.png"}), (Gaussian, {"loss_curves.png", "samples.png"})],
)
def test_a_method_that_generates_has_samples(kind, pictures, tmp_path):
    data = uw.data.load("pendulum")
    register_method("outsider")(kind)
    try:
        uw.train(uw.methods.create("outsider", data), data, steps=2, out=tmp_path)
    finally:
        METHODS.unregister("outsider")
    assert pictures_in(tmp_path) == pictures


def test_a_gan_has_codes_against_noise(tmp_path):
    data = uw.data.from_arrays(np.random.default_rng(0).integers(0, 256, (8, 28, 28, 1), dtype=np.uint8))
    method = uw.methods.create("infogan", data, num_categories=2, noise_size=3, width=2)
    uw.train(method, data, steps=1, batch_size=4, out=tmp_path)
    assert {"codes_and_noise.png", "samples.png", "traversals.png", "reconstructions.png"} <= pictures_in(
        tmp_path
    )


def test_loss_curves_need_records():
    with pytest.raises(ArgumentError, match="no records"):
        loss_curves([], "empty")


def test_pictures_that_are_missing_after_a_kill_are_drawn_by_the_next_call(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 1), dtype=np.uint8)
    data = uw.data.from_arrays(images, name="noise")

    def train():
        method = uw.methods.create("beta_vae", data, latent_size=2, architecture="mlp")
        uw.train(method, data, steps=2, batch_size=4, out=tmp_path, log_every=1)

    train()
    everything = pictures_in(tmp_path)
    kept = (tmp_path / "loss_curves.png").stat().st_mtime_ns
    for name in everything - {"loss_curves.png"}:
        (tmp_path / name).unlink()
    train()
    assert pictures_in(tmp_path) == everything
    assert (tmp_path / "loss_curves.png").stat().st_mtime_ns == kept
