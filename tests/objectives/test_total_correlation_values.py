"""The minibatch estimators on distributions whose total correlation is known."""

import math

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, Normal

from unweave.objectives.kl import correlation_constant
from unweave.objectives.total_correlation import (
    minibatch_logsumexp,
    minibatch_stratified,
    minibatch_weighted,
)


def posteriors(count=5, size=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mean, log_variance, noise = torch.randn(3, count, size, generator=generator, dtype=torch.float64)
    log_variance = 0.5 * log_variance - 1
    return mean + log_variance.exp().sqrt() * noise, mean, log_variance


def errors(batch_size, repeats, s=0.0, total=100_000, size=3, variance=0.25):
    """Mean error of (weighted - (D - 1) log N, stratified) against the exact log ratio at the same z.

    The means are N(0, S); with posterior covariance V the aggregate posterior is N(0, S + V).
    """
    generator = torch.Generator().manual_seed(0)
    eye = torch.eye(size, dtype=torch.float64)
    spread = 0.3 * eye + 0.7
    noise = variance * ((1 - s) * eye + s)
    aggregate = MultivariateNormal(torch.zeros(size).double(), spread + noise)
    latents = Normal(0.0, (spread + noise).diagonal().sqrt())
    found = []
    for _ in range(repeats):
        draw = torch.randn(2, batch_size, size, generator=generator, dtype=torch.float64)
        mean = draw[0] @ torch.linalg.cholesky(spread).T
        z = mean + draw[1] @ torch.linalg.cholesky(noise).T
        log_variance = torch.full_like(mean, math.log(variance))
        exact = (aggregate.log_prob(z) - latents.log_prob(z).sum(1)).mean()
        constant = (size - 1) * math.log(total)
        weighted = minibatch_weighted(z, mean, log_variance, total, s) - constant
        stratified = minibatch_stratified(z, mean, log_variance, total, s)
        found.append([(weighted - exact).item(), (stratified - exact).item()])
    return np.mean(found, 0)


@pytest.mark.parametrize("s", [0.0, 0.7])
def test_estimates_approach_the_total_correlation_of_a_gaussian(s):
    # The TC itself is 1/2 (sum log diag - log det) = 0.445 for s = 0 and 0.766 for s = 0.7; the mean
    # errors have standard errors of 10 % of their size for 8 and 64 samples and 0.005 for 512.
    small, medium, large = (errors(n, repeats, s) for n, repeats in [(8, 100), (64, 40), (512, 2)])
    assert (np.abs(small) > 2 * np.abs(medium)).all()
    assert (np.abs(medium) > 2 * np.abs(large)).all()
    assert (np.abs(large) < 0.05).all()
    assert small[1] < 0  # Jensen: the estimated log density is too small, most of all the joint one


def test_the_mean_of_the_estimate_is_the_closed_form():
    size, variance, count = 2, 0.25, 1024
    generator = torch.Generator().manual_seed(4)
    spread = torch.tensor([[1.0, 0.8], [0.8, 1.0]], dtype=torch.float64)
    total = spread + variance * torch.eye(2, dtype=torch.float64)
    truth = 0.5 * (total.diagonal().log().sum() - torch.logdet(total)).item()
    values = []
    for _ in range(6):
        draw = torch.randn(2, count, size, generator=generator, dtype=torch.float64)
        mean = draw[0] @ torch.linalg.cholesky(spread).T
        log_variance = torch.full_like(mean, math.log(variance))
        z = mean + math.sqrt(variance) * draw[1]
        values.append(minibatch_stratified(z, mean, log_variance, 10**6).item())
    # The log ratio has a standard deviation of about 0.64: 5 standard errors over 6 * 1024 samples.
    assert np.mean(values) == pytest.approx(truth, abs=0.041)


def test_a_batch_whose_mixture_factorises_has_no_total_correlation():
    grid = torch.cartesian_prod(*[torch.tensor([-2.0, 0.5, 3.0], dtype=torch.float64)] * 3)
    log_variance = torch.tensor([-1.0, 0.0, 0.5], dtype=torch.float64).expand_as(grid)
    z = posteriors(27, 3)[0]
    value = minibatch_logsumexp(z, grid, log_variance) + 2 * math.log(27)
    assert value.item() == pytest.approx(0, abs=1e-12)
    assert minibatch_weighted(z, grid, log_variance, 1000).item() == pytest.approx(2 * math.log(1000))


def test_equal_posteriors_have_the_total_correlation_of_their_noise():
    z, mean, log_variance = (x.expand(2000, 3) for x in posteriors(1, 3))
    generator = torch.Generator().manual_seed(3)
    correlation = torch.full((3, 3), 0.6, dtype=torch.float64).fill_diagonal_(1)
    noise = torch.randn(z.shape, generator=generator, dtype=torch.float64)
    z = mean + log_variance.exp().sqrt() * (noise @ torch.linalg.cholesky(correlation).T)
    values = [
        minibatch_stratified(*(x[part : part + 250] for x in (z, mean, log_variance)), 5000, 0.6).item()
        for part in range(0, 2000, 250)
    ]
    error = np.std(values) / math.sqrt(len(values))
    assert np.mean(values) == pytest.approx(correlation_constant(0.6, 3), abs=5 * error)
    independent = minibatch_stratified(z[:50], mean[:50], log_variance[:50], 5000)
    assert independent.item() == pytest.approx(0, abs=1e-12)
