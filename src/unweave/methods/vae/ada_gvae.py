"""Ada-GVAE and Ada-ML-VAE (Locatello et al. 2020): from pairs of images, of which nobody says what they share."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from unweave.methods.method import Posterior
from unweave.methods.registry import register_method
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.gvae import mean_posterior
from unweave.methods.vae.kl import KL
from unweave.methods.vae.ml_vae import product_posterior
from unweave.methods.vae.pairing import Pairing
from unweave.objectives import kl_between
from unweave.parameters import Count, NonNegative


@register_method(
    "ada_gvae",
    label="Ada-GVAE",
    paper="Locatello et al. 2020",
    strength_label="β",
    color="#000000",
    marker="^",
    order=15,
    labels="none",
)
def ada_gvae(beta: NonNegative = 1.0, k: Count | Literal["random"] = 1) -> Composition:
    """reconstruction + beta * KL of pairs that differ in k factors; codes that seem shared are averaged.

    The paper's grid: beta in {1, 2, 4, 6, 8, 16}. ``k``, a number or "random", is how the pairs are drawn: the method
    knows neither which factors changed nor how many.

    Examples
    --------
    >>> ada_gvae(4.0).pairing.shared is close_latents
    True
    """
    return Composition([KL(beta)], pairing=Pairing(k, mean_posterior, close_latents))


@register_method(
    "ada_ml_vae",
    label="Ada-ML-VAE",
    paper="Locatello et al. 2020",
    strength_label="β",
    color="#B8A800",
    marker="v",
    order=16,
    labels="none",
)
def ada_ml_vae(beta: NonNegative = 1.0, k: Count | Literal["random"] = 1) -> Composition:
    """As ada_gvae, with ML-VAE's product of Gaussians for an average.

    Examples
    --------
    >>> ada_ml_vae(4.0).pairing.average is product_posterior
    True
    """
    return Composition([KL(beta)], pairing=Pairing(k, product_posterior, close_latents))


@torch.no_grad()
def close_latents(first: Posterior, second: Posterior) -> Tensor:
    """Which latents of a pair seem to be shared, (n, D): those whose posteriors are closer than halfway.

        delta_i = KL(q(z_i | x) || q(z_i | x')) < tau,    tau = (max_i delta_i + min_i delta_i) / 2

    If all are equally far, none is shared.

    Examples
    --------
    >>> import torch
    >>> one = Posterior(torch.zeros(1, 2), torch.zeros(1, 2))
    >>> close_latents(one, Posterior(torch.tensor([[0.0, 3.0]]), torch.zeros(1, 2)))
    tensor([[ True, False]])
    """
    delta = kl_between(*first, *second)
    low, high = torch.aminmax(delta, dim=1, keepdim=True)
    return delta < (low + high) / 2
