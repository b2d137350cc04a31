"""The binary matrix files of NORB: magic number, number of axes, sizes, data; all little endian.

Format: https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

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


def read_norb(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A whole matrix file (``.mat`` or ``.mat.gz``), which must have this shape and dtype."""
    return np.concatenate(list(stream_norb(path, shape, dtype)))


def stream_norb(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Iterator[npt.NDArray[Any]]:
    """A matrix file in blocks along its first axis. See :func:`read_norb`."""
    with open_binary(path) as stream:
        magic, axes = struct.unpack("<ii", read_exactly(path, stream, 8))
        if magic not in _TYPES or not 1 <= axes <= _MOST_AXES:
            raise DataError(f"{path}: not a NORB binary matrix (starts with {magic:#010x}, {axes} axes)")
        # At least three sizes are stored, also for a vector.
        stored = max(3, axes)
        sizes = struct.unpack(f"<{stored}i", read_exactly(path, stream, 4 * stored))
        found, kind = sizes[:axes], np.dtype(_TYPES[magic])
        if found != shape or kind != np.dtype(dtype):
            raise DataError(f"{path}: is {kind} {found}; expected {np.dtype(dtype)} {shape}")
        yield from read_blocks(path, stream, kind, shape)
