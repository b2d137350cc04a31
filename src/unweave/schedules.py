"""Numbers that change during training, as functions of the step alone: a resumed run goes on with the same ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from unweave.errors import ArgumentError
from unweave.parameters import (
    Count,
    Natural,
    NonNegative,
    Positive,
    check_arguments,
    check_fields,
    check_value,
)


@dataclass(frozen=True)
class Schedule:
    """A number that moves from ``start`` to ``end``, and stays there.

        value(step) = start + (end - start) * f(t),   t = (step - after) / steps, cut to [0, 1]

    with f(t) = t for "linear", and (1 - cos(pi t)) / 2 for "cosine".

    Parameters
    ----------
    start, end
        the values before and after.
    steps
        how many steps the way takes.
    after
        the step at which it begins.
    shape
        "linear" or "cosine".

    Examples
    --------
    >>> weight = Schedule(start=0.0, end=6.0, steps=1000)
    >>> weight(0), weight(500), weight(5000)
    (0.0, 3.0, 6.0)
    """

    start: float
    end: float
    steps: Count
    after: Natural = 0
    shape: Literal["linear", "cosine"] = "linear"

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, step: int) -> float:
        """The value at a step."""
        done = min(max((step - self.after) / self.steps, 0.0), 1.0)
        if done in (0.0, 1.0):
            return self.end if done else self.start
        if self.shape == "cosine":
            done = (1 - math.cos(math.pi * done)) / 2
        return self.start + (self.end - self.start) * done

    def __str__(self) -> str:
        """In few words: "0→6 in 1,000 steps"."""
        words = [f"{self.start:g}→{self.end:g} in {self.steps:,} steps"]
        words += [f"after {self.after:,}"] if self.after else []
        words += [self.shape] if self.shape != "linear" else []
        return ", ".join(words)

    @staticmethod
    def read(name: str, given: Mapping[str, Any]) -> Schedule:
        """A schedule from a mapping of its arguments; ``name`` is the setting's, for errors.

        Examples
        --------
        >>> print(Schedule.read("beta", {"start": 0, "end": 6, "steps": 1000}))
        0→6 in 1,000 steps
        """
        missing = [key for key in ("start", "end", "steps") if key not in given]
        if missing:
            needs = "a schedule needs start, end and steps, and may have after and shape (linear, cosine)"
            raise ArgumentError(name, dict(given), needs)
        return Schedule(**check_arguments(Schedule, given, f"key of the schedule of {name}"))


@dataclass(frozen=True)
class LearningRate:
    """A learning rate with a warm-up and a decay.

    It rises linearly from 0 to ``peak`` over ``warmup`` steps; then it stays there ("constant"), or falls to ``end``
    until step ``over`` in a line ("linear") or half a cosine ("cosine").

    Parameters
    ----------
    peak
        the largest rate.
    warmup
        the steps of the rise.
    shape
        "constant", "linear" or "cosine".
    end
        the rate from step ``over`` on.
    over
        the step at which the decay ends; None: the last step of the run.

    Examples
    --------
    >>> rate = LearningRate(1e-3, warmup=100, shape="cosine", over=1100)
    >>> [round(rate(step), 7) for step in (0, 49, 99, 600, 1100)]
    [1e-05, 0.0005, 0.001, 0.0005, 0.0]
    """

    peak: Positive
    warmup: Natural = 0
    shape: Literal["constant", "linear", "cosine"] = "constant"
    end: NonNegative = 0.0
    over: Count | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.end > self.peak:
            raise ArgumentError("end", self.end, f"needs to be at most the peak, {self.peak:g}")
        for name, value in (("end", self.end), ("over", self.over)):
            if value and self.shape == "constant":
                raise ArgumentError(
                    name, value, "needs the shape linear or cosine: a constant rate has no decay"
                )
        if self.over is not None and self.over <= self.warmup:
            raise ArgumentError("over", self.over, f"needs more steps than the warm-up, {self.warmup}")

    def __call__(self, step: int) -> float:
        """The rate of step number ``step``, which begin at 0: the first one moves already."""
        if step < self.warmup:
            return self.peak * (step + 1) / self.warmup
        if self.shape == "constant" or self.over is None:
            return self.peak
        return Schedule(self.peak, self.end, self.over - self.warmup, self.warmup, self.shape)(step)

    def factor(self, step: int) -> float:
        """The rate of a step as a share of the peak."""
        return self(step) / self.peak

    def as_setting(self, steps: int) -> float | dict[str, Any]:
        """As a run's spec has it: a number where nothing changes, else a mapping with ``over`` filled in."""
        if self.warmup == 0 and self.shape == "constant":
            return self.peak
        if self.shape == "constant":
            return {"peak": self.peak, "warmup": self.warmup}
        if self.over is None and steps <= self.warmup:
            raise ArgumentError("warmup", self.warmup, f"needs fewer than all {steps} steps, for the decay")
        over = steps if self.over is None else self.over
        return asdict(LearningRate(self.peak, self.warmup, self.shape, self.end, over))

    @staticmethod
    def read(given: float | Mapping[str, Any]) -> LearningRate:
        """A learning rate from a number, or a mapping of the arguments.

        Examples
        --------
        >>> LearningRate.read(1e-3)(step=7)
        0.001
        """
        if isinstance(given, Mapping):
            if "peak" not in given:
                needs = "a mapping needs peak, and may have warmup, shape (constant, linear, cosine), end and over"
                raise ArgumentError("learning_rate", dict(given), needs)
            return LearningRate(**check_arguments(LearningRate, given, "key of learning_rate"))
        return LearningRate(check_value("learning_rate", given, Positive))


def resolve(values: Mapping[str, Any], step: int | None = None) -> dict[str, Any]:
    """Values with those of a step instead of schedules; without a step the last ones.

    Examples
    --------
    >>> resolve({"beta": {"start": 0, "end": 6, "steps": 1000}, "gamma": 2.0})
    {'beta': 6.0, 'gamma': 2.0}
    """
    resolved = {}
    for name, value in values.items():
        if is_schedule(value):
            schedule = Schedule.read(name, value)
            resolved[name] = schedule.end if step is None else schedule(step)
        else:
            resolved[name] = value
    return resolved


def is_schedule(value: object) -> bool:
    """Whether a setting is a mapping that says where it starts or ends.

    Examples
    --------
    >>> is_schedule({"start": 0, "end": 6, "steps": 1000}), is_schedule(6)
    (True, False)
    """
    return isinstance(value, Mapping) and not {"start", "end"}.isdisjoint(value)
