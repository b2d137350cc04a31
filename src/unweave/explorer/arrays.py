"""Arrays inside a page: one compressed block of bytes, and where each array lies in it."""

from __future__ import annotations

import base64
import zlib
from typing import Any, Literal

import numpy as np

from unweave.arrays import AnyArray

Kind = Literal["f4", "i4", "u1", "q2"]

# Weights are whole multiples of a step per row, up to this many: 16 bits with sign would allow 32,767. At 4,095 the
# error is that of float16, and the other bits are left to the compression.
STEPS = 4095


class ArrayBlock:
    """Arrays to be put into a page.

    Kinds are "f4", "i4" and "u1", as NumPy names them, and "q2" for weights: 16 bits each, as multiples of a step that
    every row (every first index) has for itself. The two bytes of a weight are apart, all lower ones before all higher
    ones, which compresses better.

    Examples
    --------
    >>> block = ArrayBlock()
    >>> block.add(np.zeros(3, np.float32)), block.add(np.ones((2, 2)), "q2")
    (0, 1)
    >>> block.entries[1]
    {'kind': 'q2', 'shape': [2, 2], 'start': 12}
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, array: AnyArray, kind: Kind = "f4") -> int:
        """Put in an array; its number."""
        data = _quantised(array) if kind == "q2" else np.ascontiguousarray(array, f"<{kind}").tobytes()
        self.entries.append({"kind": kind, "shape": list(array.shape), "start": self._size})
        self._parts.append(data)
        self._size += len(data)
        if self._size % 4:  # arrays of 4 bytes begin at multiples of 4
            self._parts.append(b"\0" * (-self._size % 4))
            self._size += -self._size % 4
        return len(self.entries) - 1

    def text(self) -> str:
        """All bytes, compressed (raw deflate), in base64."""
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
        return base64.b64encode(deflate.compress(b"".join(self._parts)) + deflate.flush()).decode()


def _quantised(array: AnyArray) -> bytes:
    """The steps of the rows in single precision, and the multiples."""
    rows = np.asarray(array, np.float32).reshape(len(array), -1)
    largest = np.abs(rows).max(axis=1, initial=0)
    steps = np.where(largest > 0, largest / STEPS, 1).astype(np.float32)
    multiples = np.rint(rows / steps[:, None]).astype("<i2").reshape(-1).view(np.uint8).reshape(-1, 2)
    return steps.astype("<f4").tobytes() + multiples[:, 0].tobytes() + multiples[:, 1].tobytes()
