"""Each method's loss against the papers' formulas, computed anew in float64."""

import math

import numpy as np
import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

import unweave as uw
from unweave.data.batches import Batch, LabelledBatch, PairedBatch, to_tensor
from unweave.methods import ConditionalPass, Posterior
from unweave.methods.vae.factor_vae import by_two_passes, ratio_and_loss
from unweave.networks import Discriminator

N, D = 16, 3
VAES = [name for name in uw.methods.names() if uw.methods.describe(name).is_vae]


@pytest.fixture
def made(vectors):
    """A forward pass of a method in float64, and what it was made of."""

    def make(name, step=0, **options):
        method = uw.methods.create(name, vectors, latent_size=D, seed=1, **options).double()
        with torch.no_grad():  # so that the codes are not near zero and their scales differ
            for parameter in method.encoder.parameters():
                parameter.mul_(3)
        return method, method.begin(batch_for(method, vectors), step, torch.Generator().manual_seed(5))

    return make


def batch_for(method, data):
    """The first N images in float64, as a batch of the kind that the method learns from."""
    images = to_tensor(data.images(np.arange(N))).double()
    labels, kind = method.labels_for(data), type(method.batches(data).draw(0, 2, 0))
    if kind is PairedBatch:
        return PairedBatch(images, changed=torch.tensor([[True, False], [False, True]] * (N // 4)))
    if kind is LabelledBatch:
        return LabelledBatch(images, u=torch.from_numpy(labels.of(np.arange(N))))
    assert kind is Batch
    return Batch(images)


def reconstruction(made_pass):
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        made_pass.output, made_pass.images, reduction="none"
    )
    return loss.sum(1).mean()


def kl(made_pass):
    posterior = Independent(Normal(made_pass.mean, (made_pass.log_variance / 2).exp()), 1)
    prior = Independent(Normal(torch.zeros(D).double(), torch.ones(D).double()), 1)
    return kl_divergence(posterior, prior)


def log_pairs(made_pass):
    """log q(z_i | x_j) per dimension, by torch.distributions: (n, n, D)."""
    scale = (made_pass.log_variance / 2).exp()
    return Normal(made_pass.mean[None], scale[None]).log_prob(made_pass.z[:, None])


def check(method, made_pass, expected):
    torch.testing.assert_close(method.loss(made_pass).loss, expected, rtol=1e-9, atol=1e-9)


def test_vae(made):
    method, p = made("vae")
    check(method, p, reconstruction(p) + kl(p).mean())


def test_beta_vae_scales_the_kl(made):
    method, p = made("beta_vae", beta=7.5)
    check(method, p, reconstruction(p) + 7.5 * kl(p).mean())


@pytest.mark.parametrize(("step", "capacity"), [(0, 0.0), (250, 10.0), (1000, 40.0), (5000, 40.0)])
def test_annealed_vae_takes_the_distance_of_the_batch_mean(made, step, capacity):
    method, p = made("annealed_vae", step, c_max=40, gamma=100, steps=1000)
    expected = reconstruction(p) + 100 * (kl(p).mean() - capacity).abs()
    check(method, p, expected)
    values = kl(p).detach()
    between = values.median()  # some samples above, some below: only there do the two definitions differ
    per_sample = (values - between).abs().mean()
    assert abs((values.mean() - between).abs() - per_sample).item() > 1e-3


def test_beta_tcvae_scales_the_total_correlation_only(made):
    method, p = made("beta_tcvae", beta=5)
    pairs = log_pairs(p)
    log_qz = torch.logsumexp(pairs.sum(2), 1)
    log_product = torch.logsumexp(pairs, 1).sum(1)
    total_correlation = (log_qz - log_product).mean()
    check(method, p, reconstruction(p) + kl(p).mean() + 4 * total_correlation)
    wrong = reconstruction(p) + 5 * kl(p).mean() + 4 * total_correlation
    assert abs((method.loss(p).loss - wrong).item()) > 1e-3


def test_beta_tcvae_at_beta_one_is_the_vae(made):
    method, p = made("beta_tcvae", beta=1)
    check(method, p, reconstruction(p) + kl(p).mean())


def test_beta_tcvae_weighted_has_the_constants(made, vectors):
    method, p = made("beta_tcvae", beta=2, estimator="weighted")
    pairs = log_pairs(p)
    constant = math.log(len(vectors) * N)
    log_qz = torch.logsumexp(pairs.sum(2), 1) - constant
    log_product = (torch.logsumexp(pairs, 1) - constant).sum(1)
    check(method, p, reconstruction(p) + kl(p).mean() + (log_qz - log_product).mean())


@pytest.mark.parametrize(("name", "diagonal"), [("dip_vae_i", 10.0), ("dip_vae_ii", 1.0)])
def test_dip_vae_matches_the_covariance(made, name, diagonal):
    method, p = made(name, lambda_od=3)
    mean = p.mean.detach().numpy()
    covariance = np.cov(mean, rowvar=False, bias=True)
    if name == "dip_vae_ii":
        covariance += np.diag(p.log_variance.detach().exp().numpy().mean(0))
    off = covariance - np.diag(np.diag(covariance))
    penalty = 3 * (off**2).sum() + 3 * diagonal * ((np.diag(covariance) - 1) ** 2).sum()
    check(method, p, reconstruction(p) + kl(p).mean() + penalty)


def test_dip_vae_third_moments(made):
    method, p = made("dip_vae_i", lambda_od=0, lambda_d=0, lambda_3=200)
    centred = p.mean.detach().numpy() - p.mean.detach().numpy().mean(0)
    third = np.einsum("ni,nj,nk->ijk", centred, centred, centred) / N
    check(method, p, reconstruction(p) + kl(p).mean() + 200 * (third**2).sum())


def test_factor_vae_uses_the_density_ratio(made):
    method, p = made("factor_vae", gamma=20)
    logits = method.terms[1].discriminator(p.z)
    expected = reconstruction(p) + kl(p).mean() + 20 * (logits[:, 0] - logits[:, 1]).mean()
    check(method, p, expected)


@pytest.mark.parametrize("name", VAES)
def test_the_kl_of_a_correlated_posterior_is_exact(made, name):
    s = 0.9
    method, p = made(name, correlation=s)
    noise = (1 - s) * torch.eye(D).double() + s * torch.ones(D, D).double()
    scale = torch.diag_embed((p.log_variance / 2).exp())
    posterior = torch.distributions.MultivariateNormal(p.mean, scale @ noise @ scale)
    mean, log_variance = p.prior if isinstance(p, ConditionalPass) else (torch.zeros(N, D).double(),) * 2
    prior = torch.distributions.MultivariateNormal(mean, torch.diag_embed(log_variance.exp()))
    torch.testing.assert_close(method.loss(p).values["kl"], kl_divergence(posterior, prior).mean())


def test_correlated_noise_is_in_the_samples(vectors):
    method = uw.methods.create("vae", vectors, latent_size=D, correlation=0.8, seed=1)
    images = to_tensor(vectors.images(np.zeros(20_000, int)))
    made_pass = method.begin(Batch(images), 0, torch.Generator().manual_seed(0))
    noise = (made_pass.z - made_pass.mean) / (made_pass.log_variance / 2).exp()
    expected = 0.2 * np.eye(D) + 0.8
    np.testing.assert_allclose(np.cov(noise.detach().numpy(), rowvar=False), expected, atol=0.03)


def test_gradients_agree_with_finite_differences(made, vectors):
    for name in VAES:
        method, p = made(name)
        weight = method.encoder.state_dict(keep_vars=True)
        key = next(k for k in reversed(weight) if k.endswith("weight"))
        parameter = weight[key]

        def loss(method=method, batch=p.batch):
            return method.loss(method.begin(batch, 40, torch.Generator().manual_seed(5))).loss

        (gradient,) = torch.autograd.grad(loss(), parameter)
        direction = torch.randn_like(parameter)
        step = 1e-6
        with torch.no_grad():
            parameter.add_(step * direction)
            above = loss()
            parameter.sub_(2 * step * direction)
            below = loss()
        numeric = (above - below) / (2 * step)
        torch.testing.assert_close((gradient * direction).sum(), numeric, rtol=1e-5, atol=1e-6, msg=name)


def test_the_adversary_and_the_model_do_not_touch_each_other(made):
    method, p = made("factor_vae")
    model, adversary = method.players()
    shared = {id(x) for x in model.parameters} & {id(x) for x in adversary.parameters}
    assert not shared
    assert {id(x) for x in method.parameters()} == {
        id(x) for player in (model, adversary) for x in player.parameters
    }

    model.loss(p).loss.backward()
    assert all(x.grad is None for x in adversary.parameters)
    assert all(x.grad is not None for x in model.parameters)
    method.zero_grad()
    adversary.loss(p).loss.backward()
    assert all(x.grad is None for x in model.parameters)
    assert all(x.grad is not None for x in adversary.parameters)


@pytest.mark.parametrize("certainty", [1.0, 1e4])
def test_one_pass_of_the_adversary_gives_the_gradients_of_two(certainty):
    """Also if it is so sure of every row that its own loss has no gradient left."""
    discriminator = Discriminator(D).double()
    with torch.no_grad():
        list(discriminator.parameters())[-2].mul_(certainty)
    weights = list(discriminator.parameters())
    z, permuted = torch.randn(2, N, D).double()
    results = []
    for compute in (ratio_and_loss, by_two_passes):
        codes = z.clone().requires_grad_()
        ratio, loss = compute(discriminator, codes, permuted)
        for value, others in ((ratio, weights), (loss, [codes])):
            assert all(
                x is None for x in torch.autograd.grad(value, others, retain_graph=True, allow_unused=True)
            )
        by_codes = torch.autograd.grad(3 * ratio, codes)
        results.append([ratio, loss, *by_codes, *torch.autograd.grad(2 * loss, weights)])
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-12)
    by_codes = results[0][2]
    assert by_codes.abs().min() > 0


def test_second_derivatives_are_refused_where_they_would_be_left_out():
    z = torch.randn(N, D, requires_grad=True)
    discriminator, permuted = Discriminator(D), torch.randn(N, D)
    ratio, _ = ratio_and_loss(discriminator, z, permuted)
    with pytest.raises(uw.UnweaveError, match=r"create_graph = True: .* by_two_passes has them"):
        torch.autograd.grad(ratio, z, create_graph=True)
    ratio, _ = by_two_passes(discriminator, z, permuted)
    assert torch.autograd.grad(ratio, z, create_graph=True)[0].requires_grad


def test_the_adversary_learns_to_tell_correlated_codes_from_permuted_ones(vectors):
    method = uw.methods.create("factor_vae", vectors, latent_size=2, seed=0)
    term = method.terms[1]
    term.discriminator = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    optimiser = torch.optim.Adam(term.discriminator.parameters(), 1e-2)
    generator = torch.Generator().manual_seed(0)
    correlation = 0.9
    for _ in range(400):
        first = torch.randn(1024, generator=generator)
        second = correlation * first + math.sqrt(1 - correlation**2) * torch.randn(1024, generator=generator)
        z = torch.stack([first, second], 1)
        p = uw.methods.Pass(Batch(z), 0, Posterior(z, z), z, z, generator=generator)
        optimiser.zero_grad()
        term.adversary().loss(p).loss.backward()
        optimiser.step()
    estimate = term(p).values["total_correlation"].item()
    assert estimate == pytest.approx(-0.5 * math.log(1 - correlation**2), abs=0.15)  # TC = 0.83 nats
