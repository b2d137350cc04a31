from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from unweave.metrics.solvers.threshold_accuracy import threshold_accuracy


def brute_force_accuracy(x, labels, classes):
    """Every choice of K - 1 cuts and of a class for each interval."""
    cuts = np.concatenate([[-np.inf], (np.unique(x)[1:] + np.unique(x)[:-1]) / 2])
    best = 0.0
    for chosen in combinations_with_replacement(cuts, classes - 1):
        interval = np.searchsorted(np.array(chosen), x)
        for assigned in product(range(classes), repeat=classes):
            predicted = np.array(assigned)[interval]
            recalls = [np.mean(predicted[labels == k] == k) for k in range(classes)]
            best = max(best, float(np.mean(recalls)))
    return best


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [2, 3])
def test_thresholds_are_the_best_there_are(classes, seed):
    random = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), random.integers(0, classes, 9)])
    x = np.sort(random.integers(0, 7, len(labels)) + 0.0)
    assert threshold_accuracy(x, labels, classes) == pytest.approx(brute_force_accuracy(x, labels, classes))
