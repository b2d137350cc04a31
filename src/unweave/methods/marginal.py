"""q(z|x) of an encoder q(z|x,u) whose labels are unknown: a mixture, told by its mean and variances."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
    if hasattr(encoder, "extract") and hasattr(
        encoder, "heads"
    ):  # ours: u joins late, so all else is computed once
        features = encoder.extract(images)  # type: ignore[operator]
        u = draws.expand(n, -1, -1)
        mean, log_variance = encoder.heads(features[:, None].expand(-1, count, -1), u)  # type: ignore[operator]
        return mean, log_variance
    pairs = [encoder(images, u.expand(n, -1)) for u in draws]
    return torch.stack([mean for mean, _ in pairs], 1), torch.stack(
        [log_variance for _, log_variance in pairs], 1
    )
