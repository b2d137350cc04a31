"""What knows of a correlated posterior: every term, or the draws of z alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import norm

import unweave as uw
from unweave.errors import ArgumentError
from unweave.methods.spec import MethodSpec


@pytest.fixture
def data():
    return uw.data.from_arrays(np.random.default_rng(0).random((40, 6)).astype(np.float32))


def terms(data, name, correlated, correlation=0.9, **settings):
    method = uw.methods.create(
        name, data, latent_size=4, correlation=correlation, correlated=correlated, seed=0, **settings
    )
    forward = method.begin(data.batch(0, 16), 0, torch.Generator().manual_seed(1))
    return forward, method.loss(forward).values


@pytest.mark.parametrize(
    ("name", "term"), [("beta_tcvae", "total_correlation"), ("dip_vae_ii", "dip_off_diagonal")]
)
def test_terms_stay_as_they_were_where_only_the_noise_is_correlated(data, name, term):
    forward, values = terms(data, name, "noise")
    exact_forward, exact = terms(data, name, "posterior")
    torch.testing.assert_close(forward.z, exact_forward.z)  # the same noise
    if term not in values:
        term = next(key for key in values if key not in ("reconstruction", "kl"))
    assert not torch.isclose(values[term], exact[term])


def test_the_total_correlation_is_that_of_factorised_densities(data):
    forward, values = terms(data, "beta_tcvae", "noise")
    expected = uw.objectives.minibatch_logsumexp(forward.z, *forward.posterior)
    torch.testing.assert_close(values["total_correlation"], expected)
    torch.testing.assert_close(
        values["kl"], uw.objectives.kl_to_standard_normal(*forward.posterior).sum(1).mean()
    )


def test_the_objective_is_that_of_beta_tcvae_at_correlated_draws_in_double_precision(data):
    """KL + (beta - 1) TC of Chen et al. as disentanglement_lib writes it, which Yang et al. used without changes."""
    options = {"latent_size": 4, "beta": 6, "correlation": 0.9, "correlated": "noise", "seed": 0}
    method = uw.methods.create("beta_tcvae", data, **options).double()
    batch = data.batch(0, 16)
    batch = replace(batch, images=batch.images.double())
    forward = method.begin(batch, 0, torch.Generator().manual_seed(1))
    loss = method.loss(forward)
    z, mean, log_variance = (t.detach().numpy() for t in (forward.z, *forward.posterior))
    logits = method.decoder(torch.from_numpy(z)).detach().numpy()
    reconstruction = np.sum(np.logaddexp(0, logits) - batch.images.numpy() * logits, axis=1).mean()
    kl = 0.5 * np.sum(mean**2 + np.exp(log_variance) - log_variance - 1, axis=1).mean()
    pairs = norm.logpdf(z[:, None], mean, np.exp(0.5 * log_variance))  # of each z given each image
    total_correlation = (logsumexp(pairs.sum(2), 1) - logsumexp(pairs, 1).sum(1)).mean()
    expected = reconstruction + kl + 5 * total_correlation
    assert loss.loss.item() == pytest.approx(expected, rel=1e-12)


def test_the_noise_itself_is_correlated(data):
    method = uw.methods.create("vae", data, latent_size=4, correlation=0.9, correlated="noise", seed=0)
    posterior = uw.methods.Posterior(torch.zeros(4000, 4), torch.zeros(4000, 4))
    z = method._draw(posterior, torch.Generator().manual_seed(0)).numpy()
    np.testing.assert_allclose(np.corrcoef(z.T), 0.9 + 0.1 * np.eye(4), atol=0.02)
    assert method.noise_correlation == 0.9


def test_runs_that_do_not_use_it_keep_their_identity(data):
    plain = uw.methods.create("vae", data, correlation=0.9).spec
    assert "correlated" not in plain.as_dict()
    noise = uw.methods.create("vae", data, correlation=0.9, correlated="noise").spec
    assert noise.as_dict()["correlated"] == "noise"
    assert MethodSpec.from_dict(noise.as_dict()) == noise


def test_other_words_are_refused(data):
    with pytest.raises(ArgumentError, match="correlated = 'all'"):
        uw.methods.create("vae", data, correlated="all")
