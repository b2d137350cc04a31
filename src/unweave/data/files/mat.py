"""MATLAB .mat files (up to version 7)."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from unweave.errors import DataError


def read_mat(
    data: bytes, where: str, key: str, shape: tuple[int, ...], dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    """The array ``key`` of a .mat file given as bytes; ``where`` names the file in errors.

    ``shape`` and ``dtype`` are what the file must hold.
    """
    from scipy.io import loadmat

    try:
        content = loadmat(BytesIO(data), variable_names=[key])  # type: ignore[arg-type]
    except Exception as error:  # the parser raises whatever it stumbles over
        raise DataError(f"{where}: not a complete .mat file of version 7 or older ({error})") from error
    if key not in content:
        raise DataError(f"{where}: has no array {key!r}")
    array = np.asarray(content[key])
    if array.shape != shape or array.dtype.newbyteorder("=") != np.dtype(dtype):
        expected = f"{np.dtype(dtype)} {shape}"
        raise DataError(f"{where}: array {key!r} is {array.dtype} {array.shape}; expected {expected}")
    return array
