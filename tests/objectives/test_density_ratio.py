"""The adversary's side of total correlation: FactorVAE's discriminator and its permuted codes."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch.autograd import gradcheck
from torch.distributions import MultivariateNormal, Normal

from unweave.errors import ArgumentError
from unweave.objectives.total_correlation import (
    density_ratio,
    discriminator_loss,
    permute_dimensions,
)


def posteriors(count=5, size=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mean, log_variance, noise = torch.randn(3, count, size, generator=generator, dtype=torch.float64)
    log_variance = 0.5 * log_variance - 1
    return mean + log_variance.exp().sqrt() * noise, mean, log_variance


def test_density_ratio_at_the_optimal_discriminator_is_the_total_correlation():
    covariance = torch.tensor([[1.0, 0.9], [0.9, 2.0]], dtype=torch.float64)
    law = MultivariateNormal(torch.zeros(2).double(), covariance)
    draw = torch.randn(20_000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z = draw @ torch.linalg.cholesky(covariance).T
    product = Normal(0.0, covariance.diagonal().sqrt()).log_prob(z).sum(1)
    shift = torch.linspace(-3, 3, len(z)).double()  # logits are defined up to one number per sample
    logits = torch.stack([law.log_prob(z) + shift, product + shift], 1)
    truth = 0.5 * (covariance.diagonal().log().sum() - torch.logdet(covariance))
    error = (logits[:, 0] - logits[:, 1]).std() / math.sqrt(len(z))
    assert abs(density_ratio(logits) - truth) < 5 * error
    assert truth > 20 * error


def test_discriminator_loss_is_the_mean_of_two_cross_entropies():
    generator = torch.Generator().manual_seed(0)
    real = 3 * torch.randn(7, 2, generator=generator, dtype=torch.float64)
    permuted = 3 * torch.randn(5, 2, generator=generator, dtype=torch.float64)
    expected = F.cross_entropy(real, torch.zeros(7).long()) + F.cross_entropy(permuted, torch.ones(5).long())
    torch.testing.assert_close(discriminator_loss(real, permuted), expected / 2)
    zero = torch.zeros(3, 2)
    assert discriminator_loss(zero, zero).item() == pytest.approx(math.log(2))
    sure = torch.tensor([[500.0, -500.0]])
    assert discriminator_loss(sure, -sure).item() == 0
    assert discriminator_loss(-sure, sure).item() == 1000
    inputs = [real.requires_grad_(), permuted.requires_grad_()]
    assert gradcheck(discriminator_loss, inputs)
    assert gradcheck(density_ratio, inputs[:1])


def test_permuting_keeps_every_column_and_breaks_the_rows():
    z = posteriors(500, 4)[0]
    permuted = permute_dimensions(z, torch.Generator().manual_seed(0))
    assert torch.equal(permuted.sort(0).values, z.sort(0).values)
    same_row = torch.repeat_interleave(z[:, :1], 4, 1)
    mixed = permute_dimensions(same_row, torch.Generator().manual_seed(0)).numpy()
    np.testing.assert_allclose(np.corrcoef(mixed.T), np.eye(4), atol=5 / math.sqrt(500))
    assert torch.equal(permuted, permute_dimensions(z, torch.Generator().manual_seed(0)))


def test_each_column_has_a_uniform_permutation_of_its_own():
    z = torch.arange(3.0)[:, None].expand(3, 20_000)
    columns = permute_dimensions(z, torch.Generator().manual_seed(0)).numpy().astype(int).T
    order = (columns[:, 0] * 3 + columns[:, 1]).reshape(-1, 2)  # names a permutation; columns in pairs
    counts = np.bincount(order[:, 0] * 9 + order[:, 1], minlength=81)
    counts = counts[counts > 0]
    assert len(counts) == 36
    assert stats.chisquare(counts).pvalue > 0.001


def test_gradients_pass_through_a_permutation():
    z = posteriors(4)[0].requires_grad_()
    weight = torch.arange(8.0).double().view(4, 2)
    permute = lambda x: (permute_dimensions(x, torch.Generator().manual_seed(1)).square() * weight).sum()  # noqa: E731
    assert gradcheck(permute, [z])


def test_logits_of_another_shape_are_refused():
    for logits in (torch.zeros(3), torch.zeros(3, 1)):
        with pytest.raises(ArgumentError, match="logits"):
            density_ratio(logits)
        with pytest.raises(ArgumentError, match="logits"):
            discriminator_loss(logits, torch.zeros(3, 2))
