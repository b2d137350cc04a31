"""Arrays in HDF5 files, streamed: the array may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unweave.arrays import AnyArray
from unweave.errors import DataError
from unweave.files import check_regular
from unweave.optional import require
from unweave.progress import progress

_CHUNK = 1 << 26


def read_hdf5(path: Path, key: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> AnyArray:
    """Read a small array of an HDF5 file.

    Parameters
    ----------
    path
        the file.
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
    >>> import h5py
    >>> with h5py.File("labels.h5", "w") as file:
    ...     file["labels"] = np.array([0.5, 1.0])
    >>> read_hdf5(Path("labels.h5"), "labels", (2,), np.float64)
    array([0.5, 1. ])
    """
    with _open_array(path, key, shape, dtype) as array:
        return np.asarray(array[()])


def stream_hdf5(path: Path, key: str, dtype: npt.DTypeLike, out: AnyArray) -> None:
    """Copy the array ``key``, which must have the shape of ``out``, block by block along its first axis.

    Examples
    --------
    >>> import h5py
    >>> with h5py.File("images.h5", "w") as file:
    ...     file["images"] = np.full((3, 2, 2), 7, np.uint8)
    >>> out = np.zeros((3, 2, 2), np.uint8)
    >>> stream_hdf5(Path("images.h5"), "images", np.uint8, out)
    >>> int(out.min())
    7
    """
    n, shape = len(out), out.shape
    with (
        _open_array(path, key, shape, dtype) as array,
        progress(f"Reading {path.name}", n, "images") as advance,
    ):
        row = int(np.prod(shape[1:], dtype=np.int64)) * array.dtype.itemsize
        step = max(1, _CHUNK // row)
        # Whole chunks of the file at a time: each is then unpacked only once.
        if array.chunks:
            step = max(1, round(step / array.chunks[0])) * array.chunks[0]
        for start in range(0, n, step):
            block = array[start : start + step]
            out[start : start + len(block)] = block
            advance(len(block))


@contextmanager
def _open_array(path: Path, key: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Iterator[Any]:
    h5py = require("h5py", "hdf5", "an HDF5 file")
    check_regular(path)
    try:
        with h5py.File(path, "r") as file:
            array = file.get(key)
            if not isinstance(array, h5py.Dataset):
                raise DataError(f"{path}: has no array {key!r}, only {sorted(file)}")
            if array.shape != shape or array.dtype.newbyteorder("=") != np.dtype(dtype):
                expected = f"{np.dtype(dtype)} {shape}"
                raise DataError(f"{path}: array {key!r} is {array.dtype} {array.shape}; expected {expected}")
            yield array
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise DataError(f"{path}: not a complete HDF5 file ({error})") from error
