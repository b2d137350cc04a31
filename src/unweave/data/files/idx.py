"""The IDX files of MNIST: two zeros, type, number of axes, sizes, data; all big endian."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unweave.arrays import AnyArray
from unweave.data.files.binary import open_binary, read_blocks, read_exactly
from unweave.errors import DataError

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike = np.uint8) -> AnyArray:
    """Read an IDX file (gzipped or not).

    Parameters
    ----------
    path
        the file; a name that ends in ``.gz`` is unpacked.
    shape, dtype
        what the file must hold.

    Returns
    -------
    array
        of this shape and dtype, in the byte order of the machine.

    Examples
    --------
    >>> header = bytes([0, 0, 0x08, 1, 0, 0, 0, 3])
    >>> Path("labels.idx").write_bytes(header + bytes([7, 2, 1]))
    11
    >>> read_idx(Path("labels.idx"), (3,))
    array([7, 2, 1], dtype=uint8)
    """
    with open_binary(path) as stream:
        zeros, kind, axes = struct.unpack(">HBB", read_exactly(path, stream, 4))
        if zeros or kind not in _TYPES:
            raise DataError(f"{path}: not an IDX file (starts with {zeros:#06x}, type {kind:#04x})")
        actual = struct.unpack(f">{axes}i", read_exactly(path, stream, 4 * axes))
        stored, expected = np.dtype(_TYPES[kind]), np.dtype(dtype)
        if actual != shape or stored.newbyteorder("=") != expected:
            raise DataError(f"{path}: is {stored.name} {actual}; expected {expected} {shape}")
        return np.concatenate(list(read_blocks(path, stream, stored, shape))).astype(expected, copy=False)
