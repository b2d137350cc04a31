"""The random stream of ``RandomState.randint``, many calls at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unweave.arrays import IntArray
from unweave.compiled import compiled
from unweave.errors import ArgumentError

Words = npt.NDArray[np.uint32]

_FEWEST_WORDS = 64


def randints(rng: np.random.RandomState, calls: Sequence[tuple[int, int]], repeats: int) -> IntArray:
    """What ``repeats`` rounds of ``rng.randint(size, size=n)`` for each (size, n) of ``calls`` give.

    Returns (repeats, sum of n), bit for bit, and leaves ``rng`` where those calls would leave it, so
    that other draws may come before and after. Needs sizes of 1 .. 2^32.

    The Mersenne twister gives words of 32 bits. ``randint`` takes the low bits of the next word, as many
    as size - 1 has, until the number is below ``size``; of one possible value it takes no word at all.
    Here the words are fetched in bulk. How many are needed is random: all but the last few fetches stay
    below the expected number, and what the last one has too many is given back.
    """
    if not all(1 <= size <= 2**32 for size, _ in calls):
        raise ArgumentError("calls", list(calls), "needs sizes of 1 .. 2^32")
    if repeats == 1:  # fetching in bulk would be the slower way
        return np.concatenate([rng.randint(size, size=n) for size, n in calls])[None]
    sizes = np.array([size for size, _ in calls], dtype=np.int64)
    counts = np.array([count for _, count in calls], dtype=np.int64)
    limits = (sizes - 1).astype(np.uint32)
    masks = np.array([2 ** int(limit).bit_length() - 1 for limit in limits], dtype=np.uint32)
    ends = np.cumsum(counts)
    words_per_number = np.where(limits > 0, (masks + 1.0) / sizes, 0.0)
    words_per_round = float(words_per_number @ counts)
    numbers = np.empty((repeats, int(counts.sum())), dtype=np.int64)
    out = numbers.reshape(-1)
    filled = 0
    while filled < out.size:
        expected = words_per_round * (1 - filled / out.size) * repeats
        fetched = max(_FEWEST_WORDS, int(expected - 4 * math.sqrt(expected)))
        before = rng.get_state()
        filled, used = _accept(_words(rng, fetched), limits, masks, ends, out, filled)
        if used < fetched:
            rng.set_state(before)
            _words(rng, used)
    return numbers


def _words(rng: np.random.RandomState, n: int) -> Words:
    """The next n words of the generator as they are."""
    return rng.randint(0, 2**32, size=n, dtype=np.uint32)


@compiled
def _accept(
    words: Words, limits: Words, masks: Words, ends: IntArray, out: IntArray, filled: int
) -> tuple[int, int]:
    """Fill ``out`` from position ``filled`` on, as far as ``words`` go: (filled, words used).

    ``ends`` (calls,) says where in a round each call's numbers end.
    """
    used = 0
    width = ends[-1]
    while filled < len(out):
        start = filled - filled % width
        call = np.searchsorted(ends, filled - start, side="right")
        end = start + ends[call]
        limit = limits[call]
        mask = masks[call]
        if limit == 0:
            out[filled:end] = 0
            filled = end
        while filled < end and used < len(words):
            word = words[used] & mask
            out[filled] = word
            filled += word <= limit  # a branch would be guessed wrong too often
            used += 1
        if filled < end:
            break
    return filled, used
