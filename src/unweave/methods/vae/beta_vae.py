"""beta-VAE (Higgins et al. 2017): reconstruction + beta * KL."""

from __future__ import annotations

from typing import Any

from unweave.methods.registry import register_method
from unweave.methods.vae.kl import KL
from unweave.methods.vae.terms import Term
from unweave.parameters import NonNegative


@register_method(
    "beta_vae",
    label="β-VAE",
    paper="Higgins et al. 2017",
    strength_label="β",
    color="#0072B2",
    marker="o",
    order=2,
    labels="none",
)
def beta_vae(beta: NonNegative = 4.0) -> list[Term[Any]]:
    """reconstruction + beta * KL(q(z|x) || p(z)). The paper's grid: beta in {1, 2, 4, 6, 8, 16}.

    Examples
    --------
    >>> beta_vae(6.0)
    [KL(weight=6.0)]
    """
    return [KL(beta)]
