"""Learning from pairs of images: what they have in common is encoded once, from both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unweave.data import Dataset
from unweave.data.supervision.pairs import Pairs
from unweave.errors import ArgumentError
from unweave.methods.method import Posterior
from unweave.methods.spec import VAESpec
from unweave.parameters import Count, check_fields

Average = Callable[[Posterior, Posterior], Posterior]
Shared = Callable[[Posterior, Posterior], Tensor]


@dataclass(frozen=True)
class Pairing:
    """The part of a method that learns from pairs (x, x') of images which share all but k factors.

    With S the latents that a pair shares, each of its two images gets the posterior

        q(z_i | x, x') = average of q(z_i | x) and q(z_i | x')    for i in S,
        q(z_i | x)                                                for all others,

    and all else, the reconstruction of both images and each one's KL, is as for any two images. This is the objective
    of Locatello et al. (2020, "Weakly-supervised disentanglement without compromises"), as a mean over images.

    Parameters
    ----------
    k
        how many factors change: a number, or "random" (see :func:`unweave.data.sample_pairs`).
    average
        of two posteriors.
    shared
        S from the two posteriors, as (n, D) booleans. None: it is known. Latent i then belongs to factor i and is
        shared unless that factor changed; latents beyond the number of factors are shared in all pairs.

    Examples
    --------
    >>> from unweave.methods.vae.gvae import mean_posterior
    >>> Pairing("random", mean_posterior).k
    'random'
    """

    k: Count | Literal["random"]
    average: Average
    shared: Shared | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def pairs_of(self, data: Dataset, spec: VAESpec) -> Pairs:
        """How the rows of ``data`` are paired; data that has no such pairs is refused."""
        pairs = Pairs(data, self.k)
        needed = data.space.num_factors
        if self.shared is None and spec.latent_size < needed:
            message = f"needs at least {needed}: {spec.name} has one latent for each factor"
            raise ArgumentError("latent_size", spec.latent_size, message)
        return pairs

    def join(self, posterior: Posterior, changed: Tensor) -> Posterior:
        """Posteriors of n images and then of their n partners, (2n, D), averaged where they share a latent.

        ``changed`` (n, K): which factors may differ.
        """
        halves = zip(posterior.mean.chunk(2), posterior.log_variance.chunk(2), strict=True)
        first, second = (Posterior(*half) for half in halves)
        shared = _unchanged(changed, first.mean) if self.shared is None else self.shared(first, second)
        common = self.average(first, second)
        return Posterior(
            torch.where(shared.repeat(2, 1), common.mean.repeat(2, 1), posterior.mean),
            torch.where(shared.repeat(2, 1), common.log_variance.repeat(2, 1), posterior.log_variance),
        )


def _unchanged(changed: Tensor, mean: Tensor) -> Tensor:
    """The latents (n, D) of the factors that stayed, and all beyond the number of factors."""
    shared = torch.ones_like(mean, dtype=torch.bool)
    shared[:, : changed.shape[1]] = ~changed
    return shared
