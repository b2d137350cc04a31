"""Ada-GVAE and Ada-ML-VAE (Locatello et al. 2020): from pairs of images, of which nobody says what they share."""

from __future__ import annotations

import torch
from torch import Tensor

from unweave.data.supervision.pairs import Changed
from unweave.methods.checks import check_not_negative
from unweave.methods.terms import Posterior
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.gvae import mean_posterior
from unweave.methods.vae.kl import KL
from unweave.methods.vae.ml_vae import product_posterior
from unweave.methods.vae.pairing import Average, Pairing
from unweave.objectives import kl_between


def ada_gvae(beta: float = 1.0, k: Changed = 1) -> Composition:
    """reconstruction + beta * KL of pairs that differ in k factors; codes that seem shared are averaged.

    The paper's grid: beta in {1, 2, 4, 6, 8, 16}. ``k``, a number or "random", is how the data is made: the method is
    told neither which factors changed nor how many.
    """
    return _adaptive(beta, k, mean_posterior)


def ada_ml_vae(beta: float = 1.0, k: Changed = 1) -> Composition:
    """As ada_gvae, with ML-VAE's product of Gaussians for an average."""
    return _adaptive(beta, k, product_posterior)


def _adaptive(beta: float, k: Changed, average: Average) -> Composition:
    check_not_negative("beta", beta)
    return Composition([KL(beta)], pairing=Pairing(k, average, close_latents))


@torch.no_grad()
def close_latents(first: Posterior, second: Posterior) -> Tensor:
    """Which latents of a pair seem to be shared, (n, D): those whose posteriors are closer than halfway.

        delta_i = KL(q(z_i | x) || q(z_i | x')) < tau,    tau = (max_i delta_i + min_i delta_i) / 2

    If all are equally far, none is shared.
    """
    delta = kl_between(*first, *second)
    low, high = torch.aminmax(delta, dim=1, keepdim=True)
    return delta < (low + high) / 2
