"""Terms whose numbers change during training.

A hyperparameter of a VAE, of its ``capacity`` or of a further term may be a mapping {"start": 0, "end": 6, "steps":
5000}, a :class:`~unweave.schedules.Schedule`. At each step the method's function is called with the values of that
step, and the terms in training take over the settings of the ones that it returns. So any hyperparameter of any
method can be scheduled, and no term needs to know.
"""

from __future__ import annotations

import math
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
        first, last = (self._settings(given, value) for value in (schedule.start, schedule.end))
        if first == last and schedule.start != schedule.end:
            message = "is no setting of a term, so that it cannot change during training"
            raise ArgumentError(name, dict(given), message)
        try:
            self._settings(given, schedule.start + (schedule.end - schedule.start) / math.pi)
        except ArgumentError as error:
            message = "has no values between its start and its end, so that it cannot change in small steps"
            raise ArgumentError(name, dict(given), message) from error

    def _settings(self, given: Mapping[str, Any], value: float) -> list[dict[str, Any]]:
        """Of all terms, with a value in the place of one schedule and the others at their start."""

        def chosen(values: Mapping[str, Any]) -> dict[str, Any]:
            return resolve({key: value if each is given else each for key, each in values.items()}, step=0)

        return [term.settings() for term in self.rebuild(_changed(self.spec, chosen))]


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
    return _changed(spec, lambda values: resolve(values, step))


def _changed(spec: VAESpec, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> VAESpec:
    """The spec with other hyperparameters, capacity and further terms."""
    return replace(
        spec,
        hyperparameters=change(spec.hyperparameters),
        capacity=None if spec.capacity is None else change(spec.capacity),
        extra_terms=[change(entry) for entry in spec.extra_terms],
    )
