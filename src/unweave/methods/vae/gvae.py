"""Group-VAE (Hosoya 2019): pairs of images, of which it is known what they share; shared codes are averaged."""

from __future__ import annotations

import math

import torch

from unweave.data.supervision.pairs import Changed
from unweave.methods.checks import check_not_negative
from unweave.methods.terms import Posterior
from unweave.methods.vae.composition import Composition
from unweave.methods.vae.kl import KL
from unweave.methods.vae.pairing import Pairing


def gvae(beta: float = 1.0, k: Changed = 1) -> Composition:
    """reconstruction + beta * KL of pairs that differ in k known factors; codes of all others are averaged.

    ``k``: a number, or "random". Code i stands for factor i: see :class:`~unweave.methods.vae.pairing.Pairing`.
    """
    check_not_negative("beta", beta)
    return Composition([KL(beta)], pairing=Pairing(k, mean_posterior))


def mean_posterior(first: Posterior, second: Posterior) -> Posterior:
    """The Gaussian with the arithmetic mean of the two means, and that of the two variances."""
    mean = torch.lerp(first.mean, second.mean, 0.5)
    return Posterior(mean, torch.logaddexp(first.log_variance, second.log_variance) - math.log(2))
