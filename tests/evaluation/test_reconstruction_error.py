"""L1 and L2 errors against plain loops, and what can have them."""

from typing import ClassVar

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.data.batches import to_tensor
from unweave.errors import ArgumentError
from unweave.evaluation import Trained, find_metric
from unweave.methods import Method, Posterior

IMAGES = np.random.default_rng(0).integers(0, 256, (70, 8, 8, 1), dtype=np.uint8)
METRIC = find_metric("reconstruction_error")


class Blur(Method):
    """An autoencoder without noise and without an evidence bound: codes are the means of image rows."""

    parts: ClassVar = {"z": slice(0, 8)}
    noise_correlation = None

    def __init__(self):
        super().__init__()
        self.anchor = torch.nn.Parameter(torch.zeros(1))

    def check_data(self, data):
        pass

    def encode(self, images):
        mean = images.mean(dim=(1, 3))
        return Posterior(mean, torch.full_like(mean, -torch.inf))

    def decode(self, codes):
        return codes[:, None, :, None].expand(-1, 1, 8, 8)


def test_errors_of_single_images():
    data = uw.data.from_arrays(IMAGES)
    found = uw.evaluate(Blur(), data, "reconstruction_error")["reconstruction_error"]
    l1, l2 = [], []
    for image in IMAGES[..., 0] / 255:
        difference = image - image.mean(axis=1, keepdims=True)
        l1.append(np.abs(difference).sum())
        l2.append((difference**2).sum())
    assert found.details["l1"] == pytest.approx(np.mean(l1), rel=1e-6)
    assert found.details["l2"] == pytest.approx(np.mean(l2), rel=1e-6)
    assert found.details["l1_per_pixel"] == pytest.approx(np.mean(l1) / 64, rel=1e-6)
    assert found.details["l2_per_pixel"] == pytest.approx(np.mean(l2) / 64, rel=1e-6)
    assert found.value == found.details["l2"]
    assert found.details["num_images"] == 70
    assert found.higher_is_better is False


def test_the_same_sums_as_the_evidence_bound_has():
    data = uw.data.from_arrays(np.repeat(IMAGES[:1], 5, axis=0).repeat(4, 1).repeat(4, 2))
    method = uw.methods.create("vae", data, architecture="mlp", latent_size=2)
    scores = uw.evaluate(
        method, data, ["reconstruction_error", "unsupervised"], params={"unsupervised": {"num_images": 5}}
    )
    for name in ("l1", "l2"):
        expected = scores["unsupervised"].details[name]
        assert scores["reconstruction_error"].details[name] == pytest.approx(expected, rel=1e-5)


def test_images_are_all_different():
    trained = Trained(Blur(), uw.data.from_arrays(IMAGES), None, np.random.default_rng(1))
    which = trained.choose_images(50)
    assert len(set(which.tolist())) == 50
    assert METRIC.compute(trained, num_images=50).details["num_images"] == 50
    batches = [batch.images for batch in trained.encoded(np.arange(70))]
    assert torch.equal(torch.cat(batches), to_tensor(IMAGES))


def test_labels_reach_the_encoder():
    factors = np.random.default_rng(0).integers(0, 3, (70, 2))
    data = uw.data.from_arrays(IMAGES.repeat(4, 1).repeat(4, 2), factors)
    method = uw.methods.create("ivae", data, latent_size=3, architecture="mlp", seed=0)
    found = {
        mode: uw.evaluate(method, data, "reconstruction_error", labels=mode)["reconstruction_error"]
        for mode in ("given", "unknown")
    }
    u = torch.from_numpy(method.labels_for(data).known(np.arange(70)))
    images = to_tensor(data.images(np.arange(70)))
    with torch.no_grad():
        decoded = method.decode(method.posterior(images, "given", u).mean)
    expected = (decoded - images).square().flatten(1).sum(1).mean().item()
    assert found["given"].value == pytest.approx(expected, rel=1e-5)
    assert found["given"].value != found["unknown"].value
    assert found["unknown"].params["labels"] == "unknown"


def test_what_cannot_decode_is_refused():
    class Encoder(Method):
        parts: ClassVar = {"z": slice(0, 1)}
        noise_correlation = None
        spec = type("Spec", (), {"name": "encoder"})()

        def encode(self, images):
            return Posterior(images[:, 0, 0, :1], images[:, 0, 0, :1])

    with pytest.raises(ArgumentError, match="turns codes into images; encoder does not"):
        uw.evaluate(Encoder(), uw.data.from_arrays(IMAGES), "reconstruction_error")
