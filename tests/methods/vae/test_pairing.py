"""Methods that learn from pairs: what is shared, how it is averaged, and the loss, each computed anew."""

import itertools

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import binary_cross_entropy_with_logits

import unweave as uw
from unweave.data.batches import LabelledPairedBatch, PairedBatch, PairedBatches, to_tensor
from unweave.errors import ArgumentError
from unweave.methods import Posterior
from unweave.methods.vae.ada_gvae import close_latents
from unweave.methods.vae.gvae import mean_posterior
from unweave.methods.vae.ml_vae import product_posterior

NAMES = ["gvae", "ml_vae", "ada_gvae", "ada_ml_vae"]
N, D = 6, 4  # pairs, latents
CHANGED = torch.tensor([[True, False], [False, True]] * (N // 2))


def posterior(seed, n=N):
    generator = torch.Generator().manual_seed(seed)
    return Posterior(*(torch.randn(n, D, generator=generator, dtype=torch.float64) for _ in range(2)))


def normal(found):
    return Normal(found.mean, found.log_variance.exp().sqrt())


# --- averages ----------------------------------------------------------------------------------


def test_group_vae_averages_means_and_variances():
    one, two = posterior(0), posterior(1)
    found = normal(mean_posterior(one, two))
    torch.testing.assert_close(found.mean, (one.mean + two.mean) / 2)
    torch.testing.assert_close(found.variance, (normal(one).variance + normal(two).variance) / 2)


def test_ml_vae_multiplies_densities():
    """log q_1(z) + log q_2(z) differs from the log of the product's density by a constant."""
    one, two = posterior(0), posterior(1)
    found = product_posterior(one, two)
    z = torch.linspace(-3, 3, 7, dtype=torch.float64)[:, None, None]
    difference = normal(one).log_prob(z) + normal(two).log_prob(z) - normal(found).log_prob(z)
    torch.testing.assert_close(difference, difference[:1].expand_as(difference))
    # By hand: N(0, 1) and N(3, 1/2) have precisions 1 and 2.
    by_hand = product_posterior(
        Posterior(torch.tensor([[0.0]]), torch.tensor([[0.0]])),
        Posterior(torch.tensor([[3.0]]), torch.tensor([[0.5]]).log()),
    )
    torch.testing.assert_close(by_hand.mean, torch.tensor([[2.0]]))
    torch.testing.assert_close(by_hand.log_variance.exp(), torch.tensor([[1 / 3]]))


@pytest.mark.parametrize("average", [mean_posterior, product_posterior])
def test_extreme_variances_stay_finite(average):
    one = Posterior(torch.zeros(1, 2), torch.tensor([[-80.0, 80.0]]))
    two = Posterior(torch.ones(1, 2), torch.tensor([[80.0, 80.0]]))
    assert all(part.isfinite().all() for part in average(one, two))


# --- what is shared ----------------------------------------------------------------------------


def test_latents_below_the_middle_of_the_divergences_are_shared():
    """Unit variances: KL = (distance of means)^2 / 2, here 0, 0.5, 2, 8; the middle is 4."""
    one = Posterior(torch.zeros(2, 4), torch.zeros(2, 4))
    two = Posterior(torch.tensor([[0.0, 1.0, 2.0, 4.0], [4.0, 2.9, 2.8, 0.0]]), torch.zeros(2, 4))
    expected = [[True, True, True, False], [False, False, True, True]]  # 2.9^2 / 2 > 4 > 2.8^2 / 2
    assert close_latents(one, two).tolist() == expected


def test_the_divergence_is_that_of_the_first_from_the_second():
    for seed in range(20):
        one, two = posterior(seed), posterior(seed + 100)
        delta = kl_divergence(normal(one), normal(two))
        middle = (delta.max(1).values + delta.min(1).values) / 2
        assert torch.equal(close_latents(one, two), delta < middle[:, None])


def test_latents_that_are_equally_far_are_not_shared():
    one = posterior(0)
    assert not close_latents(one, one).any()


# --- the whole pass ----------------------------------------------------------------------------


@pytest.fixture
def made(vectors):
    def make(name, **options):
        method = uw.methods.create(name, vectors, latent_size=D, seed=1, **options).double()
        with torch.no_grad():  # so that the two posteriors of a pair differ
            for parameter in method.encoder.parameters():
                parameter.mul_(3)
        images = to_tensor(vectors.images(np.arange(2 * N))).double()
        generator = torch.Generator().manual_seed(5)
        return method, images, method.begin(PairedBatch(images, changed=CHANGED), 0, generator)

    return make


@pytest.mark.parametrize("name", NAMES)
def test_each_posterior_is_its_own_or_the_pairs(made, name):
    method, images, p = made(name)
    mean, log_variance = method.encoder(images)
    for pair, latent in itertools.product(range(N), range(D)):
        at = [pair, pair + N]
        m, v = mean[at, latent], log_variance[at, latent].exp()
        q, r = Normal(m[0], v[0].sqrt()), Normal(m[1], v[1].sqrt())
        if name.startswith("ada"):
            every = [
                kl_divergence(*(Normal(mean[i, d], (log_variance[i, d] / 2).exp()) for i in at))
                for d in range(D)
            ]
            shared = kl_divergence(q, r) < (max(every) + min(every)) / 2
        else:
            shared = latent >= 2 or not CHANGED[pair, latent]
        if shared and "ml" in name:
            precision = (1 / v).sum()
            m, v = ((m / v).sum() / precision).repeat(2), (1 / precision).repeat(2)
        elif shared:
            m, v = m.mean().repeat(2), v.mean().repeat(2)
        torch.testing.assert_close(p.mean[at, latent], m)
        torch.testing.assert_close(p.log_variance[at, latent].exp(), v)


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_is_the_mean_of_both_images_bounds(made, name):
    method, images, p = made(name, beta=3)
    prior = Normal(torch.zeros(D).double(), torch.ones(D).double())
    kl = kl_divergence(normal(Posterior(p.mean, p.log_variance)), prior).sum(1)
    error = binary_cross_entropy_with_logits(method.decoder(p.z), images, reduction="none").sum(1)
    halves = [part[:N].mean() / 2 + part[N:].mean() / 2 for part in (error, 3 * kl)]
    torch.testing.assert_close(method.loss(p).loss, sum(halves))
    noise = torch.randn(2 * N, D, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    torch.testing.assert_close(p.z, p.mean + (p.log_variance / 2).exp() * noise)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_reach_the_encoder_from_both_images(made, name):
    method, images, _ = made(name)
    images.requires_grad_()
    method.loss(method.begin(PairedBatch(images, changed=CHANGED), 0)).loss.backward()
    assert (images.grad.abs().sum(1) > 0).all()
    assert all(parameter.grad is not None for parameter in method.encoder.parameters())


def test_pairs_go_with_other_parts(vectors):
    method = uw.methods.create(
        "ada_gvae",
        vectors,
        latent_size=D,
        correlation=0.5,
        extra_terms=[{"name": "dip_ii"}, {"name": "label_match"}],
        labels=["a", "b"],
    )
    images = vectors.batch(0, 2 * N).images
    terms = method.loss(method.begin(LabelledPairedBatch(images, changed=CHANGED, u=torch.rand(2 * N, 2)), 0))
    assert set(terms.values) == {"reconstruction", "kl", "dip_ii", "label_match"}
    assert terms.loss.isfinite()


# --- checks ------------------------------------------------------------------------------------


def test_what_a_method_needs_is_checked_when_it_is_made(vectors):
    with pytest.raises(ArgumentError, match="latent_size = 1: needs at least 2: gvae"):
        uw.methods.create("gvae", vectors, latent_size=1)
    adaptive = uw.methods.create("ada_gvae", vectors, latent_size=1)
    assert isinstance(adaptive.batches(vectors), PairedBatches)
    with pytest.raises(ArgumentError, match="has no factors"):
        uw.methods.create("ada_gvae", uw.data.from_arrays(np.zeros((4, 6), np.float32)))
    with pytest.raises(ArgumentError, match="k = 2: needs a whole number from 1 to 1"):
        uw.methods.create("ada_gvae", vectors, k=2)
    for k in (0, 1.5, "rnd"):
        with pytest.raises(ArgumentError, match=r"k = .*: needs a whole number >= 1, or 'random'"):
            uw.methods.create("ada_gvae", vectors, k=k)
    with pytest.raises(ArgumentError, match="beta = -1"):
        uw.methods.create("ada_gvae", vectors, beta=-1)


def test_single_images_are_refused_in_training_and_encoded(vectors):
    method = uw.methods.create("gvae", vectors, latent_size=D)
    batch = vectors.batch(0, 5)
    images = batch.images
    with pytest.raises(ArgumentError, match="changed = None: gvae needs pairs"):
        method.begin(batch, 0)
    with pytest.raises(ArgumentError, match=r"shape \(6, 2\).*there are 5 images"):
        method.begin(PairedBatch(images, changed=CHANGED), 0)
    torch.testing.assert_close(method.encode(images).mean, method.encoder(images)[0])


def test_the_first_hyperparameter_is_beta():
    assert all(list(uw.methods.hyperparameters(name)) == ["beta", "k"] for name in NAMES)
    assert (
        uw.methods.create("vae", uw.data.from_arrays(np.zeros((4, 6), np.float32))).supervision.pairing
        is None
    )
