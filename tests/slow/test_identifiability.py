"""What nonlinear ICA promises, on simulated sources: labels identify them, if there are enough different ones.

Two sources, whose means and variances depend on a segment, seen through two layers. Codes are a function of x alone
(the encoder ignores u), so that no label of a point leaks into its code. Short runs with small networks: what must show
is the direction, in the mean over five seeds.

The setting was chosen among several. With variances alone to tell segments apart, or an encoder that sees u, runs of
iVAE this short were hardly better than VAE. With segments for labels, IDVAE's second VAE falls back to N(0, I): a
decoder of categories that ignores z is as good a model of them as any.
"""

import json

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.metrics.identifiability import conditional_prior_rank
from unweave.networks import MLP

SOURCES, POINTS = 2, 10_000
ENOUGH = 20  # segments; Theorem 1 needs 2 n + 1 = 5
STEPS, SEEDS = 3_000, range(5)
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


def labels(name, made):
    """The segment; for IDVAE in which eighth of its values each source is."""
    if name == "vae":
        return {}
    if name == "idvae":
        ranks = made.sources.argsort(0).argsort(0)
        return {"labels": {"array": ranks * 8 // len(ranks)}}
    return {"labels": {"encoding": "one_hot"}}


def scores(name, segments, seed):
    """MCC and linear R^2 of a trained method's codes with the sources."""
    if (name, segments, seed) not in _SCORES:
        made = uw.data.simulate_sources(
            SOURCES, segments, POINTS // segments, 2, means=(-2, 2), modulation=(0.01, 4), seed=seed
        )
        torch.manual_seed(seed)  # of the networks, which are our own
        method = uw.methods.create(
            name,
            made.dataset,
            latent_size=SOURCES,
            reconstruction="gaussian_learned",
            encoder=Encoder(),
            decoder=MLP(SOURCES, (50, 50), SOURCES, "leaky_relu"),
            **labels(name, made),
        )
        uw.train(method, made.dataset, STEPS, 128, 2e-3, seed, pictures=False)
        x = torch.from_numpy(made.observations).float()
        with torch.no_grad():
            codes = method.encoder(x)[0].numpy()
        found = {key: uw.metrics.score(key, codes, made.sources).value for key in ("mcc", "linear_r2")}
        if name == "ivae":
            found["rank"] = conditional_prior_rank(method, made.dataset).rank
        print(json.dumps({"method": name, "segments": segments, "seed": seed, **found}), flush=True)
        _SCORES[name, segments, seed] = found
    return _SCORES[name, segments, seed]


def mean(metric, name, segments=ENOUGH):
    return np.mean([scores(name, segments, seed)[metric] for seed in SEEDS])


def test_a_prior_given_segments_finds_the_sources_better_than_none():
    """Khemakhem et al. 2020: iVAE against VAE."""
    assert mean("mcc", "ivae") > mean("mcc", "vae") + 0.03
    assert mean("linear_r2", "ivae") > mean("linear_r2", "vae")


def test_too_few_segments_do_not_identify():
    """With 2 segments L has rank 1, of the 4 that Theorem 1 needs; with 5 and more it has them all."""
    assert mean("rank", "ivae", 2) == 1
    assert mean("rank", "ivae", 5) == mean("rank", "ivae") == 2 * SOURCES
    few, enough, many = (mean("linear_r2", "ivae", segments) for segments in (2, 5, ENOUGH))
    assert few < enough - 0.02
    assert few < many - 0.02
    assert mean("mcc", "ivae", 2) < mean("mcc", "ivae")


def test_labels_that_tell_of_the_sources_identify_them():
    """Mita et al. 2021: IDVAE, whose prior is learned from labels alone, so these must tell of the sources."""
    assert mean("mcc", "idvae") > mean("mcc", "vae") + 0.03
