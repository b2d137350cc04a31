"""Kullback-Leibler divergences of the encoder's Gaussian, in closed form and per latent."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from unweave.errors import ArgumentError
from unweave.objectives.gaussian import check_correlation, log_determinant


def kl_to_standard_normal(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mu, sigma^2) || N(0, 1)) = 1/2 (mu^2 + sigma^2 - 1 - log sigma^2) per latent.

    Arguments and result have shape (n, D). The divergence of a sample is the sum over its latents, plus
    `correlation_constant` if the posterior's noise is correlated.

    Examples
    --------
    >>> import torch
    >>> kl_to_standard_normal(torch.tensor([[2.0]]), torch.tensor([[0.0]]))
    tensor([[2.]])
    """
    return 0.5 * (mean.square() + torch.expm1(log_variance) - log_variance)


def kl_between(mean: Tensor, log_variance: Tensor, prior_mean: Tensor, prior_log_variance: Tensor) -> Tensor:
    """KL(N(mu, sigma^2) || N(m, s^2)) per latent, for a conditional prior p(z|u) (Mita et al.).

    It is 1/2 (sigma^2 / s^2 - 1 - log(sigma^2 / s^2) + (mu - m)^2 / s^2). The arguments have shape (n, D)
    or broadcast to it. `correlation_constant` applies here too: the prior is factorised.

    Examples
    --------
    >>> import torch
    >>> one = torch.ones(1, 1)
    >>> kl_between(3 * one, 0 * one, one, 0 * one)
    tensor([[2.]])
    """
    log_ratio = log_variance - prior_log_variance
    distance = (mean - prior_mean).square() * torch.exp(-prior_log_variance)
    return 0.5 * (torch.expm1(log_ratio) - log_ratio + distance)


def correlation_constant(correlation: float, latent_size: int) -> float:
    """What correlated noise adds to the KL of every sample: -1/2 log det((1 - s) I + s 11^T).

    That is -1/2 [(D - 1) log(1 - s) + log(1 - s + s D)]. The divergence to any factorised Gaussian sees
    only the diagonal of the posterior's covariance and its determinant; the diagonal does not depend on
    s, so KL = sum of the factorised terms + this constant, exactly (Yang et al., appendix B).

    Examples
    --------
    >>> correlation_constant(0.5, latent_size=2)
    0.1438
    """
    check_correlation(correlation)
    if latent_size < 1:
        raise ArgumentError("latent_size", latent_size, "needs at least 1")
    return -0.5 * log_determinant(correlation, latent_size)


class Usage(NamedTuple):
    """Per latent (D,): how much posteriors differ from the Gaussians of mean ``centre`` and deviation ``scale``.

    Examples
    --------
    >>> import torch
    >>> Usage(torch.zeros(2), torch.zeros(2), torch.ones(2)).kl
    tensor([0., 0.])
    """

    kl: Tensor
    centre: Tensor
    scale: Tensor


def usage(mean: Tensor, log_variance: Tensor, conditional: bool = False) -> Usage:
    """How much each latent is used: the mean KL of posteriors (n, D) to N(0, 1).

    Parameters
    ----------
    mean, log_variance
        (n, D): of the posteriors of n images.
    conditional
        whether the prior is p(z|u), so that N(0, 1) is no measure. The KL is then that to the Gaussian with the
        moments of all posteriors together: m = E[mu], s^2 = E[sigma^2] + Var[mu].

    Examples
    --------
    >>> import torch
    >>> usage(torch.tensor([[0.0, 2.0], [0.0, -2.0]]), torch.zeros(2, 2)).kl
    tensor([0., 2.])
    """
    centre, variance = torch.zeros_like(mean[0]), torch.ones_like(mean[0])
    if conditional:
        centre, variance = mean.mean(0), log_variance.exp().mean(0) + mean.var(0, correction=0)
    kl = kl_between(mean, log_variance, centre, variance.log()).mean(0)
    return Usage(kl, centre, variance.sqrt())
