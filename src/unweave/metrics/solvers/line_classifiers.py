"""Classifiers that see one number per point, solved exactly on sorted points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unweave.metrics.solvers.compiled import compiled

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Sums = tuple[float, float, float]


def squared_hinge_lines(x: Array, labels: Labels, classes: int, penalty: float) -> Array:
    """Slope and intercept of the linear support vector machine of each class against the rest, shape (K, 2).

    Minimises (w^2 + b^2) / 2 + sum_i C_i max(0, 1 - s_i (w x_i + b))^2, s_i = 1 for the class and -1 for the rest,
    with liblinear's weights for ``class_weight="balanced"``: C n / (K n_k) for the points of class k and C for the
    rest. Two classes share one line (1, 2), positive for class 1, both weighted. ``x`` (n,) is sorted, ``labels``
    (n,) hold 0 .. K-1, each at least once.

    The points inside the margin are a range of the sorted x, so prefix sums of 1, x and x^2 give the loss, its
    gradient and its Hessian in O(log n). Newton's method ends when a full step leaves that range as it was: the
    loss is quadratic there, and the point is its exact minimum.
    """
    return _solve_all(*groups(x, labels, classes, penalty))


def groups(
    x: Array, labels: Labels, classes: int, penalty: float
) -> tuple[Array, Array, Labels, Labels, float, Array, float]:
    """The machines' common input: points minus their mean, in order and by class (class k from starts[k] to
    starts[k + 1]), the classes that need a line, the mean, the weight of each class and that of the rest."""
    counts = np.bincount(labels, minlength=classes)
    weights = penalty * len(x) / (classes * counts)
    centre = float(x.mean())
    shifted = x - centre
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    grouped = shifted[np.argsort(labels, kind="stable")]
    if classes == 2:
        return shifted, grouped, starts, np.array([1]), centre, weights, float(weights[0])
    return shifted, grouped, starts, np.arange(classes), centre, weights, penalty


@compiled
def best_thresholds(x: Array, labels: Labels, classes: int) -> float:
    """The best balanced accuracy of K - 1 thresholds on sorted ``x`` (n,): the mean over classes of the recall.

    They cut the line into at most K intervals; each stands for one of the ``classes`` (some may have none or
    several). Exact, by dynamic programming: ``best[s, k]`` is the highest sum of recalls so far with s + 1
    intervals of which the last stands for class k. O(n K^2).
    """
    gain = np.zeros(classes)
    for label in labels:
        gain[label] += 1.0
    gain = 1.0 / gain
    best = np.full((classes, classes), -np.inf)
    best[0] = 0.0
    before = np.empty(classes)
    for i in range(len(x)):
        if i > 0 and x[i] > x[i - 1]:
            for s in range(classes):
                before[s] = best[s].max()
            for s in range(1, classes):
                for k in range(classes):
                    best[s, k] = max(best[s, k], before[s - 1])
        for s in range(classes):
            best[s, labels[i]] += gain[labels[i]]
    return float(best.max() / classes)


@compiled
def _solve_all(
    x: Array, grouped: Array, starts: Labels, wanted: Labels, centre: float, weights: Array, rest: float
) -> Array:
    """One line for each class in ``wanted``; ``grouped`` is x by class, class k from starts[k] to starts[k + 1]."""
    lines = np.empty((len(wanted), 2))
    everything = prefix_sums(x)
    for row in range(len(wanted)):
        k = wanted[row]
        inside = grouped[starts[k] : starts[k + 1]]
        lines[row] = _solve(x, everything, inside, prefix_sums(inside), centre, weights[k], rest)
    return lines


@compiled
def _solve(
    x: Array, x_sums: Array, inside: Array, inside_sums: Array, m: float, c_in: float, c_out: float
) -> Array:
    """Newton's method for w and b' in w (x - m) + b', which keeps the sums small; the penalty is on b = b' - w m."""
    line, trial = np.zeros(2), np.zeros(2)
    kept, rest = active_sums(x, x_sums, inside, inside_sums, line)
    loss = _loss(line, kept, rest, m, c_in, c_out)
    for _ in range(200):
        h11 = 1.0 + m * m + 2.0 * (c_in * kept[2] + c_out * rest[2])
        h12 = -m + 2.0 * (c_in * kept[1] + c_out * rest[1])
        h22 = 1.0 + 2.0 * (c_in * kept[0] + c_out * rest[0])
        r1 = 2.0 * (c_in * kept[1] - c_out * rest[1])
        r2 = 2.0 * (c_in * kept[0] - c_out * rest[0])
        determinant = h11 * h22 - h12 * h12
        step1 = (h22 * r1 - h12 * r2) / determinant - line[0]
        step2 = (h11 * r2 - h12 * r1) / determinant - line[1]
        length = 1.0
        while True:
            trial[0], trial[1] = line[0] + length * step1, line[1] + length * step2
            new_kept, new_rest = active_sums(x, x_sums, inside, inside_sums, trial)
            new_loss = _loss(trial, new_kept, new_rest, m, c_in, c_out)
            if new_loss < loss or length < 1e-6:
                break
            length *= 0.5
        settled = length == 1.0 and new_kept[0] == kept[0] and new_rest[0] == rest[0]
        if new_loss < loss or settled:
            line[0], line[1] = trial[0], trial[1]
        if settled or not new_loss < loss:
            break
        kept, rest, loss = new_kept, new_rest, new_loss
    line[1] -= line[0] * m
    return line


@compiled
def active_sums(x: Array, x_sums: Array, inside: Array, inside_sums: Array, line: Array) -> tuple[Sums, Sums]:
    """Sums of 1, x, x^2 over the points with a loss: of the class (w x + b < 1), of the rest (w x + b > -1)."""
    w, b = line[0], line[1]
    if w == 0.0:
        kept = _range(inside_sums, 0, len(inside) if b < 1.0 else 0)
        every, own = _range(x_sums, 0, len(x)), _range(inside_sums, 0, len(inside))
        if b <= -1.0:
            every = own = (0.0, 0.0, 0.0)
    else:
        upper, lower = (1.0 - b) / w, (-1.0 - b) / w
        cut, from_x, from_inside = _below(inside, upper), _below(x, lower), _below(inside, lower)
        if w > 0.0:
            kept = _range(inside_sums, 0, cut)
            every, own = _range(x_sums, from_x, len(x)), _range(inside_sums, from_inside, len(inside))
        else:
            kept = _range(inside_sums, cut, len(inside))
            every, own = _range(x_sums, 0, from_x), _range(inside_sums, 0, from_inside)
    return kept, (every[0] - own[0], every[1] - own[1], every[2] - own[2])


@compiled
def _loss(line: Array, kept: Sums, rest: Sums, m: float, c_in: float, c_out: float) -> float:
    w, b = line[0], line[1]
    square_in = w * w * kept[2] + 2.0 * w * (b - 1.0) * kept[1] + (b - 1.0) ** 2 * kept[0]
    square_out = w * w * rest[2] + 2.0 * w * (b + 1.0) * rest[1] + (b + 1.0) ** 2 * rest[0]
    return float(0.5 * (w * w + (b - w * m) ** 2) + c_in * square_in + c_out * square_out)


@compiled
def _below(x: Array, value: float) -> int:
    """How many entries of sorted ``x`` are below ``value``."""
    low, high = 0, len(x)
    while low < high:
        middle = (low + high) // 2
        if x[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def prefix_sums(x: Array) -> Array:
    """Row i: the sums of x and x^2 over the first i points."""
    sums = np.zeros((len(x) + 1, 2))
    for i in range(len(x)):
        sums[i + 1, 0] = sums[i, 0] + x[i]
        sums[i + 1, 1] = sums[i, 1] + x[i] * x[i]
    return sums


@compiled
def _range(sums: Array, start: int, end: int) -> Sums:
    return float(end - start), sums[end, 0] - sums[start, 0], sums[end, 1] - sums[start, 1]
