"""Checksums of the rows of an array."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from unweave.arrays import AnyArray, IntArray


def row_checksums(identity: str) -> Callable[[IntArray, AnyArray], AnyArray]:
    """A function from row numbers (n,) and rows (n, …) to a checksum (n,) of each, 32 bits.

    Multilinear hashing: sum_i k_i w_i mod 2^64, whose upper half is taken, over the 64-bit words w_i of a row and its
    number, with pseudorandom odd k_i that ``identity`` decides. A row that was cut, changed, moved to another number or
    taken from an array of another identity has another checksum, but for one case in four billion.

    Parameters
    ----------
    identity
        of the array.

    Examples
    --------
    >>> checksums = row_checksums("an array")
    >>> rows, content = np.array([0, 1]), np.array([[1, 2, 3], [1, 2, 0]], np.uint8)
    >>> first, second = checksums(rows, content)
    >>> bool(first == second), bool(first == checksums(rows[:1], content[:1])[0])
    (False, True)
    """
    seed = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:16], "little")
    keys = np.empty(0, np.uint64)

    def checksums(rows: IntArray, content: AnyArray) -> AnyArray:
        nonlocal keys
        words = _words(content)
        if len(keys) < words.shape[1] + 2:
            count = words.shape[1] + 2
            keys = np.random.default_rng(seed).integers(0, 2**64, count, np.uint64) | np.uint64(1)
        total = np.einsum("ij,j->i", words, keys[2 : words.shape[1] + 2])
        total += keys[0] + (rows.astype(np.uint64) + np.uint64(1)) * keys[1]
        result: AnyArray = (total >> np.uint64(32)).astype(np.uint32)
        return result

    return checksums


def _words(content: AnyArray) -> AnyArray:
    """Rows as 64-bit words (n, m), the last one filled up with zeros."""
    flat = np.ascontiguousarray(content).reshape(len(content), -1).view(np.uint8)
    rest = -flat.shape[1] % 8
    if rest:
        flat = np.pad(flat, ((0, 0), (0, rest)))
    return flat.view(np.uint64)
