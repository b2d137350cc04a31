"""AnnealedVAE (Burgess et al. 2018): the KL is held to a capacity that grows during training."""

from __future__ import annotations

from unweave.methods.terms import Term
from unweave.methods.vae.kl import CapacityKL


def annealed_vae(c_max: float = 25.0, gamma: float = 1000.0, steps: int = 100_000) -> list[Term]:
    """reconstruction + gamma * |batch mean KL - C(step)|, C rising linearly from 0 to c_max over ``steps``.

    The paper's grid: c_max in {5, 10, 25, 50, 75, 100}, gamma = 1000, 100,000 steps.
    """
    return [CapacityKL(c_max, gamma, steps)]
