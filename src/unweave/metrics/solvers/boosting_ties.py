"""Equal values in the codes that `unweave.metrics.solvers.boosting` learns from, compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unweave.metrics.solvers.compiled import compiled

Array = npt.NDArray[np.float64]
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
def sums_are_known(values: Values, rows: Order, features: Labels, a: int, b: int, y: Array) -> bool:
    """Whether samples a .. b with equal values of one of ``features`` have equal ``y``: then all orders sum alike."""
    for f in features:
        for p in range(a + 1, b):
            i, j = rows[f, p - 1], rows[f, p]
            if values[f, i] == values[f, j] and y[i] != y[j]:
                return False
    return True


@compiled
def total_is_known(x: Values, row: Order, split: Values, cut: float, is_left: bool, y: Array) -> bool:
    """Whether the sum of ``y`` over one child of a node is the same for every order of equal values in the node.

    ``row`` are the node's samples by the feature ``x`` that was drawn last; those with ``split`` (n,) at or below
    ``cut`` go left. The partition looks at nothing but the side of each sample: where equal values take the same
    side, another order of them only makes them change places.
    """
    for p in range(1, len(row)):
        i, j = row[p - 1], row[p]
        if x[i] == x[j]:
            side = split[i] <= cut
            if side != (split[j] <= cut) or (side == is_left and y[i] != y[j]):
                return False
    return True


@compiled
def count_ties(x: Values, row: Order, a: int, b: int, ties: Labels) -> int:
    """Set ``ties`` to how many of the sorted samples from a up to each have the value before them. How many in all."""
    ties[a] = 0
    for p in range(a + 1, b):
        ties[p] = ties[p - 1] + (x[row[p]] == x[row[p - 1]])
    return int(ties[b - 1])


@compiled
def sort_as_scikit_learn(keys: Values, samples: Order, a: int, b: int, row: Order, ties: Labels) -> None:
    """Sort samples from a to b by key, in place, equal keys in the order in which scikit-learn leaves them.

    Quicksort in three parts around the median of the first, middle and last key, insertion sort for 15 or fewer.
    (Many poor divisions in a row would make scikit-learn go on with a heap. Equal keys are no reason for them.)
    ``row`` are the samples with equal keys in any order and ``ties`` counts these: parts without equal keys are
    copied from there.
    """
    while b > a and ties[b - 1] > ties[a]:
        if b - a <= 15:
            for i in range(a + 1, b):
                key, sample = keys[i], samples[i]
                j = i
                while j > a and keys[j - 1] > key:
                    keys[j], samples[j] = keys[j - 1], samples[j - 1]
                    j -= 1
                keys[j], samples[j] = key, sample
            return
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
        sort_as_scikit_learn(keys, samples, a, low, row, ties)
        a = high
    samples[a:b] = row[a:b]
