"""Checks of what a user gives as labels, made before any work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unweave.arrays import as_array
from unweave.data.dataset import Dataset
from unweave.data.supervision.label_values import LabelColumn, Values
from unweave.errors import ArgumentError, unknown_name

MOST_ENTRIES = 2**15  # of one-hot labels in u; the networks of a prior have 1,000 weights or more for each


def check_options(data: Dataset, bins: object, noise: object, labelled: object, seed: object) -> None:
    """Refuse bins, noise, a labelled part or a seed that are not what they must be."""
    if bins is not None and (not isinstance(bins, int) or isinstance(bins, bool) or bins < 2):
        raise ArgumentError("bins", bins, "needs a whole number >= 2")
    if not isinstance(noise, int | float) or isinstance(noise, bool) or not 0 <= noise <= 1:
        raise ArgumentError("noise", noise, "needs 0 <= noise <= 1")
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise ArgumentError("seed of labels", seed, "needs a whole number, 0 <= seed < 2**63")
    if noise and not data.finite:
        raise ArgumentError("noise", noise, f"{data.name} is endless: it has no rows to fix wrong labels for")
    if labelled is not None and data.finite:
        _check_labelled(labelled, len(data))


def listed(names: object) -> list[str] | None:
    """Names as a list; one alone may be given as text."""
    if names is None:
        return None
    found = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if not all(isinstance(name, str) for name in found):
        raise ArgumentError("names", names, "needs names, as text")
    return [str(name) for name in found]


def factor_names(data: Dataset, names: list[str] | None) -> list[str]:
    """The factors of that name, or all; refuses unknown ones."""
    if not data.space:
        raise ArgumentError(
            "data",
            data.name,
            "has no factors to learn from: a folder of images needs a factors.csv, "
            "and in Python labels=… may be an array with a row for each image",
        )
    if names is None:
        return list(data.space.names)
    for name in names:
        if name not in data.space.names:
            raise unknown_name("labels", str(name), data.space.names)
    if not names or len(set(names)) != len(names):
        raise ArgumentError("labels", names, f"needs different factors, of {', '.join(data.space.names)}")
    return names


def column_names(names: list[str] | None, count: int) -> list[str]:
    """Names of the columns of an array: those given, or label_0, label_1, …"""
    names = [f"label_{column}" for column in range(count)] if names is None else names
    if len(names) != count or len(set(names)) != count:
        raise ArgumentError(
            "names", names, f"needs {count} different names, one for each column of the array"
        )
    return names


def own_array(array: npt.ArrayLike, data: Dataset, encoding: str) -> npt.NDArray[Any]:
    """A user's labels as an array (N, K) of its own, with a row for each of the data set."""
    given = as_array(array, "labels")
    if not data.finite:
        raise ArgumentError(
            "labels", "an array", f"{data.name} is endless: it has no rows that could have labels"
        )
    if given.dtype.kind not in "biuf" or given.ndim not in (1, 2) or given.size == 0:
        raise ArgumentError(
            "labels", f"{given.dtype} array of shape {given.shape}", "needs numbers (n,) or (n, K)"
        )
    if len(given) != len(data):
        raise ArgumentError("labels", f"{len(given)} rows", f"{data.name} has {len(data)}")
    if encoding == "mixed":
        raise ArgumentError("encoding", encoding, "an array of labels needs 'scaled' or 'one_hot'")
    return np.array(given.reshape(len(given), -1))


def discrete_columns(given: npt.NDArray[Any], encoding: str, bins: int | None) -> list[bool]:
    """Which columns (n, K) hold whole numbers, one for each value, rather than numbers in [0, 1].

    Integers do. Floats do if they are to be one-hot, unless bins can make values of what is not whole.
    """
    if given.dtype.kind in "biu" or encoding != "one_hot":
        return [given.dtype.kind in "biu"] * given.shape[1]
    whole = (given == np.floor(given)) | np.isnan(given)
    return [bins is None or bool(column.all()) for column in whole.T]


def check_values(given: npt.NDArray[Any], discrete: Sequence[bool]) -> Values:
    """A user's labels (n, K) as float64, NaN where unknown; refuses what is out of range."""
    values = given.astype(np.float64)
    whole = np.array(discrete)
    known = ~np.isnan(values)
    values[~known] = np.nan  # one bit pattern for all, so that equal labels have equal hashes
    if not known.any(axis=0).all():
        column = int(np.argmin(known.any(axis=0)))
        raise ArgumentError("labels", f"column {column} is all NaN", "needs at least one known label")
    with np.errstate(invalid="ignore"):
        wrong = (values < 0) | np.where(whole, values != np.floor(values), values > 1)
        wrong = (wrong | np.isinf(values)) & known
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        needs = "whole numbers >= 0, one for each value" if whole[column] else "numbers in [0, 1]"
        raise ArgumentError(f"labels[{row}, {column}]", values[row, column].item(), f"needs {needs}, or NaN")
    return values


def check_width(columns: Sequence[LabelColumn], encoding: str) -> None:
    """Refuse one-hot labels of so many values that no network could take them."""
    if sum(column.width for column in columns if column.one_hot) > MOST_ENTRIES:
        most = max(columns, key=lambda column: column.width)
        raise ArgumentError(
            "encoding",
            encoding,
            f"{most.name!r} has {most.width:,} values, and all labels together may have {MOST_ENTRIES:,}: "
            "number the values 0, 1, 2, … without gaps, or take 'scaled', or bins=…",
        )


def _check_labelled(labelled: object, total: int) -> None:
    is_number = isinstance(labelled, int | float) and not isinstance(labelled, bool)
    most = total if isinstance(labelled, int) else 1
    if not is_number or not 0 < labelled <= most:  # type: ignore[operator]
        needs = f"needs a number of rows, 1 to {total:,} (an int), or a part of them, up to 1.0 (a float)"
        raise ArgumentError("labelled", labelled, needs)
