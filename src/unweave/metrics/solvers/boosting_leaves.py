"""Residuals, leaf values and predictions for `unweave.metrics.solvers.boosting`, compiled."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from unweave.metrics.solvers.compiled import compiled

Array = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]
Nodes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]


@compiled
def binary_residual(total: Array, labels: Labels, residual: Array) -> None:
    """y - sigmoid(total) for labels 0 and 1; ``total`` and ``residual`` are (1, n)."""
    for i in range(len(labels)):
        y = float(labels[i])
        if total[0, i] > -37.0:
            e = math.exp(-total[0, i])
            residual[0, i] = -(((1.0 - y) - y * e) / (1.0 + e))
        else:
            residual[0, i] = -(math.exp(total[0, i]) - y)


@compiled
def multinomial_residual(total: Array, labels: Labels, residual: Array) -> None:
    """[y = k] - softmax(total)_k for each class k; both (classes, n)."""
    classes, n = total.shape
    highest, summed = total[0].copy(), np.zeros(n)
    for k in range(1, classes):
        for i in range(n):
            highest[i] = max(highest[i], total[k, i])
    for k in range(classes):
        for i in range(n):
            e = math.exp(total[k, i] - highest[i])
            residual[k, i] = e
            summed[i] += e
    for k in range(classes):
        for i in range(n):
            residual[k, i] = -(residual[k, i] / summed[i] - (1.0 if labels[i] == k else 0.0))


@compiled
def set_leaves(
    residual: Array, is_member: Flags, scale: float, leaf: Flags, rate: float, value: Array, total: Array
) -> None:
    """Give each leaf of a tree its value and add ``rate`` times that to the ``total`` (n,) of its samples.

    The value is one Newton step: ``scale`` times the mean residual over the mean of p (1 - p). ``leaf`` (n,) is
    the node of each sample, ``is_member`` (n,) tells whether it belongs to the tree's class.
    """
    n = len(leaf)
    counts, starts, place = np.zeros(15, np.int64), np.zeros(15, np.int64), np.zeros(15, np.int64)
    for i in range(n):
        counts[leaf[i]] += 1
    for node in range(1, 15):
        starts[node] = starts[node - 1] + counts[node - 1]
        place[node] = starts[node]
    gradient, curvature = np.empty(n), np.empty(n)
    for i in range(n):
        p = is_member[i] - residual[i]
        gradient[place[leaf[i]]] = residual[i]
        curvature[place[leaf[i]]] = p * (1.0 - p)
        place[leaf[i]] += 1
    for node in range(15):
        if counts[node] > 0:
            a, b = starts[node], starts[node] + counts[node]
            numerator = _pairwise_sum(gradient[a:b]) / counts[node] * scale
            denominator = _pairwise_sum(curvature[a:b]) / counts[node]
            value[node] = numerator / denominator if abs(denominator) >= 1e-150 else 0.0
    for i in range(n):
        total[i] += rate * value[leaf[i]]


@compiled
def add_trees(
    total: Array, values: Values, feature: Nodes, threshold: Array, value: Array, rate: float
) -> None:
    """Add ``rate`` times the trees' values at ``values`` (D, n) to ``total`` (trees, n)."""
    tested, cut, held = np.empty(7, np.int64), np.empty(7), np.empty(15)
    for t in range(feature.shape[0]):
        for k in range(feature.shape[1]):
            # Below an early leaf, copies of it: so every sample takes three steps, without a branch.
            held[:] = value[t, k]
            for node in range(7):
                split = feature[t, k, node] >= 0
                tested[node] = feature[t, k, node] if split else 0
                cut[node] = threshold[t, k, node]
                if not split:
                    held[2 * node + 1] = held[2 * node + 2] = held[node]
            for i in range(values.shape[1]):
                node = 1 + (values[tested[0], i] > cut[0])
                node = 2 * node + 1 + (values[tested[node], i] > cut[node])
                node = 2 * node + 1 + (values[tested[node], i] > cut[node])
                total[k, i] += rate * held[node]


@compiled
def _pairwise_sum(x: Array) -> float:
    """The sum in numpy's order: halves down to blocks of 128, eight partial sums in a block."""
    n = len(x)
    if n > 128:
        half = n // 2 - n // 2 % 8
        return _pairwise_sum(x[:half]) + _pairwise_sum(x[half:])
    if n < 8:
        total = 0.0
        for i in range(n):
            total += x[i]
        return total
    r = x[:8].copy()
    end = n - n % 8
    for i in range(8, end, 8):
        for j in range(8):
            r[j] += x[i + j]
    total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
    for i in range(end, n):
        total += x[i]
    return float(total)
