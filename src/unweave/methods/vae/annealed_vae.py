"""AnnealedVAE (Burgess et al. 2018): the KL is held to a capacity that grows during training."""

from __future__ import annotations

from typing import Any

from unweave.methods.registry import register_method
from unweave.methods.vae.kl import CapacityKL
from unweave.methods.vae.terms import Term
from unweave.parameters import Count, NonNegative


@register_method(
    "annealed_vae",
    label="AnnealedVAE",
    paper="Burgess et al. 2018",
    strength_label="C",
    color="#56B4E9",
    marker="P",
    order=7,
    labels="none",
)
def annealed_vae(
    c_max: NonNegative = 25.0, gamma: NonNegative = 1000.0, steps: Count = 100_000
) -> list[Term[Any]]:
    """reconstruction + gamma * |batch mean KL - C(step)|, C rising linearly from 0 to c_max over ``steps``.

    The paper's grid: c_max in {5, 10, 25, 50, 75, 100}, gamma = 1000, 100,000 steps.

    Examples
    --------
    >>> annealed_vae(c_max=50.0)
    [CapacityKL(c_max=50.0, gamma=1000.0, steps=100000)]
    """
    return [CapacityKL(c_max, gamma, steps)]
