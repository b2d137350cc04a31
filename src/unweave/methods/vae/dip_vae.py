"""DIP-VAE-I and -II (Kumar et al. 2018): the covariance of the codes is matched to the identity."""

from __future__ import annotations

from dataclasses import dataclass

from unweave.methods.checks import check_not_negative
from unweave.methods.terms import Pass, Term, Terms, register_term
from unweave.methods.vae.kl import KL
from unweave.objectives import (
    dip_i_covariance,
    dip_ii_covariance,
    dip_penalty,
    third_moment_penalty,
)


def dip_vae_i(lambda_od: float = 10.0, lambda_d: float | None = None, lambda_3: float = 0.0) -> list[Term]:
    """reconstruction + KL + penalty on Cov[mean(x)].

    ``lambda_d``: 10 * lambda_od unless given. The paper's grid: lambda_od in {1, 2, 5, 10, 20, 50}.
    """
    return [KL(), DipI(lambda_od, 10 * lambda_od if lambda_d is None else lambda_d, lambda_3)]


def dip_vae_ii(lambda_od: float = 10.0, lambda_d: float | None = None, lambda_3: float = 0.0) -> list[Term]:
    """reconstruction + KL + penalty on Cov[z] = Cov[mean(x)] + E[Sigma(x)].

    ``lambda_d``: lambda_od unless given. The paper's grid: lambda_od in {1, 2, 5, 10, 20, 50};
    Kumar et al. take lambda_3 = 200 for 2D shapes.
    """
    return [KL(), DipII(lambda_od, lambda_od if lambda_d is None else lambda_d, lambda_3)]


@dataclass(frozen=True)
class _Dip:
    lambda_od: float = 10.0
    lambda_d: float = 10.0
    lambda_3: float = 0.0

    def __post_init__(self) -> None:
        for name in ("lambda_od", "lambda_d", "lambda_3"):
            check_not_negative(name, getattr(self, name))


@register_term("dip_i")
class DipI(_Dip):
    """lambda_od * sum_{i != j} C_ij^2 + lambda_d * sum_i (C_ii - 1)^2 with C = Cov[mean(x)].

    And lambda_3 * the squared norm of the third central moments of mean(x).
    """

    def __call__(self, made: Pass) -> Terms:
        penalty = dip_penalty(dip_i_covariance(made.mean), self.lambda_od, self.lambda_d)
        terms = Terms.of(dip_i=(penalty, 1.0))
        if self.lambda_3:
            terms.add(Terms.of(third_moments=(third_moment_penalty(made.mean), self.lambda_3)))
        return terms


@register_term("dip_ii")
class DipII(_Dip):
    """As DIP-I with C = Cov[z] and the third central moments of z."""

    def __call__(self, made: Pass) -> Terms:
        posterior = (made.mean, made.log_variance)
        covariance = dip_ii_covariance(*posterior, correlation=made.correlation)
        terms = Terms.of(dip_ii=(dip_penalty(covariance, self.lambda_od, self.lambda_d), 1.0))
        if self.lambda_3:
            third = third_moment_penalty(*posterior, correlation=made.correlation)
            terms.add(Terms.of(third_moments=(third, self.lambda_3)))
        return terms
