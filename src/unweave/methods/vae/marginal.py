"""What posteriors are like together: a mixture over labels or images, told by its mean and variances."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from unweave.networks import GaussianEncoder
from unweave.objectives import kl_between


class Usage(NamedTuple):
    """Per latent (D,) how much the posteriors differ from ``centre`` and ``scale``, the prior's or their own."""

    kl: Tensor
    centre: Tensor
    scale: Tensor


def usage(mean: Tensor, log_variance: Tensor, conditional: bool) -> Usage:
    """How much each latent is used by posteriors (n, D): their mean KL to N(0, 1).

    ``conditional``: the prior is p(z|u), so that N(0, 1) is no measure. It is then the KL to the Gaussian that has the
    moments of all posteriors together: m = E[mu], s^2 = E[sigma^2] + Var[mu].
    """
    centre, variance = torch.zeros_like(mean[0]), torch.ones_like(mean[0])
    if conditional:
        centre, variance = mean.mean(0), log_variance.exp().mean(0) + mean.var(0, correction=0)
    kl = kl_between(mean, log_variance, centre, variance.log()).mean(0)
    return Usage(kl, centre, variance.sqrt())


def mixture_posterior(encoder: nn.Module, images: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and log-variance, (n, D) each, of the equal mixture of q(z|x,u) over M draws of u, (M, d).

    The mean is E_u[mean(x,u)], the variance E_u[variance(x,u)] + Var_u[mean(x,u)].
    """
    mean, log_variance = _for_each(encoder, images, draws.to(images.dtype))
    variance = log_variance.exp().mean(1) + mean.var(1, unbiased=False)
    return mean.mean(1), variance.log()


def _for_each(encoder: nn.Module, images: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and log-variance of every image with every u, (n, M, D) each."""
    n, count = len(images), len(draws)
    if isinstance(encoder, GaussianEncoder) and type(encoder).forward is GaussianEncoder.forward:
        # u joins late, so all else is computed once
        features = encoder.extract(images)
        mean, log_variance = encoder.heads(features[:, None].expand(-1, count, -1), draws.expand(n, -1, -1))
        return mean, log_variance
    pairs = [encoder(images, u.expand(n, -1)) for u in draws]
    return torch.stack([mean for mean, _ in pairs], 1), torch.stack(
        [log_variance for _, log_variance in pairs], 1
    )
