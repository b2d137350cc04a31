"""Factors as a file gives them, checked: what is wrong is said of the file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unweave.data.factors import FactorArray, FactorSpace
from unweave.errors import ArgumentError, DataError


def checked_factors(where: object, space: FactorSpace, factors: npt.ArrayLike) -> FactorArray:
    """The factors (n, K) as an array of the space; ``where`` names the file in errors."""
    try:
        return space.check(factors)
    except ArgumentError as error:
        raise DataError(f"{where}: {error}") from error


def check_grid(where: object, space: FactorSpace, factors: npt.ArrayLike) -> None:
    """Refuse factors (n, K) that are not the full grid of the space in C order."""
    rows = space.rows(checked_factors(where, space, factors))
    if not np.array_equal(rows, np.arange(len(space))):
        raise DataError(f"{where}: the factors are not the full grid {space.sizes} in order")


def ranks(where: object, space: FactorSpace, values: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Each column of values (n, K) as the rank of its value among those of the column, 0, 1, …"""
    if not np.isfinite(values).all():
        raise DataError(f"{where}: factors are NaN or infinite; expected finite values")
    out = np.empty(values.shape, np.int64)
    for column, name in enumerate(space.names):
        distinct, inverse = np.unique(values[:, column], return_inverse=True)
        size = space.size(name)
        if len(distinct) != size:
            raise DataError(f"{where}: factor {name!r} has {len(distinct)} values; expected {size}")
        out[:, column] = inverse.reshape(-1)
    return out
