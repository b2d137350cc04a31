"""Group-VAE (Hosoya 2019): pairs of images, of which it is known what they share; shared codes are averaged."""

from __future__ import annotations

import math
from typing import Literal

import torch

from unweave.methods.method import Posterior
from unweave.methods.registry import register_method
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.kl import KL
from unweave.methods.vae.pairing import Pairing
from unweave.parameters import Count, NonNegative


@register_method(
    "gvae",
    label="GVAE",
    paper="Hosoya 2019",
    strength_label="β",
    color="#CC79A7",
    marker="d",
    order=13,
    labels="none",
)
def gvae(beta: NonNegative = 1.0, k: Count | Literal["random"] = 1) -> Composition:
    """reconstruction + beta * KL of pairs that differ in k known factors; codes of all others are averaged.

    ``k``: a number, or "random". Code i belongs to factor i: see :class:`~unweave.methods.vae.pairing.Pairing`.

    Examples
    --------
    >>> gvae(4.0).pairing.k
    1
    """
    return Composition([KL(beta)], pairing=Pairing(k, mean_posterior))


def mean_posterior(first: Posterior, second: Posterior) -> Posterior:
    """The Gaussian with the arithmetic mean of the two means, and that of the two variances.

    Examples
    --------
    >>> import torch
    >>> zero = torch.zeros(1, 1)
    >>> one, two = Posterior(zero, zero), Posterior(zero + 3, zero)
    >>> mean_posterior(one, two).mean
    tensor([[1.5000]])
    """
    mean = torch.lerp(first.mean, second.mean, 0.5)
    return Posterior(mean, torch.logaddexp(first.log_variance, second.log_variance) - math.log(2))
