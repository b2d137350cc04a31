"""NumPy arrays by what they hold, and a user's values as arrays or as plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unweave.errors import ArgumentError

AnyArray = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
SingleArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
ArrayLike = npt.ArrayLike


def as_array(value: object, argument: str, *, keep_types: bool = False) -> AnyArray:
    """``numpy.asarray`` with an error that names the argument.

    Parameters
    ----------
    value
        anything that NumPy makes an array of. What a mask hides counts as missing: None.
    argument
        the name that the error shows.
    keep_types
        leave the elements of lists as they are, where NumPy would make text of ``["a", 1]``.

    Examples
    --------
    >>> as_array([[1, 2], [3, 4]], "codes").shape
    (2, 2)
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        visible = np.ma.getdata(value).astype(object)
        visible[np.ma.getmaskarray(value)] = None
        return visible
    try:
        return np.asarray(value, dtype=object if keep_types and isinstance(value, list | tuple) else None)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentError(
            argument, type(value).__name__, f"cannot be converted to a numpy array ({error})"
        ) from error


def to_python(value: Any) -> Any:
    """NumPy scalars, also inside mappings, lists and tuples, as Python values; all else unchanged.

    Checks can then ask for an int or a float, and specs can be written to a file.

    Examples
    --------
    >>> to_python({"beta": np.float64(4), "steps": [np.int64(2)]})
    {'beta': 4.0, 'steps': [2]}
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {to_python(key): to_python(entry) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(to_python(entry) for entry in value)
    return value
