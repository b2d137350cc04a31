"""Parameters declared by type and bounds, and checked by that declaration.

A function says what it takes in its signature, and everybody who calls it by name checks against that:

>>> def beta_vae(beta: NonNegative = 4.0, estimator: Literal["mean", "sum"] = "mean"): ...
>>> check_arguments(beta_vae, {"beta": 6}, "hyperparameter of beta_vae")
{'beta': 6.0}
>>> check_arguments(beta_vae, {"beta": -1}, "hyperparameter of beta_vae")
Traceback (most recent call last):
unweave.errors.ArgumentError: beta = -1: needs a number >= 0
"""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from unweave.arrays import to_python
from unweave.errors import ArgumentError, unknown_name

Count = Annotated[int, Ge(1)]
Natural = Annotated[int, Ge(0)]
Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Fraction = Annotated[float, Ge(0), Le(1)]
CodeSize = Annotated[
    int, Ge(1), Le(65_536)
]  # numbers in a code: more is a slip, and memory is asked for at once
Correlation = Annotated[float, Ge(0), Lt(1)]
Decay = Annotated[float, Ge(0), Lt(1)]
Seed = Annotated[int, Ge(0), Lt(2**32)]
TorchSeed = Annotated[int, Ge(0), Lt(2**63)]  # of a torch.Generator

_WORDS = {Ge: ">=", Gt: ">", Le: "<=", Lt: "<"}


def defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters that a function can be given by name, with their defaults.

    >>> defaults(lambda codes, /, *, num_bins=20: None)
    {'num_bins': 20}
    """
    signature = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in signature if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def check_arguments(
    function: Callable[..., Any], given: Mapping[str, Any], kind: str = "parameter"
) -> dict[str, Any]:
    """The given values, each as its declaration in the signature of ``function`` wants it.

    Parameters
    ----------
    function
        whose signature declares types and bounds.
    given
        values by name. A whole float is taken for an int, an int for a float, NumPy scalars for both.
    kind
        what an unknown name is called in the error: "hyperparameter of beta_vae".
    """
    known = defaults(function)
    annotations = declared(function)
    checked = {}
    for name, value in given.items():
        if name not in known:
            raise unknown_name(kind, name, known)
        checked[name] = check_value(name, value, annotations.get(name, Any))
    return checked


def check_fields(instance: Any, *, convert: bool = True) -> None:
    """Check the fields of a dataclass by their declarations; call it in ``__post_init__``.

    ``convert``: also replace each value by what its declaration makes of it, a float of an int.
    """
    annotations: dict[str, Any] = declared(type(instance))  # type: ignore[arg-type]
    for field in fields(instance):
        value = check_value(field.name, getattr(instance, field.name), annotations.get(field.name, Any))
        if convert:
            object.__setattr__(instance, field.name, value)


def check_value(name: str, value: Any, annotation: Any) -> Any:
    """A value as its annotation wants it, or an :class:`ArgumentError` that names the parameter.

    Types that are not known here (arrays, callables, modules) are left to the function itself.

    >>> check_value("steps", 10.0, Count)
    10
    >>> check_value("rule", "tree", Literal["histogram", "min_max"])
    Traceback (most recent call last):
    unweave.errors.ArgumentError: rule = 'tree': known: histogram, min_max
    """
    kind, bounds = _unwrap(annotation)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _check_union(name, value, annotation, get_args(kind))
    if kind is None or kind is type(None):
        if value is not None:
            raise ArgumentError(name, value, "needs None")
        return None
    if origin is Literal:
        options = get_args(kind)
        if not any(type(value) is type(option) and value == option for option in options):
            raise unknown_name(name, value, [str(option) for option in options])
        return value
    if kind in (int, float, bool, str):
        return _check_scalar(name, value, kind, bounds)
    if origin in (list, tuple, Sequence) or (isinstance(origin, type) and issubclass(origin, Sequence)):
        return _check_sequence(name, value, origin, get_args(kind))
    return to_python(value)


@cache
def declared(function: Any) -> dict[str, Any]:
    """The annotations of a function's parameters (or a dataclass's fields), with their bounds."""
    target = function.__init__ if inspect.isclass(function) and not _is_dataclass(function) else function
    return typing.get_type_hints(inspect.unwrap(target), include_extras=True)


def describe(annotation: Any) -> str:
    """What an annotation allows, in words.

    >>> describe(NonNegative | None)
    'a number >= 0, or None'
    """
    kind, bounds = _unwrap(annotation)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return ", or ".join(describe(option) for option in get_args(kind))
    if kind is None or kind is type(None):
        return "None"
    if origin is Literal:
        options = ", ".join(map(repr, get_args(kind)))
        return options if len(get_args(kind)) == 1 else f"one of {options}"
    words = {int: "a whole number", float: "a number", bool: "True or False", str: "a text"}
    if kind in words:
        limits = " and ".join(f"{_WORDS[type(bound)]} {_text(_limit(bound))}" for bound in bounds)
        return f"{words[kind]} {limits}" if limits else words[kind]
    if origin is not None and get_args(kind):
        return f"a list, each {describe(get_args(kind)[0])}"
    return getattr(kind, "__name__", str(kind))


def _unwrap(annotation: Any) -> tuple[Any, list[Any]]:
    if get_origin(annotation) is Annotated:
        kind, *notes = get_args(annotation)
        return kind, [note for note in notes if type(note) in _WORDS]
    return annotation, []


def _check_scalar(name: str, value: Any, kind: type, bounds: Sequence[Any]) -> Any:
    plain = to_python(value)
    is_bool = isinstance(plain, bool)
    fits = {
        bool: is_bool,
        str: isinstance(plain, str),
        int: not is_bool and (isinstance(plain, Integral) or (type(plain) is float and plain.is_integer())),
        float: not is_bool and isinstance(plain, Real) and _is_finite(plain),
    }[kind]
    if kind is int and fits and not -(2**63) <= plain < 2**63:
        raise ArgumentError(name, plain, "needs a whole number of at most 64 bits")
    if fits and kind in (int, float):
        plain = kind(plain)
        fits = all(_within(plain, bound) for bound in bounds)
    if not fits:
        words = describe(Annotated[kind, *bounds] if bounds else kind)
        raise ArgumentError(name, to_python(value), f"needs {words}")
    return plain


def _is_finite(number: Any) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # of a whole number that no float can hold
        return False


def _check_union(name: str, value: Any, annotation: Any, options: Sequence[Any]) -> Any:
    if value is None and type(None) in options:
        return None
    errors = []
    for option in options:
        if option is type(None):
            continue
        try:
            return check_value(name, value, option)
        except ArgumentError as error:
            errors.append(error)
    raise errors[0] if len(options) == 1 else ArgumentError(name, value, f"needs {describe(annotation)}")


def _check_sequence(name: str, value: Any, origin: Any, arguments: Sequence[Any]) -> Any:
    if isinstance(value, np.ndarray) and value.ndim > 0:
        value = value.tolist() if value.ndim == 1 else list(value)
    if not isinstance(value, list | tuple | range):
        raise ArgumentError(name, value, "needs a list")
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        if len(value) != len(arguments):
            raise ArgumentError(name, value, f"needs {len(arguments)} values")
        kinds: Sequence[Any] = arguments
    else:
        kinds = [arguments[0] if arguments else Any] * len(value)
    checked = [
        check_value(f"{name}[{i}]", v, kind) for i, (v, kind) in enumerate(zip(value, kinds, strict=True))
    ]
    return checked if origin is list else tuple(checked)


def _within(value: float, bound: Any) -> bool:
    limit = _limit(bound)
    return bool({Ge: value >= limit, Gt: value > limit, Le: value <= limit, Lt: value < limit}[type(bound)])


def _limit(bound: Any) -> Any:
    return getattr(bound, type(bound).__name__.lower())


def _text(limit: float) -> str:
    """A bound for people: 0.5, 65536, and 2^32 where all digits would say less."""
    power = int(limit).bit_length() - 1
    return f"2^{power}" if power >= 31 and limit == 2**power else f"{limit:g}"


def _is_dataclass(function: Any) -> bool:
    return "__dataclass_fields__" in vars(function)
