"""DIP-VAE-I and -II (Kumar et al. 2018): the covariance of the codes is matched to the identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unweave.methods.method import Terms
from unweave.methods.registry import register_method, register_term
from unweave.methods.vae.kl import KL
from unweave.methods.vae.terms import Pass, Term
from unweave.objectives import (
    dip_i_covariance,
    dip_ii_covariance,
    dip_penalty,
    third_moment_penalty,
)
from unweave.parameters import NonNegative, check_fields


@register_method(
    "dip_vae_i",
    label="DIP-VAE-I",
    paper="Kumar et al. 2018",
    strength_label="λ_od",
    color="#D55E00",
    marker="D",
    order=5,
    labels="none",
)
def dip_vae_i(
    lambda_od: NonNegative = 10.0, lambda_d: NonNegative | None = None, lambda_3: NonNegative = 0.0
) -> list[Term[Any]]:
    """reconstruction + KL + penalty on Cov[mean(x)].

    ``lambda_d``: 10 * lambda_od unless given. The paper's grid: lambda_od in {1, 2, 5, 10, 20, 50}.

    Examples
    --------
    >>> dip_vae_i(lambda_od=5.0)[1]
    DipI(lambda_od=5.0, lambda_d=50.0, lambda_3=0.0)
    """
    return [KL(), DipI(lambda_od, 10 * lambda_od if lambda_d is None else lambda_d, lambda_3)]


@register_method(
    "dip_vae_ii",
    label="DIP-VAE-II",
    paper="Kumar et al. 2018",
    strength_label="λ_od",
    color="#CC79A7",
    marker="v",
    order=6,
    labels="none",
)
def dip_vae_ii(
    lambda_od: NonNegative = 10.0, lambda_d: NonNegative | None = None, lambda_3: NonNegative = 0.0
) -> list[Term[Any]]:
    """reconstruction + KL + penalty on Cov[z] = Cov[mean(x)] + E[Sigma(x)].

    ``lambda_d``: lambda_od unless given. The paper's grid: lambda_od in {1, 2, 5, 10, 20, 50};
    Kumar et al. take lambda_3 = 200 for 2D shapes.

    Examples
    --------
    >>> dip_vae_ii(lambda_od=5.0)[1]
    DipII(lambda_od=5.0, lambda_d=5.0, lambda_3=0.0)
    """
    return [KL(), DipII(lambda_od, lambda_od if lambda_d is None else lambda_d, lambda_3)]


@dataclass(frozen=True)
class _Dip(Term[Pass]):
    lambda_od: NonNegative = 10.0
    lambda_d: NonNegative = 10.0
    lambda_3: NonNegative = 0.0

    def __post_init__(self) -> None:
        check_fields(self, convert=False)


@register_term("dip_i")
class DipI(_Dip):
    """lambda_od * sum_{i != j} C_ij^2 + lambda_d * sum_i (C_ii - 1)^2 with C = Cov[mean(x)].

    And lambda_3 * the squared norm of the third central moments of mean(x).

    Examples
    --------
    >>> DipI(lambda_od=5.0).lambda_d
    10.0
    """

    def __call__(self, forward_pass: Pass) -> Terms:
        penalty = dip_penalty(dip_i_covariance(forward_pass.mean), self.lambda_od, self.lambda_d)
        terms = Terms.of(dip_i=(penalty, 1.0))
        if self.lambda_3:
            terms.add(Terms.of(third_moments=(third_moment_penalty(forward_pass.mean), self.lambda_3)))
        return terms


@register_term("dip_ii")
class DipII(_Dip):
    """As DIP-I with C = Cov[z] and the third central moments of z.

    Examples
    --------
    >>> DipII(lambda_od=5.0).lambda_3
    0.0
    """

    def __call__(self, forward_pass: Pass) -> Terms:
        posterior, correlation = forward_pass.posterior, forward_pass.correlation
        covariance = dip_ii_covariance(*posterior, correlation=correlation)
        terms = Terms.of(dip_ii=(dip_penalty(covariance, self.lambda_od, self.lambda_d), 1.0))
        if self.lambda_3:
            third = third_moment_penalty(*posterior, correlation=correlation)
            terms.add(Terms.of(third_moments=(third, self.lambda_3)))
        return terms
