"""Factors read from a file, checked: errors name the file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unweave.data.factors import FactorArray, FactorSpace
from unweave.errors import ArgumentError, DataError


def checked_factors(name: object, space: FactorSpace, factors: npt.ArrayLike) -> FactorArray:
    """The factors (n, K) as an array of the space; ``name`` is that of the file in errors.

    Examples
    --------
    >>> space = FactorSpace(["shape", "size"], [3, 2])
    >>> checked_factors("labels.csv", space, [[2, 0], [0, 1]]).shape
    (2, 2)
    """
    try:
        return space.check(factors)
    except ArgumentError as error:
        raise DataError(f"{name}: {error}") from error


def check_grid(name: object, space: FactorSpace, factors: npt.ArrayLike) -> None:
    """Refuse factors (n, K) that are not the full grid of the space in C order.

    Examples
    --------
    >>> space = FactorSpace(["shape", "size"], [2, 2])
    >>> check_grid("labels.csv", space, [[0, 0], [0, 1], [1, 0], [1, 1]])
    """
    rows = space.rows(checked_factors(name, space, factors))
    if not np.array_equal(rows, np.arange(len(space))):
        raise DataError(f"{name}: the factors are not the full grid {space.sizes} in order")


def ranks(name: object, space: FactorSpace, values: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Each column of values (n, K) as the rank of its value among those of the column, 0, 1, …

    Examples
    --------
    >>> space = FactorSpace(["angle"], [3])
    >>> ranks("labels.csv", space, np.array([[30.0], [10.0], [20.0]])).ravel()
    array([2, 0, 1])
    """
    if not np.isfinite(values).all():
        raise DataError(f"{name}: factors are NaN or infinite; expected finite values")
    out = np.empty(values.shape, np.int64)
    for column, factor in enumerate(space.names):
        distinct, inverse = np.unique(values[:, column], return_inverse=True)
        size = space.size(factor)
        if len(distinct) != size:
            raise DataError(f"{name}: factor {factor!r} has {len(distinct)} values; expected {size}")
        out[:, column] = inverse.reshape(-1)
    return out
