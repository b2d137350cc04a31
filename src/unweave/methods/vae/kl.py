"""The KL term: as it is, scaled, or held to a growing capacity."""

from __future__ import annotations

from dataclasses import dataclass

from unweave.errors import ArgumentError
from unweave.methods.method import Terms
from unweave.methods.registry import register_term
from unweave.methods.spec import VAESpec
from unweave.methods.vae.terms import Pass, Term
from unweave.objectives import capacity_penalty, kl_to_standard_normal, linear_capacity
from unweave.parameters import Count, NonNegative, check_fields


@register_term("kl")
@dataclass(frozen=True)
class KL(Term[Pass]):
    """weight * KL(q(z|x) || p(z)), batch mean, in nats.

    Examples
    --------
    >>> KL(4.0).settings()
    {'weight': 4.0}
    """

    weight: NonNegative = 1.0

    def __post_init__(self) -> None:
        check_fields(self, convert=False)

    def __call__(self, forward_pass: Pass) -> Terms:
        return Terms.of(kl=(forward_pass.kl, self.weight))


@register_term("kl_of_first")
@dataclass(frozen=True)
class KLOfFirst(Term[Pass]):
    """weight * KL of the first latents alone, batch mean, in nats; next to the method's own KL.

    Examples
    --------
    >>> KLOfFirst(latents=5, weight=3.0).settings()
    {'latents': 5, 'weight': 3.0}
    """

    latents: Count = 1
    weight: NonNegative = 1.0

    def __post_init__(self) -> None:
        check_fields(self, convert=False)

    def attach(self, spec: VAESpec) -> None:
        """Refuse more latents than there are."""
        if self.latents > spec.latent_size:
            raise ArgumentError("latents", self.latents, f"needs at most {spec.latent_size}, all latents")

    def __call__(self, forward_pass: Pass) -> Terms:
        mean, log_variance = (part[:, : self.latents] for part in forward_pass.posterior)
        kl = kl_to_standard_normal(mean, log_variance).sum(1).mean()
        return Terms.of(kl_of_first=(kl, self.weight))


@register_term("kl_capacity")
@dataclass(frozen=True)
class CapacityKL(Term[Pass]):
    """gamma * |batch mean KL - C(step)|, where C grows linearly to c_max nats over so many steps.

    Examples
    --------
    >>> CapacityKL(c_max=10.0).gamma
    1000.0
    """

    c_max: NonNegative = 25.0
    gamma: NonNegative = 1000.0
    steps: Count = 100_000

    def __post_init__(self) -> None:
        check_fields(self, convert=False)

    def __call__(self, forward_pass: Pass) -> Terms:
        capacity = linear_capacity(forward_pass.step, self.c_max, self.steps)
        penalty = capacity_penalty(forward_pass.kl, capacity)
        return Terms.of(kl_capacity=(penalty, self.gamma), kl=(forward_pass.kl, 0.0))
