import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from unweave.errors import ArgumentError
from unweave.objectives.kl import correlation_constant, kl_between, kl_to_standard_normal


def draws(*shape, count=4):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(count)]


def normal(mean, log_variance):
    return Normal(mean, log_variance.exp().sqrt())


def correlated(mean, log_variance, s):
    size = mean.shape[-1]
    correlation = torch.full((size, size), s, dtype=mean.dtype).fill_diagonal_(1)
    sigma = log_variance.exp().sqrt()
    return MultivariateNormal(mean, sigma[:, :, None] * correlation * sigma[:, None, :])


def test_kl_to_the_standard_normal_agrees_with_torch():
    mean, log_variance = draws(6, 4, count=2)
    expected = kl_divergence(normal(mean, log_variance), Normal(0.0, 1.0))
    torch.testing.assert_close(kl_to_standard_normal(mean, log_variance), expected)


def test_kl_between_agrees_with_torch_and_broadcasts():
    mean, log_variance, prior_mean, prior_log_variance = draws(6, 4)
    expected = kl_divergence(normal(mean, log_variance), normal(prior_mean, prior_log_variance))
    torch.testing.assert_close(kl_between(mean, log_variance, prior_mean, prior_log_variance), expected)
    row = kl_between(mean, log_variance, prior_mean[:1], prior_log_variance[:1])
    expected = kl_divergence(normal(mean, log_variance), normal(prior_mean[:1], prior_log_variance[:1]))
    torch.testing.assert_close(row, expected)


@pytest.mark.parametrize("s", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("size", [1, 2, 10])
def test_correlated_noise_adds_a_constant_to_the_kl(s, size):
    mean, log_variance, prior_mean, prior_log_variance = draws(5, size)
    constant = correlation_constant(s, size)
    posterior = correlated(mean, log_variance, s)
    standard = MultivariateNormal(torch.zeros(size).double(), torch.eye(size).double())
    ours = kl_to_standard_normal(mean, log_variance).sum(1) + constant
    torch.testing.assert_close(ours, kl_divergence(posterior, standard))
    conditional = MultivariateNormal(prior_mean, torch.diag_embed(prior_log_variance.exp()))
    ours = kl_between(mean, log_variance, prior_mean, prior_log_variance).sum(1) + constant
    torch.testing.assert_close(ours, kl_divergence(posterior, conditional))


def test_the_constant_is_zero_without_correlation_and_positive_with():
    assert correlation_constant(0.0, 10) == 0
    assert correlation_constant(0.5, 1) == pytest.approx(0, abs=1e-15)
    assert correlation_constant(0.5, 2) == pytest.approx(-0.5 * torch.tensor(0.75).log().item())


@settings(max_examples=50, deadline=None)
@given(st.floats(-8, 8), st.floats(-8, 8))
def test_kl_is_never_negative_in_float32(mean, log_variance):
    divergence = kl_to_standard_normal(torch.tensor([[mean]]), torch.tensor([[log_variance]]))
    assert divergence.dtype == torch.float32
    assert divergence.item() >= -1e-7


def test_gradients():
    inputs = [x.requires_grad_() for x in draws(3, 2)]
    assert gradcheck(kl_to_standard_normal, inputs[:2])
    assert gradcheck(kl_between, inputs)


def test_bad_arguments_are_refused():
    with pytest.raises(ArgumentError, match="correlation"):
        correlation_constant(1.0, 3)
    with pytest.raises(ArgumentError, match="latent_size"):
        correlation_constant(0.5, 0)
