"""Regression trees for `unweave.metrics.solvers.boosting`, compiled.

Sums are accumulated in scikit-learn's order (see `boosting`), which is why samples are kept in the order in which
its own tree builder would have left them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unweave.metrics.solvers.boosting_split import SLACK, best_split
from unweave.metrics.solvers.boosting_ties import sums_are_known, total_is_known
from unweave.metrics.solvers.compiled import compiled

Array = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]
Order = npt.NDArray[np.uint32]
Nodes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PURE = np.finfo(np.float64).eps  # a node whose variance is no larger is a leaf


@compiled
def grow_tree(
    values: Values,
    longest_tie: Labels,
    is_tied: Flags,
    order: Order,
    lower: Order,
    y: Array,
    seed: int,
    samples: Order,
    leaf: Flags,
    is_left: Flags,
    feature: Nodes,
    threshold: Array,
    importances: Array,
) -> None:
    """A regression tree of depth 3 on ``y`` (n,).

    ``lower`` (2, D, n) holds the orders below the root. Fills ``feature``, ``threshold`` and the ``leaf`` of each
    sample, and adds to ``importances``.

    The order of equal values decides the last bits of sums, and these decide only between splits that are equally
    good and whether a node is pure. So a tree is grown with any such order first. If that is not enough it is grown
    once more with scikit-learn's order in the root and its children, which all nodes below inherit, and in the node
    where it was missed; then, if need be, in all.
    """
    gains = np.zeros(len(values))
    parts = values, longest_tie, order, lower, y, seed, samples, leaf, is_left, feature, threshold, gains
    careful = np.full(15, not is_tied.any())
    missed = _grow(is_tied, careful, *parts)
    while missed >= 0:
        careful[:] = careful[0]
        careful[:3] = careful[missed] = True
        gains[:] = 0.0
        feature[:] = -1
        missed = _grow(is_tied, careful, *parts)
    importances += gains


@compiled
def _grow(
    is_tied: Flags,
    careful: Bools,
    values: Values,
    longest_tie: Labels,
    order: Order,
    lower: Order,
    y: Array,
    seed: int,
    samples: Order,
    leaf: Flags,
    is_left: Flags,
    feature: Nodes,
    threshold: Array,
    importances: Array,
) -> int:
    """Grow the tree node by node, left before right, with scikit-learn's order of equal values where ``careful`` (15,).

    Returns -1, or the first other node with equally good splits between which that order may decide: by the sums over
    equal values, by the node's total or, if it is pure but for ``noise``, by its impurity. The last two come from the
    order in the node above.
    """
    latents, n = values.shape
    state = np.array([seed])
    expected, weight = np.empty(n), np.empty(n)
    keys, ties = np.empty(n, np.float32), np.empty(n, np.int64)
    features = np.arange(latents)  # their random order carries over from node to node
    constants = np.empty(latents, np.int64)
    start, end, known = np.zeros(15, np.int64), np.zeros(15, np.int64), np.zeros(15, np.int64)
    drawn = np.zeros(15, np.int64)  # the feature by which each node's samples were sorted last
    impurity, noise = np.zeros(15), np.zeros(15)
    stack = np.zeros(15, np.int64)
    height = 1
    end[0] = n
    for i in range(n):
        samples[i] = i
    while height > 0:
        height -= 1
        node = int(stack[height])
        above = (node - 1) // 2
        a, b = start[node], end[node]
        count = b - a
        depth = 0 if node == 0 else (1 if node < 3 else (2 if node < 7 else 3))
        best, middle = -1, a
        if depth < 3 and count > 1:
            summed, squares = 0.0, 0.0
            for p in range(a, b):
                summed += y[samples[p]]
                squares += y[samples[p]] * y[samples[p]]
            if node == 0:
                impurity[0] = squares / count - (summed / count) * (summed / count)
            if impurity[node] > PURE:
                rows = order if depth == 0 else lower[depth - 1]
                for p in range(count - 1):
                    expected[p] = (p + 1) * (summed / count)
                    weight[p] = 1.0 / (p + 1) + 1.0 / (count - 1 - p)
                best, middle, varying, drawn[node], is_clear = best_split(
                    values, longest_tie, is_tied, careful[node], rows, a, b, y, summed, expected, weight, state,
                    features, constants, known[node], samples, keys, ties,
                )  # fmt: skip
                if not (careful[node] or is_clear):
                    if not sums_are_known(values, rows, features[varying:], a, b, y):
                        return node
                    if node > 0 and not careful[above]:
                        parents = order if depth == 1 else lower[depth - 2]
                        row = parents[drawn[above], start[above] : end[above]]
                        split = values[feature[above]], threshold[above], node % 2 == 1
                        if impurity[node] < noise[node] or not total_is_known(
                            values[drawn[above]], row, *split, y
                        ):
                            return node
        if best >= 0:
            before, after = rows[best, middle - 1], rows[best, middle]
            cut = values[best, before] / 2.0 + values[best, after] / 2.0
            _partition_samples(samples, a, b, values[best], cut)
            below_left, below_right = _impurities(y, samples, a, middle, b, summed, squares)
            n_left, n_right = middle - a, b - middle
            gain = impurity[node] - n_right / count * below_right - n_left / count * below_left
            if count / n * gain + PURE < 0.0:
                best = -1
        if best < 0:
            for p in range(a, b):
                leaf[samples[p]] = node
            continue
        feature[node], threshold[node] = best, cut
        importances[best] += (count * impurity[node] - n_left * below_left - n_right * below_right) / n
        if depth < 2:
            _partition_orders(rows, lower[depth], a, middle, b, best, features[varying:], is_left)
        one, other = 2 * node + 1, 2 * node + 2
        start[one], end[one], start[other], end[other] = a, middle, middle, b
        known[one] = known[other] = varying
        impurity[one], impurity[other] = below_left, below_right
        noise[one], noise[other] = SLACK * squares / n_left, SLACK * squares / n_right
        stack[height], stack[height + 1] = other, one
        height += 2
    return -1


@compiled
def _partition_samples(samples: Order, a: int, b: int, x: Values, cut: float) -> None:
    """Samples at or below the cut first; the others change places with the last ones."""
    while a < b:
        if x[samples[a]] <= cut:
            a += 1
        else:
            b -= 1
            samples[a], samples[b] = samples[b], samples[a]


@compiled
def _impurities(
    y: Array, samples: Order, a: int, middle: int, b: int, summed: float, squares: float
) -> tuple[float, float]:
    """The variances of y left and right of the split, given the sums of y and y^2; y is summed on the shorter side."""
    if middle - a <= b - middle:
        left = 0.0
        for p in range(a, middle):
            left += y[samples[p]]
    else:
        left = summed
        for p in range(b - 1, middle - 1, -1):
            left -= y[samples[p]]
    squares_left = 0.0
    for p in range(a, middle):
        squares_left += y[samples[p]] * y[samples[p]]
    mean_left, mean_right = left / (middle - a), (summed - left) / (b - middle)
    below_left = squares_left / (middle - a) - mean_left * mean_left
    below_right = (squares - squares_left) / (b - middle) - mean_right * mean_right
    return below_left, below_right


@compiled
def _partition_orders(
    rows: Order, below: Order, a: int, middle: int, b: int, best: int, features: Labels, is_left: Flags
) -> None:
    """Hand the order of each feature down to the two children, which have a .. middle and middle .. b."""
    for p in range(a, b):
        is_left[rows[best, p]] = 1 if p < middle else 0
    for f in features:
        target = below[f]
        one, other = a, middle
        for i in rows[f, a:b]:
            side = is_left[i]
            target[one if side else other] = i
            one += side
            other += 1 - side
