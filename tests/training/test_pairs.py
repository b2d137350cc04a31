"""Runs of methods that learn from pairs: they learn, are exact to resume, and are scored as any other."""

from functools import partial

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.data.batches import to_tensor
from unweave.errors import ArgumentError

train = partial(uw.train, pictures=False)

NAMES = ["gvae", "ml_vae", "ada_gvae", "ada_ml_vae"]


def create(data, name, **options):
    return uw.methods.create(name, data, latent_size=3, **options)


@pytest.mark.parametrize("name", ["gvae", "ada_ml_vae"])
def test_a_stopped_run_goes_on_to_the_same_bits(squares, tmp_path, name):
    options = {"batch_size": 4, "seed": 4}
    whole = train(create(squares, name), squares, 4, **options)
    train(create(squares, name), squares, 2, out=tmp_path / "run", **options)
    assert uw.load(tmp_path / "run").step == 2
    resumed = train(create(squares, name), squares, 4, out=tmp_path / "run", **options)
    for key, value in whole.method.state_dict().items():
        assert torch.equal(value, resumed.method.state_dict()[key]), key
    images = to_tensor(squares.images(np.arange(6)))
    with torch.no_grad():
        loaded = uw.load(tmp_path / "run").method.encode(images)
        torch.testing.assert_close(loaded.mean, whole.method.encode(images).mean)
    with pytest.raises(ArgumentError, match="k is"):
        train(create(squares, name, k="random"), squares, 4, out=tmp_path / "run", **options)


@pytest.mark.parametrize("name", NAMES)
def test_training_learns(squares, name):
    run = train(create(squares, name, k="random"), squares, 40, learning_rate=1e-3, batch_size=8, log_every=1)
    losses = [record["loss"] for record in run.records]
    assert np.mean(losses[-5:]) < 0.6 * losses[0]


def test_a_run_is_scored_as_any_other(squares):
    run = train(create(squares, "ada_gvae"), squares, 1, batch_size=4)
    scores = uw.evaluate(run, squares, ["mig", "unsupervised"], num_train=100, num_test=50)
    assert np.isfinite(scores["mig"].value)
    assert np.isfinite(scores["unsupervised"].value)


def test_known_changes_put_each_factor_into_its_own_latent():
    """A code that is told which factor changed has factor i in latent i: vectors of two independent halves."""
    rng = np.random.default_rng(0)
    a, b = np.divmod(np.arange(64), 8)
    patterns = rng.random((2, 8, 6)).astype(np.float32)
    vectors = np.concatenate([patterns[0, a], patterns[1, b]], axis=1)
    data = uw.data.from_arrays(vectors, {"a": a, "b": b})
    encoder = torch.nn.Sequential(torch.nn.Linear(12, 40), torch.nn.ReLU(), _Heads(40, 2))
    decoder = torch.nn.Sequential(torch.nn.Linear(2, 40), torch.nn.ReLU(), torch.nn.Linear(40, 12))
    torch.manual_seed(0)
    for network in (encoder, decoder):
        network.apply(lambda m: m.reset_parameters() if isinstance(m, torch.nn.Linear) else None)
    method = uw.methods.create(
        "gvae", data, latent_size=2, beta=0.001, reconstruction="mse", encoder=encoder, decoder=decoder
    )
    run = train(method, data, 600, 32, 3e-3, log_every=600)
    with torch.no_grad():
        codes = run.method.encode(to_tensor(data.images(np.arange(64)))).mean.reshape(8, 8, 2).numpy()
    of_a, of_b = codes.mean(1).var(0), codes.mean(0).var(0)  # variance explained by each factor, per latent
    assert of_a[0] > 10 * of_b[0]
    assert of_b[1] > 10 * of_a[1]


class _Heads(torch.nn.Module):
    def __init__(self, features, latent_size):
        super().__init__()
        self.mean = torch.nn.Linear(features, latent_size)
        self.log_variance = torch.nn.Linear(features, latent_size)

    def forward(self, x):
        return self.mean(x), self.log_variance(x)
