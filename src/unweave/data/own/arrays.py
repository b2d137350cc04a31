"""A user's arrays are a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unweave.arrays import AnyArray, ArrayLike, IntArray, as_array
from unweave.data.dataset import Dataset, RowArray, from_grid, from_table
from unweave.data.factors import FactorArray, FactorSpace
from unweave.data.own.columns import factor_table
from unweave.errors import ArgumentError, unknown_name

_CHECKED_AT_A_TIME = 2**24  # numbers: bounds the memory of the search for NaN in a large file


def from_arrays(
    images: ArrayLike,
    factors: object = None,
    *,
    names: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    name: str = "arrays",
) -> Dataset:
    """A data set of the given images, with the factors that they show, if known.

    Parameters
    ----------
    images
        (n, H, W) or (n, H, W, C) bytes are images; any other numbers (n, …) are observations and come
        out as float32. Float images therefore need their channel axis and values in [0, 1].
        A numpy array, a memory map (neither is copied) or a torch tensor on the CPU.
    factors
        None; or an array (n,) or (n, K); or a mapping or data frame of columns (n,).
        What becomes discrete and what continuous: see :func:`unweave.data.own.columns.factor_table`.
        Combinations of values may be missing, or be shown by several images.
    names
        of the columns of a factor array (else factor_0, factor_1, …), or which columns of a mapping to use.
    categorical
        the factors whose values have no order; columns of text are categorical anyway.
    name
        of the data set.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> images = np.zeros((4, 8, 8), np.uint8)
    >>> uw.data.from_arrays(images, {"shape": ["ball", "cube", "cube", "ball"], "angle": [0.0, 0.5, 1.0, 1.7]})
    Dataset(arrays: 4 of 8x8x1; shape=2, angle=(0.0, 1.7))
    """
    array = observations(images, "images")
    columns = _columns(factors, names, len(array))
    space, table = factor_table(columns, categorical)
    return labelled(name, space, array, table)


def labelled(name: str, space: FactorSpace, array: RowArray, table: FactorArray) -> Dataset:
    """A data set of images with factors (n, K) by row, NaN where one is not known; a grid, where they are one."""
    if not space:
        return from_table(name, space, array, np.empty((len(array), 0), np.int64))
    whole = space.discrete and len(space) == len(array)
    if whole and np.array_equal(table, space.factors(np.arange(len(array)))):
        return from_grid(name, space, array)
    return from_table(name, space, array, table)


def observations(value: object, argument: str) -> RowArray:
    """Images (n, H, W, C) as bytes, or other observations (n, …) that are read as float32."""
    array = as_array(value, argument)
    dtype = observation_dtype(array, argument)
    refuse_channels_first(array.shape, argument)
    if len(array) == 0:
        raise ArgumentError(argument, f"array of shape {array.shape}", "needs at least one observation")
    if dtype == np.uint8:
        return array[..., None] if array.ndim == 3 else array
    _check_finite(array, argument)
    return array if array.dtype == dtype else _Float32Rows(array)


def observation_dtype(array: AnyArray, argument: str) -> np.dtype[Any]:
    """uint8 for images, that is bytes (n, H, W) or (n, H, W, C); float32 for any other numbers (n, …)."""
    if array.dtype.kind not in "biuf":
        raise ArgumentError(argument, f"array of dtype {array.dtype}", "needs numbers")
    if array.ndim < 2:
        raise ArgumentError(argument, f"array of shape {array.shape}", "needs shape (n, …), e.g. (n, 1)")
    if 0 in array.shape[1:]:
        raise ArgumentError(argument, f"array of shape {array.shape}", "observations are empty")
    is_image = array.dtype == np.uint8 and array.ndim in (3, 4)
    return np.dtype(np.uint8 if is_image else np.float32)


def refuse_channels_first(shape: tuple[int, ...], argument: str) -> None:
    """The error for images (n, C, H, W), as torch has them: all else here has the channels last."""
    if len(shape) == 4 and shape[1] in (1, 3) and min(shape[2:]) > 4:
        allowed = "channels come last, (n, H, W, C): transpose(0, 2, 3, 1) moves them there"
        raise ArgumentError(argument, f"array of shape {shape}", allowed)


class _Float32Rows:
    """An array whose rows are read as float32, so that a large file needs no converted copy."""

    def __init__(self, array: AnyArray) -> None:
        self.array = array
        self.shape = array.shape

    def __len__(self) -> int:
        return len(self.array)

    def take(self, indices: IntArray, axis: int) -> AnyArray:
        return self.array.take(indices, axis=axis).astype(np.float32)


@runtime_checkable
class _Frame(Protocol):
    """A data frame of any library."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: Any) -> Any: ...


def _columns(factors: object, names: Sequence[str] | None, n: int) -> dict[str, object]:
    if factors is None:
        if names is not None:
            raise ArgumentError("names", list(names), "there are no factors to name")
        return {}
    table = _named_columns(factors, names)
    for name, column in table.items():
        length = len(column) if isinstance(column, Sized) else None
        if length != n:
            shown = "one value" if length is None else f"{length} values"
            raise ArgumentError(f"factors[{name!r}]", shown, f"there are {n} images")
    return table


def _named_columns(factors: object, names: Sequence[str] | None) -> dict[str, Any]:
    if isinstance(factors, np.ndarray) and factors.dtype.names is not None:
        known: Mapping[str, Any] = {name: factors[name] for name in factors.dtype.names}
    elif isinstance(factors, Mapping):
        known = {str(name): column for name, column in factors.items()}
    elif isinstance(factors, _Frame):
        known = {str(name): factors[name] for name in factors.columns}
    else:
        return _array_columns(factors, names)
    for name in names or ():
        if name not in known:
            raise unknown_name("names", name, known)
    return {name: known[name] for name in (known if names is None else names)}


def _array_columns(factors: object, names: Sequence[str] | None) -> dict[str, Any]:
    array = as_array(factors, "factors", keep_types=True)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ArgumentError("factors", f"array of shape {array.shape}", "needs shape (n,) or (n, K)")
    if names is None:
        names = [f"factor_{column}" for column in range(array.shape[1])]
    if isinstance(names, str) or len(names) != array.shape[1]:
        raise ArgumentError("names", names, f"needs a list of {array.shape[1]} names, one for each column")
    if len(set(names)) != len(names):
        raise ArgumentError("names", list(names), "factor names must differ")
    return {name: array[:, column] for column, name in enumerate(names)}


def _check_finite(array: AnyArray, argument: str) -> None:
    rows = max(1, _CHECKED_AT_A_TIME * len(array) // array.size)
    for start in range(0, len(array) if array.dtype.kind == "f" else 0, rows):
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused
            block = array[start : start + rows].astype(np.float32, copy=False)
        finite = np.isfinite(block).reshape(len(block), -1).all(axis=1)
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise ArgumentError(f"{argument}, row {row}", "NaN or infinity", "needs finite numbers")
