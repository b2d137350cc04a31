"""Arguments that metrics share: seeds, and parameters by the type that a metric's signature gives them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from unweave.errors import ArgumentError


def check_seed(seed: Any) -> int:
    """A whole number 0 <= seed < 2^32, which every random source takes."""
    if not _is_whole(seed) or not 0 <= seed < 2**32:
        raise ArgumentError("seed", seed, "needs a whole number, 0 <= seed < 2^32")
    return int(seed)


def check_bootstrap(times: Any) -> int:
    """How many resamplings: 0, or at least 2."""
    if not _is_whole(times) or times < 0 or times == 1:
        raise ArgumentError("bootstrap", times, "needs 0, or a whole number >= 2")
    return int(times)


def checked_params(function: Callable[..., Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The values of keyword parameters as their annotations say, or an error that names the parameter.

    ``int`` is a count, of at least 1; ``float`` is finite. Arrays are left to the function. So are bounds of its own.
    """
    signature = inspect.signature(function).parameters
    return {name: _checked(name, value, str(signature[name].annotation)) for name, value in params.items()}


def _checked(name: str, value: Any, annotation: str) -> Any:
    kind = annotation.removesuffix(" | None")
    if kind not in _CHECKS or (value is None and kind != annotation):
        return value
    check, needs = _CHECKS[kind]
    if not check(value):
        raise ArgumentError(name, value, needs if kind == annotation else f"{needs}, or None")
    return tuple(value) if isinstance(value, np.ndarray | list) else value


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and math.isfinite(value)


def _are(each: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        listed = isinstance(value, list | tuple | range) or (
            isinstance(value, np.ndarray) and value.ndim == 1
        )
        return listed and all(map(each, value))

    return check


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "int": (lambda value: _is_whole(value) and value >= 1, "needs a whole number of at least 1"),
    "float": (_is_number, "needs a finite number"),
    "bool": (lambda value: isinstance(value, bool | np.bool_), "needs True or False"),
    "str": (lambda value: isinstance(value, str), "needs a name"),
    "Sequence[int]": (_are(_is_whole), "needs a list of whole numbers"),
    "tuple[float, float]": (
        lambda value: _are(_is_number)(value) and len(value) == 2,
        "needs two finite numbers",
    ),
}
