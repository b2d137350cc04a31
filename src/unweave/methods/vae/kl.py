"""The KL term: plain, scaled, or held to a growing capacity."""

from __future__ import annotations

from dataclasses import dataclass

from unweave.errors import ArgumentError
from unweave.methods.checks import check_not_negative, check_positive
from unweave.methods.terms import Pass, Terms, register_term
from unweave.objectives import capacity_penalty, linear_capacity


@register_term("kl")
@dataclass(frozen=True)
class KL:
    """``weight`` * KL(q(z|x) || p(z)), batch mean, in nats."""

    weight: float = 1.0

    def __post_init__(self) -> None:
        check_not_negative("weight", self.weight)

    def __call__(self, made: Pass) -> Terms:
        return Terms.of(kl=(made.kl, self.weight))


@register_term("kl_capacity")
@dataclass(frozen=True)
class CapacityKL:
    """``gamma`` * |batch mean KL - C(step)|, where C grows linearly to ``c_max`` nats over ``steps``."""

    c_max: float = 25.0
    gamma: float = 1000.0
    steps: int = 100_000

    def __post_init__(self) -> None:
        check_not_negative("c_max", self.c_max)
        check_not_negative("gamma", self.gamma)
        check_positive("steps", self.steps)
        if self.steps != int(self.steps):
            raise ArgumentError("steps", self.steps, "needs a whole number")

    def __call__(self, made: Pass) -> Terms:
        penalty = capacity_penalty(made.kl, linear_capacity(made.step, self.c_max, self.steps))
        return Terms.of(kl_capacity=(penalty, self.gamma), kl=(made.kl, 0.0))
