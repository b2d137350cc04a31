"""Arrays inside a page: compressed bytes, of weights and of all others, and where each array lies in them."""

from __future__ import annotations

import base64
import zlib
from typing import Any, Literal

import numpy as np

from unweave.arrays import AnyArray, ByteArray

Kind = Literal["f4", "i4", "u1", "q2"]

# Weights are whole multiples of a step per row, up to this many. 16 bits would allow 32,767; at STEPS a trained
# network's outputs are within some 1e-3, as with float16, and the bits that are left compress. Layers that divide by a
# deviation enlarge errors: networks with them have FINE_STEPS.
STEPS, FINE_STEPS = 1_770, 8_191


class ArrayBlock:
    """Arrays to be put into a page.

    Kinds are "f4", "i4" and "u1", as NumPy names them, and "q2" for weights: 16 bits each, as multiples of a step that
    every row (every first index) has for itself. The lower bytes of all weights come before all higher ones, of which
    there are few different ones.

    Examples
    --------
    >>> block = ArrayBlock()
    >>> block.add(np.zeros(3, np.float32)), block.add(np.ones((2, 2)), "q2")
    (0, 1)
    >>> block.entries
    [{'kind': 'f4', 'shape': [3], 'start': 0}, {'kind': 'q2', 'shape': [2, 2], 'start': 0, 'steps': 12}]
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._low: list[bytes] = []
        self._high: list[bytes] = []
        self._others: list[bytes] = []
        self._num_weights = self._size = 0

    def add(self, array: AnyArray, kind: Kind = "f4", num_steps: int = STEPS) -> int:
        """Put in an array; its number. ``num_steps`` is that of the largest weight of a row."""
        entry: dict[str, Any] = {"kind": kind, "shape": list(array.shape)}
        if kind == "q2":
            steps, low, high = _quantised(array, num_steps)
            entry |= {"start": self._num_weights, "steps": self._append(steps.tobytes())}
            self._low.append(low.tobytes())
            self._high.append(high.tobytes())
            self._num_weights += array.size
        else:
            entry["start"] = self._append(np.ascontiguousarray(array, f"<{kind}").tobytes())
        self.entries.append(entry)
        return len(self.entries) - 1

    def texts(self) -> tuple[str, str]:
        """The bytes of weights and those of all other arrays, compressed (raw deflate), in base64."""
        # Nothing in weights repeats: to search for it would only cost bits.
        weights = _packed([*self._low, *self._high], zlib.Z_HUFFMAN_ONLY)
        return weights, _packed(self._others, zlib.Z_DEFAULT_STRATEGY)

    def _append(self, data: bytes) -> int:
        """Put in bytes at a multiple of 4; where they begin."""
        start = self._size
        padded = data + b"\0" * (-len(data) % 4)
        self._others.append(padded)
        self._size += len(padded)
        return start


def _packed(parts: list[bytes], strategy: int) -> str:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15, 9, strategy)
    return base64.b64encode(deflate.compress(b"".join(parts)) + deflate.flush()).decode()


def _quantised(array: AnyArray, num_steps: int) -> tuple[AnyArray, ByteArray, ByteArray]:
    """The steps of the rows in single precision, and the lower and higher bytes of the multiples."""
    rows = np.asarray(array, np.float32).reshape(len(array), -1)
    largest = np.abs(rows).max(axis=1, initial=0)
    steps = np.where(largest > 0, largest / num_steps, 1).astype("<f4")
    multiples = np.rint(rows / steps[:, None]).astype("<i2").reshape(-1).view(np.uint8).reshape(-1, 2)
    return steps, multiples[:, 0].copy(), multiples[:, 1].copy()
