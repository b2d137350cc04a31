"""Terms whose numbers change during training.

A hyperparameter of a VAE, of its ``capacity`` or of a further term may be a mapping {"start": 0, "end": 6, "steps":
5000}, a :class:`~unweave.schedules.Schedule`. At each step the method's function is called with the values of that
step, and the terms in training take over the settings of the ones that it returns. So any hyperparameter of any
method can be scheduled, and no term needs to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unweave.errors import ArgumentError
from unweave.methods.spec import VAESpec
from unweave.methods.vae.terms import Term
from unweave.schedules import Schedule, is_schedule, resolve


class ScheduledTerms:
    """Keeps the settings of terms at those of the current step.

    Parameters
    ----------
    spec
        of the VAE, with schedules in it.
    terms
        the terms in training.
    rebuild
        from a spec without schedules to its terms, in the same order.
    """

    def __init__(
        self, spec: VAESpec, terms: Sequence[Term[Any]], rebuild: Callable[[VAESpec], Sequence[Term[Any]]]
    ) -> None:
        self.spec, self.terms, self.rebuild = spec, terms, rebuild
        for name, given in schedules(spec).items():
            self._check(name, given)

    def set(self, step: int) -> None:
        """Take the values of a step."""
        for term, now in zip(self.terms, self.rebuild(at_step(self.spec, step)), strict=True):
            for key, value in now.settings().items():
                object.__setattr__(term, key, value)  # terms are frozen for everybody else

    def _check(self, name: str, given: Mapping[str, Any]) -> None:
        """Refuse values that the hyperparameter cannot have, and a schedule that reaches no term."""
        schedule = Schedule.read(name.rpartition(".")[2], given)
        first, last = (
            [term.settings() for term in self.rebuild(at_step(self.spec, step))]
            for step in (schedule.after, schedule.after + schedule.steps)
        )
        if first == last and schedule.start != schedule.end:
            message = "is no setting of a term, so that it cannot change during training"
            raise ArgumentError(name, dict(given), message)


def schedules(spec: VAESpec) -> dict[str, Mapping[str, Any]]:
    """The schedules of a spec by name: of hyperparameters, of "capacity", of further terms.

    Examples
    --------
    >>> spec = VAESpec("beta_vae", [6], hyperparameters={"beta": {"start": 0, "end": 6, "steps": 1000}})
    >>> list(schedules(spec))
    ['beta']
    """
    sources = {"": spec.hyperparameters, "capacity.": spec.capacity or {}}
    sources |= {f"{entry['name']}.": entry for entry in spec.extra_terms}
    return {
        f"{prefix}{key}": value
        for prefix, values in sources.items()
        for key, value in values.items()
        if is_schedule(value)
    }


def at_step(spec: VAESpec, step: int) -> VAESpec:
    """The spec with the values of a step instead of schedules.

    Examples
    --------
    >>> spec = VAESpec("beta_vae", [6], hyperparameters={"beta": {"start": 0, "end": 6, "steps": 1000}})
    >>> at_step(spec, 500).hyperparameters
    {'beta': 3.0}
    """
    return replace(
        spec,
        hyperparameters=resolve(spec.hyperparameters, step),
        capacity=None if spec.capacity is None else resolve(spec.capacity, step),
        extra_terms=[resolve(entry, step) for entry in spec.extra_terms],
    )
