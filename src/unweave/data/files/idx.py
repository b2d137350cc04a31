"""The IDX files of MNIST: two zeros, type, number of axes, sizes, data; all big endian."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unweave.data.files.binary import open_binary, read_blocks, read_exactly
from unweave.errors import DataError

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike = np.uint8) -> npt.NDArray[Any]:
    """The array of an IDX file (gzipped or not), which must have this shape and dtype."""
    with open_binary(path) as stream:
        zeros, kind, axes = struct.unpack(">HBB", read_exactly(path, stream, 4))
        if zeros or kind not in _TYPES:
            raise DataError(f"{path}: not an IDX file (starts with {zeros:#06x}, type {kind:#04x})")
        found = struct.unpack(f">{axes}i", read_exactly(path, stream, 4 * axes))
        stored, wanted = np.dtype(_TYPES[kind]), np.dtype(dtype)
        if found != shape or stored.newbyteorder("=") != wanted:
            raise DataError(f"{path}: is {stored.name} {found}; expected {wanted} {shape}")
        return np.concatenate(list(read_blocks(path, stream, stored, shape))).astype(wanted, copy=False)
