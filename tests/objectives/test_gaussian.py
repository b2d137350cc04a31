import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torch.distributions import MultivariateNormal, Normal

from unweave.errors import ArgumentError
from unweave.objectives.gaussian import (
    correlated_log_density,
    log_density,
    reparameterise,
    standard_noise,
)


def draws(*shape, count=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(count)]


def covariance(log_variance, s):
    """diag(sigma) [(1 - s) I + s 11^T] diag(sigma) of each row, written out."""
    size = log_variance.shape[-1]
    correlation = torch.full((size, size), s, dtype=log_variance.dtype).fill_diagonal_(1)
    sigma = log_variance.exp().sqrt()
    return sigma[..., :, None] * correlation * sigma[..., None, :]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_sample_is_mean_plus_standard_deviation_times_noise(dtype):
    mean, log_variance, noise = (x.to(dtype) for x in draws(5, 3))
    z = reparameterise(mean, log_variance, noise)
    assert z.dtype == dtype
    expected = mean.numpy() + np.sqrt(np.exp(log_variance.numpy())) * noise.numpy()
    np.testing.assert_allclose(z.numpy(), expected, rtol=1e-5 if dtype == torch.float32 else 1e-13)


def test_no_correlation_draws_what_torch_draws():
    noise = standard_noise((4, 3), generator=torch.Generator().manual_seed(1))
    assert torch.equal(noise, torch.randn(4, 3, generator=torch.Generator().manual_seed(1)))


def test_noise_takes_shape_and_type_from_a_tensor():
    like = torch.zeros(2, 6, 3, dtype=torch.float64)
    for s in (0.0, 0.5):
        noise = standard_noise(like, s)
        assert noise.shape == like.shape
        assert noise.dtype == like.dtype
    assert standard_noise(torch.Size([7, 2]), 0.5).shape == (7, 2)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("s", [0.3, 0.9])
def test_the_mixing_matrix_of_the_noise_has_the_promised_covariance(s, size):
    noise = standard_noise((50, size), s, torch.Generator().manual_seed(2))
    same = torch.Generator().manual_seed(2)
    sources = torch.cat([torch.randn(50, size, generator=same), torch.randn(50, 1, generator=same)], 1)
    mixing = torch.linalg.lstsq(sources, noise).solution.T.double()
    torch.testing.assert_close(sources.double() @ mixing.T, noise.double(), rtol=0, atol=1e-5)
    expected = covariance(torch.zeros(size, dtype=torch.float64), s)
    torch.testing.assert_close(mixing @ mixing.T, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("s", [0.0, 0.3, 0.9])
def test_noise_has_the_covariance_of_the_paper(s):
    count = 200_000
    noise = standard_noise((count, 3), s, torch.Generator().manual_seed(3)).numpy().astype(np.float64)
    expected = np.where(np.eye(3) == 1, 1.0, s)
    error = 5 * np.sqrt((1 + expected**2) / count)  # var(e_i e_j) = 1 + r^2 for unit Gaussians
    assert (np.abs(noise.T @ noise / count - expected) < error).all()
    assert (np.abs(noise.mean(0)) < 5 / math.sqrt(count)).all()


def test_log_density_is_each_latents_own():
    z, mean, log_variance = draws(5, 3)
    expected = Normal(mean, log_variance.exp().sqrt()).log_prob(z)
    torch.testing.assert_close(log_density(z, mean, log_variance), expected)


@pytest.mark.parametrize("s", [0.0, 0.2, 0.9, 0.999])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_correlated_log_density_is_a_multivariate_normal(s, size):
    z, mean, log_variance = draws(6, size)
    expected = MultivariateNormal(mean, covariance(log_variance, s)).log_prob(z)
    density = correlated_log_density(z, mean, log_variance, s)
    torch.testing.assert_close(density, expected, rtol=1e-9, atol=1e-9)


def test_correlated_log_density_broadcasts_over_pairs():
    z, mean, log_variance = draws(4, 3)
    pairs = correlated_log_density(z[:, None], mean[None], log_variance[None], 0.7)
    expected = MultivariateNormal(mean, covariance(log_variance, 0.7)).log_prob(z[:, None])
    torch.testing.assert_close(pairs, expected)
    shared = correlated_log_density(z, torch.zeros(3).double(), torch.tensor([0.4]).double(), 0.7)
    alone = MultivariateNormal(torch.zeros(3).double(), covariance(torch.full((3,), 0.4).double(), 0.7))
    torch.testing.assert_close(shared, alone.log_prob(z))


def test_strong_correlation_keeps_its_digits_in_float32():
    log_variance = torch.zeros(4, 10, dtype=torch.float64)
    z = 20 + 0.01 * draws(4, 10, count=1)[0]
    exact = MultivariateNormal(torch.zeros(10).double(), covariance(log_variance[0], 0.999)).log_prob(z)
    single = correlated_log_density(z.float(), torch.zeros(4, 10), log_variance.float(), 0.999)
    torch.testing.assert_close(single.double(), exact, rtol=1e-5, atol=0)


def test_gradients():
    inputs = [x.requires_grad_() for x in draws(3, 2)]
    assert gradcheck(reparameterise, inputs)
    assert gradcheck(log_density, inputs)
    for s in (0.0, 0.6):
        assert gradcheck(lambda *x, s=s: correlated_log_density(*x, s), inputs)


@pytest.mark.parametrize("s", [-0.1, 1.0, 2.0, math.nan])
def test_a_correlation_outside_its_range_is_refused(s):
    with pytest.raises(ArgumentError, match="correlation"):
        standard_noise((2, 2), s)
    with pytest.raises(ArgumentError, match="correlation"):
        correlated_log_density(*draws(2, 2), s)
