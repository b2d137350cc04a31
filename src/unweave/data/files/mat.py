"""MATLAB .mat files (up to version 7)."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import numpy.typing as npt

from unweave.arrays import AnyArray
from unweave.errors import DataError


def read_mat(data: bytes, name: str, key: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> AnyArray:
    """Read an array of a .mat file.

    Parameters
    ----------
    data
        the content of the file.
    name
        of the file in errors.
    key
        of the array in the file.
    shape, dtype
        what the file must hold.

    Returns
    -------
    array
        of this shape and dtype.

    Examples
    --------
    >>> from io import BytesIO
    >>> from scipy.io import savemat
    >>> file = BytesIO()
    >>> savemat(file, {"images": np.eye(2)})
    >>> read_mat(file.getvalue(), "faces.mat", "images", (2, 2), np.float64)
    array([[1., 0.],
           [0., 1.]])
    """
    from scipy.io import loadmat

    try:
        content = loadmat(BytesIO(data), variable_names=[key])  # type: ignore[arg-type]
    except Exception as error:  # the parser raises many kinds
        raise DataError(f"{name}: not a complete .mat file of version 7 or older ({error})") from error
    if key not in content:
        raise DataError(f"{name}: has no array {key!r}")
    array = np.asarray(content[key])
    if array.shape != shape or array.dtype.newbyteorder("=") != np.dtype(dtype):
        expected = f"{np.dtype(dtype)} {shape}"
        raise DataError(f"{name}: array {key!r} is {array.dtype} {array.shape}; expected {expected}")
    return array
