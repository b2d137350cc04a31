"""Using a VAE: samples, and the evidence lower bound and its parts."""

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import binary_cross_entropy_with_logits

import unweave as uw
from unweave.data.batches import to_tensor
from unweave.methods import code_size

N, D = 8, 3


def generator():
    return torch.Generator().manual_seed(7)


def test_samples_are_decoded_draws_from_the_prior(vectors):
    method = uw.methods.create("beta_vae", vectors, latent_size=D, seed=1)
    codes = torch.randn(5, D, generator=generator())
    torch.testing.assert_close(method.sample(5, generator()), method.decode(codes))
    assert not method.sample(2).requires_grad


def test_samples_given_labels_are_from_the_prior_of_the_datas_labels(vectors):
    """The codes of many samples have the moments of the mixture of p(z|u) over the labels that were drawn."""
    method = uw.methods.create("ivae", vectors, latent_size=D, seed=1, decoder=torch.nn.Linear(D, 6))
    method.decode = lambda codes: codes
    codes = method.sample(200_000, generator())
    mean, log_variance = method.prior_given(method.label_draws)
    expected = log_variance.exp().mean(0) + mean.var(0, correction=0)
    torch.testing.assert_close(codes.mean(0), mean.mean(0), rtol=0, atol=0.02)
    torch.testing.assert_close(codes.var(0), expected, rtol=0.02, atol=0)


def test_parts_and_noise(vectors):
    method = uw.methods.create("vae", vectors, latent_size=D, correlation=0.5)
    assert method.parts == {"z": slice(0, D)}
    assert code_size(method) == D
    assert method.noise_correlation == 0.5


@pytest.mark.parametrize("name", ["vae", "full_vae", "ss_ivae", "idvae"])
def test_the_evidence_bound(vectors, name):
    method = uw.methods.create(name, vectors, latent_size=D, seed=1).double()
    images = to_tensor(vectors.images(np.arange(N))).double()
    labels, u, arguments = None, None, (images,)
    prior = Normal(torch.zeros(N, D).double(), torch.ones(N, D).double())
    if isinstance(method, uw.methods.EncodesWithLabels):
        labels, u = "given", torch.from_numpy(method.labels_for(vectors).known(np.arange(N))).double()
        arguments = (images, u)
        mean, log_variance = method.prior.encoder(u)
        prior = Normal(mean, (log_variance / 2).exp())
    mean, log_variance = method.encoder(*arguments)
    posterior = Normal(mean, (log_variance / 2).exp())
    z = mean + posterior.scale * torch.randn(N, D, generator=generator(), dtype=torch.float64)
    error = binary_cross_entropy_with_logits(method.decoder(z), images, reduction="none").sum(1).mean()
    bound = method.evidence_bound(images, generator(), labels, u)
    torch.testing.assert_close(bound.reconstruction, error)
    torch.testing.assert_close(bound.kl, kl_divergence(posterior, prior))
    torch.testing.assert_close(bound.posterior.mean, mean)


def test_the_bound_of_labels_that_are_not_given(vectors):
    images = to_tensor(vectors.images(np.arange(N)))
    method = uw.methods.create("ss_idvae", vectors, latent_size=D, seed=1)
    predicted = method.predictor.predict(images).mode()
    mean, log_variance = method.encoder(images, predicted)
    prior = method.prior_given(predicted)
    kl = kl_divergence(
        Normal(mean, (log_variance / 2).exp()), Normal(prior.mean, (prior.log_variance / 2).exp())
    )
    for labels in (None, "predicted"):
        torch.testing.assert_close(method.evidence_bound(images, labels=labels).kl, kl)
    assert method.evidence_bound(images, labels="unknown").kl.isnan().all()
