"""beta-VAE (Higgins et al. 2017): reconstruction + beta * KL."""

from __future__ import annotations

from unweave.methods.checks import check_not_negative
from unweave.methods.terms import Term
from unweave.methods.vae.kl import KL


def beta_vae(beta: float = 4.0) -> list[Term]:
    """reconstruction + beta * KL(q(z|x) || p(z)). The paper's grid: beta in {1, 2, 4, 6, 8, 16}."""
    check_not_negative("beta", beta)
    return [KL(beta)]
