"""Equal values in the codes that `unweave.metrics.boosting` learns from, compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unweave.metrics.compiled import compiled

Values = npt.NDArray[np.float32]
Order = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]

CLOSE = np.float32(1e-7)  # values that are no further apart are not split


@compiled
def longest_ties(values: Values, order: Order) -> Labels:
    """How many sorted values in a row are each no further than CLOSE from the one before, at most; (D,)."""
    longest = np.ones(len(values), np.int64)
    for f in range(len(values)):
        run = 1
        for p in range(1, values.shape[1]):
            run = run + 1 if values[f, order[f, p]] <= values[f, order[f, p - 1]] + CLOSE else 1
            longest[f] = max(longest[f], run)
    return longest


@compiled
def have_ties(values: Values, order: Order, point: Labels) -> Flags:
    """For each code whether different points have one value of it; (D,). ``point`` (n,) is equal for equal points."""
    tied = np.zeros(len(values), np.uint8)
    for f in range(len(values)):
        for p in range(1, values.shape[1]):
            i, j = order[f, p - 1], order[f, p]
            tied[f] |= values[f, i] == values[f, j] and point[i] != point[j]
    return tied


@compiled
def sort_as_scikit_learn(keys: Values, samples: Order, a: int, b: int) -> None:
    """Sort keys and samples from a to b by key, in place, equal keys in the order in which scikit-learn leaves them.

    Quicksort in three parts around the median of the first, middle and last key, insertion sort for 15 or fewer.
    (Many poor divisions in a row would make scikit-learn go on with a heap. Equal keys are no reason for them.)
    """
    while b - a > 15:
        first, second, third = keys[a], keys[a + (b - a) // 2], keys[b - 1]
        pivot = max(min(first, second), min(max(first, second), third))
        low, high, i = a, b, a
        while i < high:  # no branches: they would be guessed wrong too often
            key, sample = keys[i], samples[i]
            is_low, is_high = key < pivot, key > pivot
            high -= is_high
            j = low if is_low else (high if is_high else i)
            keys[i], samples[i] = keys[j], samples[j]
            keys[j], samples[j] = key, sample
            low += is_low
            i += not is_high
        sort_as_scikit_learn(keys, samples, a, low)
        a = high
    for i in range(a + 1, b):
        key, sample = keys[i], samples[i]
        j = i
        while j > a and keys[j - 1] > key:
            keys[j], samples[j] = keys[j - 1], samples[j - 1]
            j -= 1
        keys[j], samples[j] = key, sample
