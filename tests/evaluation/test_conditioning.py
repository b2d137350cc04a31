"""M1 to M4 where they are known."""

from typing import ClassVar

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.evaluation import normalised_mutual_information
from unweave.methods import Method, Posterior

RNG = np.random.default_rng(0)
N = 4_000


def by_counting(reference, codes):
    """I(c; c_R) / H(c_R) of two discrete columns, from the definition."""
    information = total = 0.0
    for a in np.unique(reference):
        p = np.mean(reference == a)
        total -= p * np.log(p)
        for b in np.unique(codes):
            joint, q = np.mean((reference == a) & (codes == b)), np.mean(codes == b)
            information += joint * np.log(joint / (p * q)) if joint else 0.0
    return information / total


def test_normalised_mutual_information_by_counting():
    reference = RNG.integers(0, 5, (300, 3))
    codes = np.stack(
        [reference[:, 0] // 2, (reference[:, 1] + RNG.integers(0, 2, 300)) % 5, RNG.integers(0, 5, 300)], 1
    )
    expected = [by_counting(reference[:, i], codes[:, i]) for i in range(3)]
    np.testing.assert_allclose(normalised_mutual_information(reference, codes), expected, rtol=1e-9)


def test_closed_forms():
    four = np.repeat(np.arange(4), 25)[:, None]
    halves = four // 2
    assert normalised_mutual_information(four, halves)[0] == pytest.approx(0.5)  # log 2 of log 4
    assert normalised_mutual_information(halves, four)[0] == pytest.approx(1.0)  # divided by H of the first
    constant = np.zeros((100, 1))
    assert np.isnan(normalised_mutual_information(constant, four)[0])
    assert normalised_mutual_information(four, constant)[0] == 0


def test_gaussian_channel():
    """I of jointly Gaussian variables is -log(1 - r^2) / 2; many fine bins come near it."""
    r, n = 0.9, 200_000
    reference = RNG.normal(size=(n, 1))
    codes = r * reference + np.sqrt(1 - r**2) * RNG.normal(size=(n, 1))
    fraction = normalised_mutual_information(reference, codes, num_bins=60)[0]
    width = np.ptp(reference) / 60
    entropy = 0.5 * np.log(2 * np.pi * np.e) - np.log(width)  # of the binned reference
    assert fraction == pytest.approx(-0.5 * np.log(1 - r**2) / entropy, rel=0.03)


@pytest.mark.parametrize(
    ("reference", "codes", "message"),
    [
        (np.zeros((4, 2)), np.zeros((4, 3)), "as reference"),
        (np.zeros(4), np.zeros(4), "needs"),
        (np.zeros((4, 1)), np.full((4, 1), np.nan), "finite"),
    ],
)
def test_wrong_arrays_are_refused(reference, codes, message):
    with pytest.raises(ArgumentError, match=message):
        normalised_mutual_information(reference, codes)


class Stages(Method):
    """Images (c, z, details): c are the first two numbers; the later stage uses y, z, or both."""

    parts: ClassVar = {"c": slice(0, 2), "z": slice(2, 5)}
    noise_correlation = 0.0

    def __init__(self, uses):
        super().__init__()
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        self.uses = uses

    def check_data(self, data):
        pass

    def encode_first(self, images):
        return Posterior(images[:, :2], torch.zeros_like(images[:, :2]))

    def encode(self, images):
        mean = torch.cat([images[:, :2], images[:, :2], images[:, 2:3]], dim=1)  # z knows c as well
        return Posterior(mean, torch.zeros_like(mean))

    def decode_first(self, codes):
        coarse = torch.round(codes[:, :2] * 2) / 2  # y is less exact than x
        return torch.cat([coarse, torch.zeros(len(codes), 4)], dim=1)

    def refine(self, y, z):
        if self.uses == "z":
            return torch.cat([z[:, :2], torch.zeros(len(z), 4)], dim=1)
        if self.uses == "y":
            return y
        return torch.cat([y[:, :2] + 0.2 * (z[:, :2] - y[:, :2]), z[:, 2:], y[:, 3:]], dim=1)

    def decode(self, codes):
        return self.refine(self.decode_first(codes), codes[:, self.parts["z"]])


@pytest.fixture
def data():
    return uw.data.from_arrays(RNG.normal(size=(N, 6)).astype(np.float32))


def score(method, data, **params):
    return uw.evaluate(method, data, "conditioning", params={"conditioning": params})["conditioning"]


def test_a_stage_that_uses_y_alone_keeps_c_whatever_z_is(data):
    found = score(Stages("y"), data, num_images=N).details
    c = data.images(np.arange(N))[:, :2].astype(np.float64)
    y = np.round(c * 2) / 2
    expected = normalised_mutual_information(c, y).mean()
    for name in ("m1", "m2", "m3"):
        assert found[name] == pytest.approx(expected, abs=1e-6)
    assert found["m4"] < 0.05
    assert found["num_images"] == N
    assert found["matrix"].shape == (2, 4)


def test_a_stage_that_uses_z_alone_loses_c_with_z(data):
    found = score(Stages("z"), data, num_images=N).details
    assert found["m2"] == pytest.approx(1)
    assert found["m4"] == pytest.approx(1)
    assert found["m3"] < 0.05


def test_a_stage_that_refines_y_by_z_has_the_papers_order(data):
    found = score(Stages("both"), data)
    m1, m2, m3, m4 = (found.details[f"m{i}"] for i in range(1, 5))
    assert m2 > m1 > m3 > 3 * m4
    assert found.value == m3


def test_constant_latents_are_left_out(data):
    images = data.images(np.arange(N)).copy()
    images[:, 1] = 3.0
    found = score(Stages("y"), uw.data.from_arrays(images)).details
    assert found["excluded"].tolist() == [1]
    assert np.isfinite([found[f"m{i}"] for i in range(1, 5)]).all()


def test_the_seed_decides_the_noise(data):
    values = [
        uw.evaluate(
            Stages("both"), data, "conditioning", seed=seed, params={"conditioning": {"num_images": 300}}
        )
        for seed in (1, 1, 2)
    ]
    m3 = [scores["conditioning"].value for scores in values]
    assert m3[0] == m3[1] != m3[2]


def test_a_model_of_one_stage_is_refused(data):
    method = uw.methods.create("vae", data, latent_size=2)
    with pytest.raises(
        ArgumentError, match="needs a method that refines the images of a first stage; vae does not"
    ):
        score(method, data)
    with pytest.raises(ArgumentError, match="needs a method: it is a metric of a model"):
        score(lambda images: images, data)


def test_ms_vae_has_it():
    images = RNG.integers(0, 256, (20, 28, 28, 1), dtype=np.uint8)
    data = uw.data.from_arrays(images)
    first = uw.train(uw.methods.create("beta_vae", data, latent_size=3), data, steps=1, batch_size=2)
    method = uw.methods.create("ms_vae", data, first=first, latent_size=2)
    found = score(method, data)
    assert found.details["matrix"].shape == (3, 4)
    assert all(0 <= found.details[f"m{i}"] <= 1 for i in range(1, 5))
    assert found.details["num_images"] == 20
