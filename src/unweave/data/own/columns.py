"""Columns of a user's table become factors: which are discrete, what their values are called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from unweave.arrays import AnyArray, BoolArray, as_array
from unweave.data.factors import FactorArray, FactorSpace, Size
from unweave.errors import ArgumentError

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def factor_table(
    columns: Mapping[str, object], categorical: Sequence[str] = ()
) -> tuple[FactorSpace, FactorArray]:
    """The factor space of named columns (n,), and their values in it, (n, K).

    =====================================  =======================================================
    a column of                            is a factor that is
    =====================================  =======================================================
    integers, booleans                     discrete, ordered
    text                                   discrete, categorical
    floats that are all whole numbers      discrete, ordered
    floats that are all the same           discrete, with one value
    other floats                           continuous, from the least to the greatest value
    anything, if named in ``categorical``  discrete, categorical
    =====================================  =======================================================

    The distinct values of a discrete factor, sorted, are its values 0 .. size - 1; the space's
    ``value_names`` keep how they are written. NaN, None and empty text mean that a value is not known: it is NaN in the
    table, which then is float64. Infinity is refused, and a column without any value.

    Parameters
    ----------
    columns
        a column (n,) of each name.
    categorical
        names of the columns whose values have no order.

    Returns
    -------
    space, table
        the factors, and an array (n, K).

    Examples
    --------
    >>> space, table = factor_table({"shape": ["cube", "ball"], "angle": [0.5, 1.7], "size": [3, 9]})
    >>> space.sizes, space.value_names["size"]
    ((2, (0.5, 1.7), 2), ('3', '9'))
    >>> table
    array([[1. , 0.5, 0. ],
           [0. , 1.7, 1. ]])
    """
    encoded = {name: _encode(name, values, name in categorical) for name, values in columns.items()}
    space = FactorSpace(
        list(encoded),
        [column.size for column in encoded.values()],
        categorical=[*categorical, *(n for n, c in encoded.items() if c.is_text and n not in categorical)],
        value_names={name: c.value_names for name, c in encoded.items() if c.value_names is not None},
    )
    # No column at all: the caller knows the number of rows.
    stacked = np.stack([c.values for c in encoded.values()], axis=1) if encoded else np.empty((0, 0))
    table: AnyArray = space.empty(len(stacked))
    if any(column.unknown for column in encoded.values()):
        table = table.astype(np.float64)
    table[:] = stacked
    return space, table


def parse_cells(cells: Sequence[str]) -> AnyArray:
    """The cells of one column of a text file: integers if all are, else floats if all are, else text.

    Integers too long for 64 bits are identifiers, not quantities: they stay text. An empty cell is a value that is not
    known: None beside integers, NaN beside floats, and empty beside text.

    Examples
    --------
    >>> parse_cells(["1", "2.5", ""])
    array([1. , 2.5, nan])
    """
    known = [cell for cell in cells if cell]
    if all(_INTEGER.fullmatch(cell) for cell in known):
        try:
            integers = np.array([int(cell) for cell in known], dtype=np.int64)
        except OverflowError:
            return np.array(cells, dtype=str)
        if len(known) == len(cells):
            return integers
        return np.array([int(cell) if cell else None for cell in cells], dtype=object)
    if all(_NUMBER.fullmatch(cell) for cell in known):
        return np.array([float(cell or "nan") for cell in cells], dtype=np.float64)
    return np.array(cells, dtype=str)


@dataclass(frozen=True)
class _Column:
    size: Size
    values: AnyArray
    value_names: tuple[str, ...] | None
    is_text: bool
    unknown: bool


def _encode(name: str, raw: object, categorical: bool) -> _Column:
    column = _as_column(name, raw)
    known = _known(column)
    if not known.any():
        raise ArgumentError(f"factors[{name!r}]", "no value", "needs a value for at least one row")
    values = _of_one_kind(name, column[known])
    is_float = values.dtype.kind == "f"
    if is_float:
        _refuse(name, column, known, ~np.isfinite(values), "needs finite numbers")
        values = values.astype(np.float64)
    whole = is_float and bool((values == np.floor(values)).all())
    if is_float and not whole and not categorical and values.min() < values.max():
        size: Size = (float(values.min()), float(values.max()))
        return _Column(size, _spread(values, known), None, False, not known.all())
    distinct, indices = np.unique(values, return_inverse=True)
    texts = tuple(str(int(value)) if whole else str(value) for value in distinct.tolist())
    encoded = _spread(indices.reshape(-1), known)
    return _Column(len(distinct), encoded, texts, values.dtype.kind == "U", not known.all())


def _spread(values: AnyArray, known: BoolArray) -> AnyArray:
    """The values of the known rows at their rows, NaN at all others; as they are where every row is known."""
    if known.all():
        return values
    column = np.full(len(known), np.nan)
    column[known] = values
    return column


def _as_column(name: str, raw: object) -> AnyArray:
    """A column as an (n,) array of booleans, integers, floats, text or objects."""
    values = as_array(raw, f"factors[{name!r}]", keep_types=True)
    if values.ndim != 1:
        raise ArgumentError(
            f"factors[{name!r}]", f"array of shape {values.shape}", "needs one value for each row"
        )
    if values.dtype.kind == "S":
        values = np.array([value.decode("utf-8", "replace") for value in values.tolist()], dtype=str)
    if values.dtype.kind == "T":
        values = values.astype(object)
    if values.dtype.kind not in "biufUO":
        raise ArgumentError(
            f"factors[{name!r}]", f"values of type {values.dtype}", "needs numbers, text or booleans"
        )
    return values


def _known(column: AnyArray) -> BoolArray:
    """Which rows (n,) have a value."""
    if column.dtype.kind == "f":
        return np.asarray(~np.isnan(column))
    if column.dtype.kind == "U":
        return np.asarray(np.strings.str_len(np.strings.strip(column)) > 0)
    if column.dtype.kind == "O":
        return np.array([not _is_missing(value) for value in column.tolist()], dtype=bool)
    return np.ones(len(column), bool)


def _of_one_kind(name: str, values: AnyArray) -> AnyArray:
    """Objects (n,) as booleans, integers, floats or text."""
    if values.dtype.kind != "O":
        return values
    listed = values.tolist()
    for kind, dtype in ((str, str), ((bool, np.bool_), bool), (Real, None)):
        if all(isinstance(value, kind) for value in listed):
            converted = np.array(listed, dtype=dtype)
            if converted.dtype.kind in "biufU":
                return converted
    types = ", ".join(sorted({type(value).__name__ for value in listed}))
    raise ArgumentError(f"factors[{name!r}]", f"values of type {types}", "needs only numbers, or only text")


def _is_missing(value: object) -> bool:
    if isinstance(value, str):
        return not value.strip()
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True


def _refuse(name: str, column: AnyArray, known: BoolArray, wrong: BoolArray, why: str) -> None:
    if wrong.any():
        row = int(np.flatnonzero(known)[np.argmax(wrong)])
        raise ArgumentError(f"factors[{name!r}], row {row}", column[row : row + 1].tolist()[0], why)
