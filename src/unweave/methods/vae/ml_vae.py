"""ML-VAE (Bouchacourt et al. 2018): as Group-VAE, but shared codes are a product of Gaussians."""

from __future__ import annotations

from typing import Literal

import torch

from unweave.methods.method import Posterior
from unweave.methods.registry import register_method
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.kl import KL
from unweave.methods.vae.pairing import Pairing
from unweave.parameters import Count, NonNegative


@register_method(
    "ml_vae",
    label="ML-VAE",
    paper="Bouchacourt et al. 2018",
    strength_label="β",
    color="#7F7F7F",
    marker="s",
    order=14,
    labels="none",
)
def ml_vae(beta: NonNegative = 1.0, k: Count | Literal["random"] = 1) -> Composition:
    """reconstruction + beta * KL of pairs that differ in k known factors; codes of all others are multiplied.

    ``k``: a number, or "random". Code i belongs to factor i: see :class:`~unweave.methods.vae.pairing.Pairing`.

    In the paper a shared code is drawn once for its group, and its KL counts once; here, as in Locatello et al.
    (2020), each image of a pair has its own draw and KL.

    Examples
    --------
    >>> ml_vae(4.0, k="random").pairing.k
    'random'
    """
    return Composition([KL(beta)], pairing=Pairing(k, product_posterior))


def product_posterior(first: Posterior, second: Posterior) -> Posterior:
    """The normalised product of two Gaussian densities: precisions add up, means are weighted by them.

        1 / v = 1 / v_1 + 1 / v_2,    m = v (m_1 / v_1 + m_2 / v_2)

    disentanglement_lib has the same mean and twice the variance: the mean of the precisions, not their sum.

    Examples
    --------
    >>> import torch
    >>> zero = torch.zeros(1, 1)
    >>> one, two = Posterior(zero, zero), Posterior(zero + 3, zero)
    >>> product_posterior(one, two).log_variance.exp()
    tensor([[0.5000]])
    """
    weight = torch.sigmoid(first.log_variance - second.log_variance)
    mean = torch.lerp(first.mean, second.mean, weight)
    return Posterior(mean, -torch.logaddexp(-first.log_variance, -second.log_variance))
