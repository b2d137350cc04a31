"""Checks of hyperparameters, made when a method is put together."""

from __future__ import annotations

import math
from numbers import Real

from unweave.errors import ArgumentError


def check_not_negative(name: str, value: object) -> None:
    """Refuse what is not a finite number >= 0."""
    if not _is_number(value) or value < 0:  # type: ignore[operator]
        raise ArgumentError(name, value, "needs a number >= 0")


def check_positive(name: str, value: object) -> None:
    """Refuse what is not a finite number > 0."""
    if not _is_number(value) or value <= 0:  # type: ignore[operator]
        raise ArgumentError(name, value, "needs a number > 0")


def check_count(name: str, value: object) -> None:
    """Refuse what is not a whole number >= 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ArgumentError(name, value, "needs a whole number >= 1")


def check_correlation(value: object) -> None:
    """Refuse what is not a number in [0, 1)."""
    if not _is_number(value) or not 0 <= value < 1:  # type: ignore[operator]
        raise ArgumentError("correlation", value, "needs 0 <= s < 1")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
