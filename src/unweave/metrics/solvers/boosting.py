"""Gradient boosted trees for classification (Friedman, 2001), fast enough to score every trained model.

The learner is scikit-learn's GradientBoostingClassifier with its default settings: 100 rounds of one regression
tree of depth 3 per class (one in all for two classes) on the gradient of the deviance, Newton steps in the leaves,
shrinkage 0.1. Its rules are followed to the last bit wherever they decide between equals: codes in single
precision, features tried in the same random order, equal values of a code in the order in which its sort (that of
release 1.9) leaves them, sums added up in the same order. So the trees are the same.

What makes it fast: each code is sorted once and the order is handed down the tree (scikit-learn sorts anew in every
node; here only trees in which the order of equal values can decide between equally good splits do), candidate splits
are screened with multiplications only, and factors are fitted in parallel.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import logit
from scipy.stats import gmean

from unweave.errors import ArgumentError
from unweave.metrics.solvers.boosting_leaves import (
    add_trees,
    binary_residual,
    multinomial_residual,
    set_leaves,
)
from unweave.metrics.solvers.boosting_ties import have_ties, longest_ties
from unweave.metrics.solvers.boosting_tree import grow_tree

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Values = npt.NDArray[np.float32]
Order = npt.NDArray[np.uint32]

ROUNDS = 100
LEARNING_RATE = 0.1
DEPTH = 3


@dataclass(frozen=True)
class BoostedTrees:
    """A fitted classifier for one factor, and the classes ``fitted`` (n,) that it gives the points it saw.

    ``importances`` (D,): the decrease of squared error that the splits on each code brought, summed over all trees
    and scaled to sum to 1; zeros if no tree has a split. Trees are heaps: the children of node j are 2j + 1 and
    2j + 2, ``feature`` is -1 in a leaf; arrays are (rounds, trees per round, 15).
    """

    classes: Labels
    prior: Array
    importances: Array
    fitted: Labels
    feature: npt.NDArray[np.int32]
    threshold: Array
    value: Array

    def decision(self, codes: Array) -> Array:
        """The sum of the trees at ``codes`` (n, D): (trees per round, n)."""
        values = single_precision(codes)
        total = np.repeat(self.prior[:, None], len(codes), axis=1)
        add_trees(total, values, self.feature, self.threshold, self.value, LEARNING_RATE)
        return total

    def predict(self, codes: Array) -> Labels:
        """The likeliest class for each of ``codes`` (n, D): (n,)."""
        if len(self.classes) == 1:
            return np.repeat(self.classes, len(codes))
        return self.classes[_highest(self.decision(codes))]


def boost_factors(
    codes: Array, factors: npt.NDArray[np.int64], seed: int = 0, rounds: int = ROUNDS
) -> list[BoostedTrees]:
    """One classifier for each column of ``factors`` (n, K) from ``codes`` (n, D).

    ``seed`` decides between equally good splits; all factors draw from one stream, in order, as they do in
    disentanglement_lib. A factor with one value gets a classifier without trees, which always names it.
    """
    random = np.random.RandomState(seed)  # the stream that scikit-learn draws from
    values = single_precision(codes)
    order = np.argsort(values, axis=1, kind="stable").astype(np.uint32)
    point = np.unique(values, axis=1, return_inverse=True)[1].ravel()
    jobs = []
    for column in factors.T:
        classes, labels = np.unique(column, return_inverse=True)
        trees = len(classes) if len(classes) > 2 else len(classes) - 1
        seeds = random.randint(0, 2**31 - 1, size=(rounds, trees))
        jobs.append((values, order, point * len(classes) + labels, classes, labels, seeds))
    with ThreadPoolExecutor(min(len(jobs), _processors())) as pool:
        # Long jobs first: the last one to start should be a short one.
        longest = sorted(range(len(jobs)), key=lambda j: -jobs[j][-1].size)
        futures = {j: pool.submit(_boost, *jobs[j]) for j in longest}
        return [futures[j].result() for j in range(len(jobs))]


def single_precision(codes: Array) -> Values:
    """``codes`` (n, D) as the trees see them: (D, n), rounded to float32."""
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(codes.T, dtype=np.float32)
    if not np.isfinite(values).all():
        raise ArgumentError("codes", float(np.abs(codes).max()), "trees need numbers below 3.4e38")
    return values


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _boost(
    values: Values, order: Order, point: Labels, classes: Labels, labels: Labels, seeds: Labels
) -> BoostedTrees:
    """Fit one factor.

    ``values`` (D, n), ``order`` (D, n) the argsort of its rows, ``point`` (n,) equal for equal codes and labels,
    ``seeds`` (rounds, trees).
    """
    (rounds, trees), (latents, n) = seeds.shape, values.shape
    shape = (rounds, trees, 2 ** (DEPTH + 1) - 1)
    feature, threshold, value = np.full(shape, -1, dtype=np.int32), np.zeros(shape), np.zeros(shape)
    importances = np.zeros(latents)
    prior = _prior(labels, len(classes))
    if trees == 0:
        return BoostedTrees(classes, prior, importances, classes[labels], feature, threshold, value)
    total = np.repeat(prior[:, None], n, axis=1)
    residual = np.empty_like(total)
    # Two classes share one tree, which is that of class 1.
    is_member = (labels == (np.arange(trees)[:, None] if trees > 1 else 1)).astype(np.uint8).reshape(trees, n)
    scale = (trees - 1) / trees if trees > 1 else 1.0
    ties = longest_ties(values, order)
    is_tied = have_ties(values, order, point)
    lower = np.empty((DEPTH - 1, latents, n), dtype=np.uint32)
    samples, leaf, is_left = np.empty(n, np.uint32), np.empty(n, np.uint8), np.empty(n, np.uint8)
    for t in range(rounds):
        if trees > 1:
            multinomial_residual(total, labels, residual)
        else:
            binary_residual(total, labels, residual)
        for k in range(trees):
            tree = feature[t, k], threshold[t, k], importances
            grow_tree(
                values, ties, is_tied, order, lower, residual[k], seeds[t, k], samples, leaf, is_left, *tree
            )
            set_leaves(residual[k], is_member[k], scale, leaf, LEARNING_RATE, value[t, k], total[k])
    summed = importances.sum()
    if summed > 0:
        importances /= summed
    return BoostedTrees(classes, prior, importances, classes[_highest(total)], feature, threshold, value)


def _highest(total: Array) -> Labels:
    """The class of the highest tree sum; of a single one, class 1 unless it is negative. ``total`` is (trees, n)."""
    picked: Labels = np.argmax(total, axis=0) if len(total) > 1 else (total[0] >= 0).astype(np.int64)
    return picked


def _prior(labels: Labels, classes: int) -> Array:
    """The log odds of the second of two classes (1,), else the centred log frequency of each (classes,)."""
    tiny = np.finfo(np.float64).eps
    frequency = np.clip(np.bincount(labels, minlength=classes) / len(labels), tiny, 1 - tiny)
    if classes == 2:
        return np.atleast_1d(logit(frequency[1]))
    centred: Array = np.log(frequency / gmean(frequency))
    return centred
