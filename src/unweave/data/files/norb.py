"""The binary matrix files of NORB: magic number, number of axes, sizes, data; all little endian.

Format: https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unweave.arrays import AnyArray
from unweave.data.files.binary import open_binary, read_blocks, read_exactly
from unweave.errors import DataError

_TYPES = {
    0x1E3D4C51: "<f4",
    0x1E3D4C53: "<f8",
    0x1E3D4C54: "<i4",
    0x1E3D4C55: "u1",  # unsigned: read as int8, every bright pixel turns dark
    0x1E3D4C56: "<i2",
}
_MOST_AXES = 8


def read_norb(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> AnyArray:
    """Read a whole matrix file (``.mat`` or ``.mat.gz``).

    Parameters
    ----------
    path
        the file.
    shape, dtype
        what the file must hold.

    Returns
    -------
    array
        of this shape and dtype.

    Examples
    --------
    >>> header = np.array([0x1E3D4C55, 1, 3, 1, 1], "<i4").tobytes()
    >>> Path("categories.mat").write_bytes(header + bytes([4, 0, 200]))
    23
    >>> read_norb(Path("categories.mat"), (3,), np.uint8)
    array([  4,   0, 200], dtype=uint8)
    """
    return np.concatenate(list(stream_norb(path, shape, dtype)))


def stream_norb(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Iterator[AnyArray]:
    """Read a matrix file in blocks along its first axis. The parameters are those of :func:`read_norb`.

    Examples
    --------
    >>> header = np.array([0x1E3D4C55, 1, 3, 1, 1], "<i4").tobytes()
    >>> Path("categories.mat").write_bytes(header + bytes([4, 0, 200]))
    23
    >>> sum(len(block) for block in stream_norb(Path("categories.mat"), (3,), np.uint8))
    3
    """
    with open_binary(path) as stream:
        magic, axes = struct.unpack("<ii", read_exactly(path, stream, 8))
        if magic not in _TYPES or not 1 <= axes <= _MOST_AXES:
            raise DataError(f"{path}: not a NORB binary matrix (starts with {magic:#010x}, {axes} axes)")
        # At least three sizes are stored, also for a vector.
        stored = max(3, axes)
        sizes = struct.unpack(f"<{stored}i", read_exactly(path, stream, 4 * stored))
        actual, kind = sizes[:axes], np.dtype(_TYPES[magic])
        if actual != shape or kind != np.dtype(dtype):
            raise DataError(f"{path}: is {kind} {actual}; expected {np.dtype(dtype)} {shape}")
        yield from read_blocks(path, stream, kind, shape)
