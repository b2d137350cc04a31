"""How well thresholds on one code classify the values of a factor."""

from __future__ import annotations

import numpy as np

from unweave.arrays import FloatArray, IntArray
from unweave.compiled import compiled


def threshold_accuracy(x: FloatArray, labels: IntArray, num_classes: int) -> float:
    """The best balanced accuracy of K - 1 thresholds: the mean over the K classes of the recall.

    The thresholds cut the line into at most K intervals, each of which predicts one class (a class may have none or
    several). Exact, by dynamic programming, in O(n K^2).

    Parameters
    ----------
    x
        (n,) the code, sorted.
    labels
        (n,) of 0 .. K - 1, each at least once.
    num_classes
        K.

    Returns
    -------
    float
        from 1 / K to 1.

    Examples
    --------
    >>> threshold_accuracy(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 0, 1, 1]), 2)
    1.0
    >>> threshold_accuracy(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 1, 0, 1]), 2)
    0.75
    """
    return float(_best_accuracy(x, labels, num_classes))


@compiled
def _best_accuracy(x: FloatArray, labels: IntArray, num_classes: int) -> float:
    """``best[s, k]`` is the highest sum of recalls so far with s + 1 intervals of which the last predicts class k."""
    recall = np.zeros(num_classes)  # what one point adds to that of its class
    for label in labels:
        recall[label] += 1.0
    recall = 1.0 / recall
    best = np.full((num_classes, num_classes), -np.inf)
    best[0] = 0.0
    before = np.empty(num_classes)
    for i in range(len(x)):
        if i > 0 and x[i] > x[i - 1]:
            for s in range(num_classes):
                before[s] = best[s].max()
            for s in range(1, num_classes):
                for k in range(num_classes):
                    best[s, k] = max(best[s, k], before[s - 1])
        for s in range(num_classes):
            best[s, labels[i]] += recall[labels[i]]
    return float(best.max() / num_classes)
