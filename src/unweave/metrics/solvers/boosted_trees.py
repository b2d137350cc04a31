r"""Gradient boosted trees for classification (Friedman, 2001), as scikit-learn computes them.

For K classes there are K functions :math:`F_k`, each a sum of regression trees, and

.. math:: p_k(x) = e^{F_k(x)} / \sum_l e^{F_l(x)}, \qquad F_k(x) = F_{k0} + \nu \sum_t h_{tk}(x).

Round t fits the tree :math:`h_{tk}`, by least squares, to the negative gradient of the deviance, which is the residual
:math:`r_{ik} = [y_i = k] - p_k(x_i)`. A node with samples of sum S and number n is split where
:math:`S_l^2 / n_l + S_r^2 / n_r`, over its left and right part, is highest. The value of a leaf is then replaced by one
Newton step for the deviance,

.. math:: \gamma = \frac{K - 1}{K} \sum_{i \in leaf} r_{ik} \Big/ \sum_{i \in leaf} p_k(x_i) (1 - p_k(x_i)).

Two classes share one function, with :math:`p_1 = 1 / (1 + e^{-F})` and no factor before the step.

The settings are the defaults of scikit-learn's ``GradientBoostingClassifier``: 100 rounds, trees of depth 3,
:math:`\nu` = 0.1. Its rules are followed to the last bit wherever they decide between equals: codes in single
precision, features tried in the same random order, equal values of a code in the order in which its sort (that of
release 1.9) leaves them, sums added up in the same order. So the trees are the same.

What makes it fast: each code is sorted once and the order is passed down the tree (scikit-learn sorts anew in every
node; here only trees in which the order of equal values can decide between equally good splits do), candidate splits
are screened with multiplications only, and factors are fitted in parallel.

The file is in the order of the calls: boosting, one tree, one split, the order of equal values, residuals and leaves,
prediction.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unweave.arrays import BoolArray, ByteArray, FloatArray, IntArray, SingleArray
from unweave.compiled import compiled
from unweave.errors import ArgumentError
from unweave.processes import cores

Rows = npt.NDArray[np.uint32]  # indices of points

ROUNDS = 100
LEARNING_RATE = 0.1
DEPTH = 3

_NODES = 2 ** (DEPTH + 1) - 1
_INNER_NODES = 2**DEPTH - 1
_CLOSE = np.float32(1e-7)  # values that are no further apart are not split
_PURE = np.finfo(np.float64).eps  # a node whose variance is no larger is a leaf
_SLACK = 1e-11  # relative; far more than the rounding error of the screening


class Trees(NamedTuple):
    """Trees as heaps: the children of node j are 2j + 1 and 2j + 2. Arrays are (rounds, trees per round, 15)."""

    feature: npt.NDArray[np.int32]  # the code that a node tests; -1 in a leaf
    threshold: FloatArray  # points at or below it go left
    value: FloatArray  # of a leaf


@dataclass(frozen=True)
class BoostedTrees:
    """A classifier for one factor, fitted by :func:`fit_boosted_trees`.

    Attributes
    ----------
    classes
        (K,) the values of the factor.
    prior
        (trees per round,) what the trees are added to: the functions F_k0.
    importances
        (D,) the decrease of squared error that the splits on each code brought, summed over all trees and scaled to
        sum to 1; zeros if no tree has a split.
    fitted
        (n,) the classes predicted for the points of the fit.
    trees
        the trees of all rounds.

    Examples
    --------
    >>> codes = np.arange(10.0)[:, None]
    >>> model = fit_boosted_trees(codes, (codes > 4).astype(int), rounds=5)[0]
    >>> model.predict(np.array([[1.5], [8.0]]))
    array([0, 1])
    >>> model.decision(np.array([[1.5], [8.0]])).shape
    (1, 2)
    """

    classes: IntArray
    prior: FloatArray
    importances: FloatArray
    fitted: IntArray
    trees: Trees

    def decision(self, codes: FloatArray) -> FloatArray:
        """The functions F_k at ``codes`` (n, D): (trees per round, n)."""
        values = single_precision(codes)
        total = np.repeat(self.prior[:, None], len(codes), axis=1)
        _add_trees(total, values, self.trees)
        return total

    def predict(self, codes: FloatArray) -> IntArray:
        """The likeliest class for each of ``codes`` (n, D): (n,)."""
        if len(self.classes) == 1:
            return np.repeat(self.classes, len(codes))
        return self.classes[_likeliest(self.decision(codes))]


def fit_boosted_trees(
    codes: FloatArray, factors: IntArray, seed: int = 0, rounds: int = ROUNDS
) -> list[BoostedTrees]:
    """Fit gradient boosted trees (Friedman, 2001) that classify the values of each factor.

    The equations are in the docstring of this module.

    Parameters
    ----------
    codes
        (n, D), below 3.4e38.
    factors
        (n, K) whole numbers. A factor with one value gets a classifier without trees, which always predicts it.
    seed
        decides between equally good splits. All factors draw from one stream, in order, as in disentanglement_lib.
    rounds
        the number of trees for each class.

    Returns
    -------
    list of BoostedTrees
        one for each column of ``factors``.

    References
    ----------
    Friedman (2001). Greedy function approximation: a gradient boosting machine. Annals of Statistics 29(5).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(0, 3, (60, 2))
    >>> codes = np.hstack([factors, rng.normal(size=(60, 1))])
    >>> models = fit_boosted_trees(codes, factors, rounds=5)
    >>> [int(model.importances.argmax()) for model in models]
    [0, 1]
    """
    random = np.random.RandomState(seed)  # the stream that scikit-learn draws from
    values = single_precision(codes)
    order = np.argsort(values, axis=1, kind="stable").astype(np.uint32)
    longest_run = _longest_runs(values, order)
    point = np.unique(values, axis=1, return_inverse=True)[1].ravel()
    jobs = []
    for column in factors.T:
        classes, labels = np.unique(column, return_inverse=True)
        is_tied = _have_ties(values, order, point * len(classes) + labels)
        trees_per_round = len(classes) if len(classes) > 2 else len(classes) - 1
        seeds = random.randint(0, 2**31 - 1, size=(rounds, trees_per_round))
        jobs.append((_SortedCodes(values, order, longest_run, is_tied), classes, labels, seeds))
    with ThreadPoolExecutor(min(len(jobs), cores())) as pool:
        # Long jobs first: the last one to start should be a short one.
        longest_first = sorted(range(len(jobs)), key=lambda j: -jobs[j][-1].size)
        futures = {j: pool.submit(_fit_factor, *jobs[j]) for j in longest_first}
        return [futures[j].result() for j in range(len(jobs))]


def single_precision(codes: FloatArray) -> SingleArray:
    """Codes as trees see them: one row for each code, rounded to float32.

    Parameters
    ----------
    codes
        (n, D), below 3.4e38.

    Returns
    -------
    array
        (D, n).

    Examples
    --------
    >>> single_precision(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(codes.T, dtype=np.float32)
    if not np.isfinite(values).all():
        raise ArgumentError("codes", float(np.abs(codes).max()), "trees need numbers below 3.4e38")
    return values


class _SortedCodes(NamedTuple):
    """The points that the trees of a factor learn from."""

    values: SingleArray  # (D, n)
    order: Rows  # (D, n): the points sorted by each code
    longest_run: (
        IntArray  # (D,): the most sorted values in a row that are no further than _CLOSE from the one before
    )
    is_tied: (
        ByteArray  # (D,): whether points that differ in a code or the factor have the same value of this code
    )


class _Buffers(NamedTuple):
    """Memory that all trees of a factor write to, one after the other."""

    samples: Rows  # (n,): the points, those of a node next to each other, in scikit-learn's order
    lower: Rows  # (2, D, n): as the order of the codes, but within each node of depth 1 and 2
    is_left: ByteArray  # (n,): whether a point goes left in the node that is split
    leaf: ByteArray  # (n,): the leaf of each point
    expected: FloatArray  # (n,): the sum of the targets of the first 1, 2, … samples of a node, if all were its mean
    weight: FloatArray  # (n,): 1 / n_l + 1 / n_r for the splits of a node
    keys: SingleArray  # (n,): what samples are sorted by
    ties: IntArray  # (n,): a running count of equal values


def _fit_factor(codes: _SortedCodes, classes: IntArray, labels: IntArray, seeds: IntArray) -> BoostedTrees:
    """Fit one factor, given as ``labels`` (n,) into its ``classes`` (K,); ``seeds`` is (rounds, trees per round)."""
    (rounds, trees_per_round), (num_codes, n) = seeds.shape, codes.values.shape
    shape = (rounds, trees_per_round, _NODES)
    trees = Trees(np.full(shape, -1, dtype=np.int32), np.zeros(shape), np.zeros(shape))
    importances = np.zeros(num_codes)
    prior = _prior(labels, len(classes))
    if trees_per_round == 0:
        return BoostedTrees(classes, prior, importances, classes[labels], trees)
    total = np.repeat(prior[:, None], n, axis=1)
    _boost(codes, labels, seeds, trees, total, importances)
    summed = importances.sum()
    if summed > 0:
        importances /= summed
    return BoostedTrees(classes, prior, importances, classes[_likeliest(total)], trees)


def _prior(labels: IntArray, num_classes: int) -> FloatArray:
    """The log odds of the second of two classes (1,), else the centred log frequency of each (K,)."""
    from scipy.special import logit

    tiny = np.finfo(np.float64).eps
    frequency = np.clip(np.bincount(labels, minlength=num_classes) / len(labels), tiny, 1 - tiny)
    if num_classes == 2:
        return np.atleast_1d(logit(frequency[1]))
    geometric_mean = np.exp(np.log(frequency).mean())
    centred: FloatArray = np.log(frequency / geometric_mean)
    return centred


def _likeliest(total: FloatArray) -> IntArray:
    """The index of the highest of the functions ``total`` (K, n); of a single one (1, n), 1 unless it is negative."""
    index: IntArray = np.argmax(total, axis=0) if len(total) > 1 else (total[0] >= 0).astype(np.int64)
    return index


# Boosting


@compiled
def _boost(
    codes: _SortedCodes,
    labels: IntArray,
    seeds: IntArray,
    trees: Trees,
    total: FloatArray,
    importances: FloatArray,
) -> None:
    """Fill in the trees, and add them to ``total`` (trees per round, n) and their gains to ``importances`` (D,)."""
    num_codes, n = codes.values.shape
    rounds, trees_per_round = seeds.shape
    buffers = _Buffers(
        np.empty(n, np.uint32),
        np.empty((DEPTH - 1, num_codes, n), np.uint32),
        np.empty(n, np.uint8),
        np.empty(n, np.uint8),
        np.empty(n),
        np.empty(n),
        np.empty(n, np.float32),
        np.empty(n, np.int64),
    )
    residual = np.empty_like(total)
    scale = (trees_per_round - 1) / trees_per_round if trees_per_round > 1 else 1.0
    for t in range(rounds):
        if trees_per_round > 1:
            _multinomial_residual(total, labels, residual)
        else:
            _binary_residual(total, labels, residual)
        for k in range(trees_per_round):
            tree = Trees(trees.feature[t, k], trees.threshold[t, k], trees.value[t, k])
            _grow_tree(codes, residual[k], seeds[t, k], tree, importances, buffers)
            member = k if trees_per_round > 1 else 1  # two classes share one tree, which is that of class 1
            _set_leaves(residual[k], labels, member, scale, buffers.leaf, tree.value, total[k])


# One tree


@compiled
def _grow_tree(
    codes: _SortedCodes, y: FloatArray, seed: int, tree: Trees, importances: FloatArray, buffers: _Buffers
) -> None:
    """Grow a regression tree of depth 3 on the targets ``y`` (n,), and add its gains to ``importances`` (D,).

    Fills in the features and thresholds of the ``tree`` (15,) and ``buffers.leaf``.

    The order of equal values decides the last bits of sums, and these decide only between splits that are equally
    good and whether a node is pure. So a tree is grown with any such order first. If that is not enough it is grown
    once more with scikit-learn's order in the root and its children, which all nodes below inherit, and in the node
    where it was missing; then, if need be, in all.
    """
    gains = np.zeros(len(codes.values))
    is_exact = np.full(_NODES, not codes.is_tied.any())
    undecided = _grow(codes, y, seed, is_exact, tree, gains, buffers)
    while undecided >= 0:
        is_exact[:] = is_exact[0]
        is_exact[:3] = is_exact[undecided] = True
        gains[:] = 0.0
        tree.feature[:] = -1
        undecided = _grow(codes, y, seed, is_exact, tree, gains, buffers)
    importances += gains


class _Nodes(NamedTuple):
    """The nodes of a tree that is being grown; arrays are (15,)."""

    start: IntArray  # the samples of a node are those from start to end
    end: IntArray
    num_constant: IntArray  # how many features are constant in the node above, and so in this one
    last_drawn: IntArray  # the feature by which the samples were sorted last
    impurity: FloatArray  # the variance of the targets
    noise: FloatArray  # what rounding may add to the impurity


class _Node(NamedTuple):
    """A node whose split is searched."""

    start: int
    end: int
    order: Rows  # (D, n): in columns start to end the samples of the node, sorted by each feature
    total: float  # the sum of the targets
    num_constant: int
    is_exact: bool  # whether equal values must be in scikit-learn's order


class _Split(NamedTuple):
    """The best split of a node."""

    feature: int  # -1 if there is none
    middle: int  # the samples from start to middle, in the order of the feature, go left
    num_constant: int  # how many features are constant in the node
    last_drawn: int  # the feature that was tried last
    is_clear: bool  # whether no other split is as good but for rounding


class _Features(NamedTuple):
    """The random order of the features, which passes from node to node as in scikit-learn."""

    state: IntArray  # (1,): of the random generator
    order: IntArray  # (D,): those known to be constant first
    constants: IntArray  # (D,): the constant ones in the order in which they were met


@compiled
def _grow(
    codes: _SortedCodes,
    y: FloatArray,
    seed: int,
    is_exact: BoolArray,
    tree: Trees,
    gains: FloatArray,
    buffers: _Buffers,
) -> int:
    """Grow a tree node by node, left before right, with scikit-learn's order of equal values where ``is_exact`` (15,).

    Returns -1, or the first node that is not exact and has equally good splits between which that order may decide.
    """
    values, samples = codes.values, buffers.samples
    num_codes, n = values.shape
    features = _Features(np.array([seed]), np.arange(num_codes), np.empty(num_codes, np.int64))
    nodes = _Nodes(
        np.zeros(_NODES, np.int64),
        np.zeros(_NODES, np.int64),
        np.zeros(_NODES, np.int64),
        np.zeros(_NODES, np.int64),
        np.zeros(_NODES),
        np.zeros(_NODES),
    )
    stack = np.zeros(_NODES, np.int64)
    height = 1
    nodes.end[0] = n
    for i in range(n):
        samples[i] = i
    while height > 0:
        height -= 1
        j = int(stack[height])
        start, end = nodes.start[j], nodes.end[j]
        count = end - start
        depth = 0 if j == 0 else (1 if j < 3 else (2 if j < 7 else 3))
        best, middle = -1, start
        if depth < DEPTH and count > 1:
            total, squares = 0.0, 0.0
            for p in range(start, end):
                total += y[samples[p]]
                squares += y[samples[p]] * y[samples[p]]
            if j == 0:
                nodes.impurity[0] = squares / count - (total / count) * (total / count)
            if nodes.impurity[j] > _PURE:
                order = codes.order if depth == 0 else buffers.lower[depth - 1]
                node = _Node(start, end, order, total, nodes.num_constant[j], is_exact[j])
                split = _best_split(codes, y, node, features, buffers)
                best, middle = split.feature, split.middle
                nodes.last_drawn[j] = split.last_drawn
                if not (is_exact[j] or split.is_clear):
                    if not _sums_are_known(
                        values, order, features.order[split.num_constant :], start, end, y
                    ):
                        return j
                    above = (j - 1) // 2
                    if j > 0 and not is_exact[above]:
                        order_above = codes.order if depth == 1 else buffers.lower[depth - 2]
                        if not _node_is_known(j, y, values, order_above, tree, nodes):
                            return j
        if best >= 0:
            low, high = order[best, middle - 1], order[best, middle]
            threshold = values[best, low] / 2.0 + values[best, high] / 2.0
            _partition_samples(samples, start, end, values[best], threshold)
            n_left, n_right = middle - start, end - middle
            impurity_left, impurity_right = _impurities(y, samples, start, middle, end, total, squares)
            decrease = nodes.impurity[j] - n_right / count * impurity_right - n_left / count * impurity_left
            if count / n * decrease + _PURE < 0.0:
                best = -1
        if best < 0:
            for p in range(start, end):
                buffers.leaf[samples[p]] = j
            continue
        tree.feature[j], tree.threshold[j] = best, threshold
        gains[best] += (count * nodes.impurity[j] - n_left * impurity_left - n_right * impurity_right) / n
        if depth < DEPTH - 1:
            varying = features.order[split.num_constant :]
            _pass_orders_down(node, split, varying, buffers.lower[depth], buffers.is_left)
        left, right = 2 * j + 1, 2 * j + 2
        nodes.start[left], nodes.end[left] = start, middle
        nodes.start[right], nodes.end[right] = middle, end
        nodes.num_constant[left] = nodes.num_constant[right] = split.num_constant
        nodes.impurity[left], nodes.impurity[right] = impurity_left, impurity_right
        nodes.noise[left], nodes.noise[right] = _SLACK * squares / n_left, _SLACK * squares / n_right
        stack[height], stack[height + 1] = right, left
        height += 2
    return -1


@compiled
def _partition_samples(samples: Rows, start: int, end: int, x: SingleArray, threshold: float) -> None:
    """Samples at or below the threshold first; the others are swapped with the last ones."""
    while start < end:
        if x[samples[start]] <= threshold:
            start += 1
        else:
            end -= 1
            samples[start], samples[end] = samples[end], samples[start]


@compiled
def _impurities(
    y: FloatArray, samples: Rows, start: int, middle: int, end: int, total: float, squares: float
) -> tuple[float, float]:
    """The variances of y left and right of a split, given the sums of y and y^2; y is summed on the shorter side."""
    if middle - start <= end - middle:
        left = 0.0
        for p in range(start, middle):
            left += y[samples[p]]
    else:
        left = total
        for p in range(end - 1, middle - 1, -1):
            left -= y[samples[p]]
    squares_left = 0.0
    for p in range(start, middle):
        squares_left += y[samples[p]] * y[samples[p]]
    mean_left, mean_right = left / (middle - start), (total - left) / (end - middle)
    impurity_left = squares_left / (middle - start) - mean_left * mean_left
    impurity_right = (squares - squares_left) / (end - middle) - mean_right * mean_right
    return impurity_left, impurity_right


@compiled
def _pass_orders_down(
    node: _Node, split: _Split, features: IntArray, lower: Rows, is_left: ByteArray
) -> None:
    """Sort the samples of the two children by each of ``features``: the order in the node, parted in two."""
    for p in range(node.start, node.end):
        is_left[node.order[split.feature, p]] = 1 if p < split.middle else 0
    for f in features:
        target = lower[f]
        left, right = node.start, split.middle
        for i in node.order[f, node.start : node.end]:
            side = is_left[i]
            target[left if side else right] = i
            left += side
            right += 1 - side


# One split


@compiled
def _best_split(
    codes: _SortedCodes, y: FloatArray, node: _Node, features: _Features, buffers: _Buffers
) -> _Split:
    """The split of a node that lowers the squared error most: the first best in the order of the draw.

    ``buffers.samples`` are left in the order of the feature drawn last. In an exact node, the order of equal values is
    what scikit-learn's sort makes of the order before.
    """
    start, end, known = node.start, node.end, node.num_constant
    samples, order = buffers.samples, features.order
    count = end - start
    for p in range(count - 1):
        buffers.expected[p] = (p + 1) * (node.total / count)
        buffers.weight[p] = 1.0 / (p + 1) + 1.0 / (count - 1 - p)
    best, middle, f = -1, end, -1
    last = -1  # the feature whose order the samples have yet to take
    highest = second = -np.inf
    # As scikit-learn keeps the features: known constants that were drawn, known ones that were not, those that were met
    # as constant here, those to be drawn from, those that were tried.
    remaining, num_new, num_drawn, num_constant = len(order), 0, 0, known
    while remaining > num_constant:
        j = num_drawn + _draw(features.state) % (remaining - num_new - num_drawn)
        if j < known:
            order[num_drawn], order[j] = order[j], order[num_drawn]
            num_drawn += 1
            continue
        j += num_new
        f = order[j]
        row, x = node.order[f], codes.values[f]
        if node.is_exact and codes.is_tied[f] and _count_ties(x, row, start, end, buffers.ties) > 0:
            if last >= 0:
                samples[start:end] = node.order[last, start:end]
            for p in range(start, end):
                buffers.keys[p] = x[samples[p]]
            _sort_as_scikit_learn(buffers.keys, samples, start, end, row, buffers.ties)
            row, last = samples, -1
        else:
            last = f
        if x[row[end - 1]] <= x[row[start]] + _CLOSE:
            order[j], order[num_constant] = order[num_constant], order[j]
            num_new += 1
            num_constant += 1
            continue
        remaining -= 1
        order[remaining], order[j] = order[j], order[remaining]
        position, highest, second = _scan(
            row[start:end],
            x,
            y,
            (node.total, buffers.expected, buffers.weight),
            codes.longest_run[f],
            highest,
            second,
        )
        if position > 0:
            best, middle = f, start + position
    order[:known] = features.constants[:known]
    features.constants[known:num_constant] = order[known:num_constant]
    if last >= 0:
        samples[start:end] = node.order[last, start:end]
    return _Split(best, middle, num_constant, f, second < highest * (1.0 - _SLACK))


@compiled
def _draw(state: IntArray) -> int:
    """The next number of Marsaglia's 32-bit xorshift generator, without its highest bit."""
    s = state[0] if state[0] != 0 else 1
    s ^= (s << 13) & 0xFFFFFFFF
    s ^= s >> 17
    s ^= (s << 5) & 0xFFFFFFFF
    state[0] = s
    return s & 0x7FFFFFFF


@compiled
def _scan(
    row: Rows,
    x: SingleArray,
    y: FloatArray,
    sums: tuple[float, FloatArray, FloatArray],
    longest_run: int,
    highest: float,
    second: float,
) -> tuple[int, float, float]:
    """The best split of samples sorted as in ``row``, if better than ``highest``: its position, else 0.

    Also the new highest value, and the second highest if it is nearly as high.

    The value is S_l^2 / n_l + S_r^2 / n_r = S^2 / n + (S_l - n_l S / n)^2 (1 / n_l + 1 / n_r), for the sums S and
    numbers n of samples on the left, on the right and in all. The second form takes less time and gives the
    candidates; the first decides. ``sums`` are S, n_l S / n and 1 / n_l + 1 / n_r.
    """
    total, expected, weight = sums
    count = len(row)
    base = total * total / count
    best, left, limit = 0, 0.0, highest * (1.0 - _SLACK) - base
    screened = max(0, count - 1 - longest_run)
    for p in range(screened):
        left += y[row[p]]
        excess = left - expected[p]
        if excess * excess * weight[p] >= limit:
            if x[row[p + 1]] <= x[row[p]] + _CLOSE:
                continue
            right = total - left
            exact = left * left / (p + 1) + right * right / (count - 1 - p)
            second = max(second, min(exact, highest))
            if exact > highest:
                highest, limit, best = exact, exact * (1.0 - _SLACK) - base, p + 1
    # Near the end a run of close values may be longer than what remains: then the sum is taken from the right.
    position = screened
    while position > 0 and x[row[position]] <= x[row[position - 1]] + _CLOSE:
        position -= 1
    for p in range(screened, count - 1):
        left += y[row[p]]
        if x[row[p + 1]] <= x[row[p]] + _CLOSE:
            continue
        if p + 1 - position > count - 1 - p:
            left = total
            for q in range(count - 1, p, -1):
                left -= y[row[q]]
        position = p + 1
        right = total - left
        exact = left * left / (p + 1) + right * right / (count - 1 - p)
        second = max(second, min(exact, highest))
        if exact > highest:
            highest, best = exact, p + 1
    return best, highest, second


# The order of equal values


@compiled
def _longest_runs(values: SingleArray, order: Rows) -> IntArray:
    """The most sorted values in a row that are each no further than _CLOSE from the one before; (D,)."""
    longest = np.ones(len(values), np.int64)
    for f in range(len(values)):
        run = 1
        for p in range(1, values.shape[1]):
            run = run + 1 if values[f, order[f, p]] <= values[f, order[f, p - 1]] + _CLOSE else 1
            longest[f] = max(longest[f], run)
    return longest


@compiled
def _have_ties(values: SingleArray, order: Rows, point: IntArray) -> ByteArray:
    """For each code whether different points share a value of it; (D,). ``point`` (n,) is equal for equal points."""
    tied = np.zeros(len(values), np.uint8)
    for f in range(len(values)):
        for p in range(1, values.shape[1]):
            i, j = order[f, p - 1], order[f, p]
            tied[f] |= values[f, i] == values[f, j] and point[i] != point[j]
    return tied


@compiled
def _sums_are_known(
    values: SingleArray, order: Rows, features: IntArray, start: int, end: int, y: FloatArray
) -> bool:
    """Whether samples with equal values of one of ``features`` have equal ``y``: then all orders of them sum alike."""
    for f in features:
        for p in range(start + 1, end):
            i, j = order[f, p - 1], order[f, p]
            if values[f, i] == values[f, j] and y[i] != y[j]:
                return False
    return True


@compiled
def _node_is_known(
    j: int, y: FloatArray, values: SingleArray, order_above: Rows, tree: Trees, nodes: _Nodes
) -> bool:
    """Whether the order of equal values in the node above decides neither the total of node j nor if it is pure."""
    above = (j - 1) // 2
    drawn, split = nodes.last_drawn[above], tree.feature[above]
    row = order_above[drawn, nodes.start[above] : nodes.end[above]]
    return nodes.impurity[j] >= nodes.noise[j] and _total_is_known(
        values[drawn], row, values[split], tree.threshold[above], j % 2 == 1, y
    )


@compiled
def _total_is_known(
    x: SingleArray, row: Rows, split: SingleArray, threshold: float, is_left: bool, y: FloatArray
) -> bool:
    """Whether the sum of ``y`` over one child of a node is the same for every order of equal values in the node.

    ``row`` are the node's samples by the feature ``x`` that was drawn last; those with ``split`` (n,) at or below the
    threshold go left. The partition depends on nothing but the side of each sample: where equal values go to the
    same side, another order of them only swaps them.
    """
    for p in range(1, len(row)):
        i, j = row[p - 1], row[p]
        if x[i] == x[j]:
            side = split[i] <= threshold
            if side != (split[j] <= threshold) or (side == is_left and y[i] != y[j]):
                return False
    return True


@compiled
def _count_ties(x: SingleArray, row: Rows, start: int, end: int, ties: IntArray) -> int:
    """Set ``ties`` to how many of the sorted samples up to each equal the one before them. Returns how many in all."""
    ties[start] = 0
    for p in range(start + 1, end):
        ties[p] = ties[p - 1] + (x[row[p]] == x[row[p - 1]])
    return int(ties[end - 1])


@compiled
def _sort_as_scikit_learn(
    keys: SingleArray, samples: Rows, start: int, end: int, row: Rows, ties: IntArray
) -> None:
    """Sort samples from start to end by key, in place, equal keys in the order in which scikit-learn leaves them.

    Quicksort in three parts around the median of the first, middle and last key, insertion sort for 15 or fewer.
    (Many poor divisions in a row would make scikit-learn go on with a heap. Equal keys are no reason for them.)
    ``row`` are the samples with equal keys in any order and ``ties`` counts these: parts without equal keys are
    copied from there.
    """
    while end > start and ties[end - 1] > ties[start]:
        if end - start <= 15:
            for i in range(start + 1, end):
                key, sample = keys[i], samples[i]
                j = i
                while j > start and keys[j - 1] > key:
                    keys[j], samples[j] = keys[j - 1], samples[j - 1]
                    j -= 1
                keys[j], samples[j] = key, sample
            return
        first, second, third = keys[start], keys[start + (end - start) // 2], keys[end - 1]
        pivot = max(min(first, second), min(max(first, second), third))
        low, high, i = start, end, start
        while i < high:  # no branches: they would be predicted wrong too often
            key, sample = keys[i], samples[i]
            is_low, is_high = key < pivot, key > pivot
            high -= is_high
            j = low if is_low else (high if is_high else i)
            keys[i], samples[i] = keys[j], samples[j]
            keys[j], samples[j] = key, sample
            low += is_low
            i += not is_high
        _sort_as_scikit_learn(keys, samples, start, low, row, ties)
        start = high
    samples[start:end] = row[start:end]


# Residuals and leaves


@compiled
def _binary_residual(total: FloatArray, labels: IntArray, residual: FloatArray) -> None:
    """y - sigmoid(total) for labels 0 and 1; ``total`` and ``residual`` are (1, n)."""
    for i in range(len(labels)):
        y = float(labels[i])
        if total[0, i] > -37.0:
            e = math.exp(-total[0, i])
            residual[0, i] = -(((1.0 - y) - y * e) / (1.0 + e))
        else:
            residual[0, i] = -(math.exp(total[0, i]) - y)


@compiled
def _multinomial_residual(total: FloatArray, labels: IntArray, residual: FloatArray) -> None:
    """[y = k] - softmax(total)_k for each class k; ``total`` and ``residual`` are (K, n)."""
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
def _set_leaves(
    residual: FloatArray,
    labels: IntArray,
    member: int,
    scale: float,
    leaf: ByteArray,
    value: FloatArray,
    total: FloatArray,
) -> None:
    """Give each leaf of a tree its value (15,), a Newton step, and add it to the ``total`` (n,) of its samples.

    The step is ``scale`` times the mean residual over the mean of p (1 - p). ``leaf`` (n,) is the node of each sample,
    ``member`` the label of the tree's class.
    """
    n = len(leaf)
    counts, starts, following = (
        np.zeros(_NODES, np.int64),
        np.zeros(_NODES, np.int64),
        np.zeros(_NODES, np.int64),
    )
    for i in range(n):
        counts[leaf[i]] += 1
    for node in range(1, _NODES):
        starts[node] = starts[node - 1] + counts[node - 1]
        following[node] = starts[node]
    gradient, curvature = np.empty(n), np.empty(n)
    for i in range(n):
        p = (1.0 if labels[i] == member else 0.0) - residual[i]
        gradient[following[leaf[i]]] = residual[i]
        curvature[following[leaf[i]]] = p * (1.0 - p)
        following[leaf[i]] += 1
    for node in range(_NODES):
        if counts[node] > 0:
            start, end = starts[node], starts[node] + counts[node]
            numerator = _pairwise_sum(gradient[start:end]) / counts[node] * scale
            denominator = _pairwise_sum(curvature[start:end]) / counts[node]
            value[node] = numerator / denominator if abs(denominator) >= 1e-150 else 0.0
    for i in range(n):
        total[i] += LEARNING_RATE * value[leaf[i]]


@compiled
def _pairwise_sum(x: FloatArray) -> float:
    """The sum in NumPy's order: halves down to blocks of 128, eight partial sums in a block."""
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


# Prediction


@compiled
def _add_trees(total: FloatArray, values: SingleArray, trees: Trees) -> None:
    """Add the values of all trees at ``values`` (D, n), times the learning rate, to ``total`` (trees per round, n)."""
    feature, threshold = np.empty(_INNER_NODES, np.int64), np.empty(_INNER_NODES)
    leaf_value = np.empty(_NODES)
    rounds, trees_per_round, _ = trees.feature.shape
    for t in range(rounds):
        for k in range(trees_per_round):
            # Below an early leaf, copies of it: so every sample takes three steps, without a branch.
            leaf_value[:] = trees.value[t, k]
            for node in range(_INNER_NODES):
                is_split = trees.feature[t, k, node] >= 0
                feature[node] = trees.feature[t, k, node] if is_split else 0
                threshold[node] = trees.threshold[t, k, node]
                if not is_split:
                    leaf_value[2 * node + 1] = leaf_value[2 * node + 2] = leaf_value[node]
            for i in range(values.shape[1]):
                node = 1 + (values[feature[0], i] > threshold[0])
                node = 2 * node + 1 + (values[feature[node], i] > threshold[node])
                node = 2 * node + 1 + (values[feature[node], i] > threshold[node])
                total[k, i] += LEARNING_RATE * leaf_value[node]
