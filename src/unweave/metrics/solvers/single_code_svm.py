r"""Linear support vector machines on a single code.

A machine minimises, over the slope w and intercept b of a line,

.. math:: \frac{1}{2} (w^2 + b^2) + \sum_i C_i \max(0, 1 - s_i (w x_i + b))^2,

with :math:`s_i = 1` for the points of a class and -1 for the rest, and liblinear's weights for
``class_weight="balanced"``: :math:`C_i = C n / (K n_k)` for the points of class k and C for the rest. Two classes share
one line, positive for class 1, with both weighted.

The points inside the margin are a range of the sorted x, so prefix sums of 1, x and x^2 give the loss, its gradient
and its Hessian in O(log n). There are two solvers: to the exact minimum, and by liblinear's steps to where it stops.

The file is in the order of the calls: the machines, each solver, then the loss and sums that they share.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unweave.arrays import FloatArray, IntArray
from unweave.compiled import compiled

Sums = tuple[float, float, float]  # of 1, x and x^2 over some points
Pair = tuple[float, float]


def exact_svm_lines(x: FloatArray, labels: IntArray, num_classes: int, C: float) -> FloatArray:
    """Fit a support vector machine on one code for each class against the rest: the exact minimum.

    The equation is in the docstring of this module. Newton's method ends when a full step leaves the range of points
    inside the margin as it was: the loss is quadratic there, and the point is its exact minimum.

    Parameters
    ----------
    x
        (n,) the code, sorted.
    labels
        (n,) of 0 .. K - 1, each at least once.
    num_classes
        K.
    C
        the weight of the loss against the penalty.

    Returns
    -------
    array
        (K, 2) slopes and intercepts; (1, 2) for two classes.

    Examples
    --------
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> line = exact_svm_lines(x, np.array([0, 0, 1, 1]), 2, C=1.0)[0]
    >>> np.sign(line[0] * x + line[1])
    array([-1., -1.,  1.,  1.])
    """
    return _exact_lines(_machines(x, labels, num_classes, C))


def liblinear_svm_lines(
    x: FloatArray, labels: IntArray, num_classes: int, C: float, tol: float = 1e-4
) -> FloatArray:
    """Fit the machines of :func:`exact_svm_lines`, but stop where scikit-learn's ``LinearSVC(dual=False)`` does.

    The trust region Newton method of Lin, Weng and Keerthi (2008), as in liblinear: from w = b = 0, Newton steps by
    conjugate gradients to a tenth of the gradient or to the edge of the region, until the gradient is below ``tol`` x
    (share of the smaller side) x the first gradient, or after 1000 steps. Where codes are far from unit scale this is
    far from the optimum, so liblinear's scores can be reproduced by its steps only.

    Parameters
    ----------
    x
        (n,) the code, sorted.
    labels
        (n,) of 0 .. K - 1, each at least once.
    num_classes
        K.
    C
        the weight of the loss against the penalty.
    tol
        of the gradient.

    Returns
    -------
    array
        (K, 2) slopes and intercepts; (1, 2) for two classes.

    References
    ----------
    Lin, Weng and Keerthi (2008). Trust region Newton method for large-scale logistic regression. JMLR 9.

    Examples
    --------
    >>> x = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> line = liblinear_svm_lines(x, np.array([0, 0, 1, 1]), 2, C=1.0)[0]
    >>> np.sign(line[0] * x + line[1])
    array([-1., -1.,  1.,  1.])
    """
    return _liblinear_lines(_machines(x, labels, num_classes, C), tol)


# The machines


class _Machines(NamedTuple):
    """The machines of all classes."""

    x: FloatArray  # (n,): the sorted points minus their mean
    by_class: FloatArray  # (n,): the same, class by class; class k is from starts[k] to starts[k + 1]
    starts: IntArray  # (K + 1,)
    positive: IntArray  # the classes that have a machine
    mean: float
    weights: FloatArray  # (K,): C_i of the points of a class in its machine
    weight_rest: float  # C_i of the other points


class _Machine(NamedTuple):
    """One machine. Points are minus the mean."""

    x: FloatArray  # (n,): all points, sorted
    x_sums: FloatArray  # (n + 1, 2): their prefix sums
    inside: FloatArray  # (n_k,): the points of the class, sorted
    inside_sums: FloatArray  # (n_k + 1, 2)
    mean: float
    weight: float
    weight_rest: float


def _machines(x: FloatArray, labels: IntArray, num_classes: int, C: float) -> _Machines:
    counts = np.bincount(labels, minlength=num_classes)
    weights = C * len(x) / (num_classes * counts)
    mean = float(x.mean())
    shifted = x - mean
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    by_class = shifted[np.argsort(labels, kind="stable")]
    if num_classes == 2:
        return _Machines(shifted, by_class, starts, np.array([1]), mean, weights, float(weights[0]))
    return _Machines(shifted, by_class, starts, np.arange(num_classes), mean, weights, float(C))


@compiled
def _machine(machines: _Machines, x_sums: FloatArray, k: int) -> _Machine:
    """The machine of class k."""
    inside = machines.by_class[machines.starts[k] : machines.starts[k + 1]]
    return _Machine(
        machines.x,
        x_sums,
        inside,
        _prefix_sums(inside),
        machines.mean,
        machines.weights[k],
        machines.weight_rest,
    )


# The exact solver


@compiled
def _exact_lines(machines: _Machines) -> FloatArray:
    """The line of each machine."""
    lines = np.empty((len(machines.positive), 2))
    x_sums = _prefix_sums(machines.x)
    for row in range(len(lines)):
        lines[row] = _exact_line(_machine(machines, x_sums, machines.positive[row]))
    return lines


@compiled
def _exact_line(machine: _Machine) -> FloatArray:
    """Newton's method for w and b' in w (x - m) + b', which keeps the sums small; the penalty is on b = b' - w m."""
    m, c_in, c_out = machine.mean, machine.weight, machine.weight_rest
    w = b = 0.0
    inside, rest = _sums_with_loss(machine, w, b)
    loss = _loss(machine, w, b, b - w * m, inside, rest)
    for _ in range(200):
        h11 = 1.0 + m * m + 2.0 * (c_in * inside[2] + c_out * rest[2])
        h12 = -m + 2.0 * (c_in * inside[1] + c_out * rest[1])
        h22 = 1.0 + 2.0 * (c_in * inside[0] + c_out * rest[0])
        r1 = 2.0 * (c_in * inside[1] - c_out * rest[1])
        r2 = 2.0 * (c_in * inside[0] - c_out * rest[0])
        determinant = h11 * h22 - h12 * h12
        step_w = (h22 * r1 - h12 * r2) / determinant - w
        step_b = (h11 * r2 - h12 * r1) / determinant - b
        length = 1.0
        while True:
            new_w, new_b = w + length * step_w, b + length * step_b
            new_inside, new_rest = _sums_with_loss(machine, new_w, new_b)
            new_loss = _loss(machine, new_w, new_b, new_b - new_w * m, new_inside, new_rest)
            if new_loss < loss or length < 1e-6:
                break
            length *= 0.5
        is_minimum = length == 1.0 and new_inside[0] == inside[0] and new_rest[0] == rest[0]
        if new_loss < loss or is_minimum:
            w, b = new_w, new_b
        if is_minimum or not new_loss < loss:
            break
        inside, rest, loss = new_inside, new_rest, new_loss
    return np.array([w, b - w * m])


# liblinear's solver


@compiled
def _liblinear_lines(machines: _Machines, tol: float) -> FloatArray:
    """The line of each machine."""
    lines = np.empty((len(machines.positive), 2))
    x_sums = _prefix_sums(machines.x)
    n = len(machines.x)
    for row in range(len(lines)):
        machine = _machine(machines, x_sums, machines.positive[row])
        smaller_side = max(min(len(machine.inside), n - len(machine.inside)), 1)
        lines[row] = _liblinear_line(machine, tol * smaller_side / n)
    return lines


@compiled
def _liblinear_line(machine: _Machine, tol: float) -> FloatArray:
    """The trust region Newton method for w and b."""
    m = machine.mean
    w, b = 0.0, 0.0
    inside, rest = _sums_with_loss(machine, w, b)
    loss = _loss(machine, w, b + w * m, b, inside, rest)
    gradient, hessian = _derivatives(machine, w, b, inside, rest)
    first = radius = math.hypot(gradient[0], gradient[1])
    steps = 0
    while steps < 1000 and first >= tol:
        step, residual = _conjugate_gradients(gradient, hessian, radius)
        new_w, new_b = w + step[0], b + step[1]
        inside, rest = _sums_with_loss(machine, new_w, new_b + new_w * m)
        new_loss = _loss(machine, new_w, new_b + new_w * m, new_b, inside, rest)
        slope = _dot(gradient, step)
        predicted, actual = -0.5 * (slope - _dot(step, residual)), loss - new_loss
        length = math.hypot(step[0], step[1])
        if steps == 0:
            radius = min(radius, length)
        radius = _new_radius(radius, length, slope, new_loss - loss - slope, predicted, actual)
        if actual > 1e-4 * predicted:
            steps += 1
            w, b, loss = new_w, new_b, new_loss
            gradient, hessian = _derivatives(machine, w, b, inside, rest)
            if math.hypot(gradient[0], gradient[1]) <= tol * first:
                break
        if max(abs(actual), abs(predicted)) <= 1e-12 * abs(loss) or (actual == 0.0 and predicted <= 0.0):
            break
        if math.isnan(actual) or math.isnan(predicted):
            break
    return np.array([w, b])


@compiled
def _conjugate_gradients(gradient: Pair, hessian: Sums, radius: float) -> tuple[Pair, Pair]:
    """A Newton step no longer than ``radius``, and what it leaves of -gradient."""
    step, rest = (0.0, 0.0), (-gradient[0], -gradient[1])
    direction, square = rest, _dot(rest, rest)
    enough = 0.1 * math.sqrt(square)
    while math.sqrt(_dot(rest, rest)) > enough:
        product = (
            hessian[0] * direction[0] + hessian[1] * direction[1],
            hessian[1] * direction[0] + hessian[2] * direction[1],
        )
        length = square / _dot(direction, product)
        if not length > 0.0:  # codes so large that their fourth powers are no numbers
            break
        longer = (step[0] + length * direction[0], step[1] + length * direction[1])
        if math.hypot(longer[0], longer[1]) > radius:
            along, left = _dot(step, direction), radius * radius - _dot(step, step)
            squared_length = _dot(direction, direction)
            root = math.sqrt(along * along + squared_length * left)
            length = left / (along + root) if along >= 0.0 else (root - along) / squared_length
            step = (step[0] + length * direction[0], step[1] + length * direction[1])
            rest = (rest[0] - length * product[0], rest[1] - length * product[1])
            break
        step = longer
        rest = (rest[0] - length * product[0], rest[1] - length * product[1])
        new_square = _dot(rest, rest)
        share = new_square / square
        direction = (rest[0] + share * direction[0], rest[1] + share * direction[1])
        square = new_square
    return step, rest


@compiled
def _new_radius(
    radius: float, length: float, slope: float, excess: float, predicted: float, actual: float
) -> float:
    """Smaller where the loss fell by less than predicted, larger where the prediction was good."""
    scale = 4.0 if excess <= 0.0 else max(0.25, -0.5 * slope / excess)
    if actual < 1e-4 * predicted:
        return min(scale * length, 0.5 * radius)
    if actual < 0.25 * predicted:
        return max(0.25 * radius, min(scale * length, 0.5 * radius))
    if actual < 0.75 * predicted:
        return max(0.25 * radius, min(scale * length, 4.0 * radius))
    return max(radius, min(scale * length, 4.0 * radius))


@compiled
def _derivatives(machine: _Machine, w: float, b: float, inside: Sums, rest: Sums) -> tuple[Pair, Sums]:
    """Gradient and Hessian (ww, wb, bb) in w and b."""
    m, c_in, c_out = machine.mean, machine.weight, machine.weight_rest
    shifted = b + w * m
    by_shifted = 2.0 * (
        c_in * (w * inside[1] + (shifted - 1.0) * inside[0])
        + c_out * (w * rest[1] + (shifted + 1.0) * rest[0])
    )
    by_w = 2.0 * (
        c_in * (w * inside[2] + (shifted - 1.0) * inside[1])
        + c_out * (w * rest[2] + (shifted + 1.0) * rest[1])
    )
    n = 2.0 * (c_in * inside[0] + c_out * rest[0])
    first = 2.0 * (c_in * inside[1] + c_out * rest[1])
    second = 2.0 * (c_in * inside[2] + c_out * rest[2])
    gradient = (w + by_w + m * by_shifted, b + by_shifted)
    return gradient, (1.0 + second + m * (2.0 * first + m * n), first + m * n, 1.0 + n)


@compiled
def _dot(a: Pair, b: Pair) -> float:
    """The inner product."""
    return a[0] * b[0] + a[1] * b[1]


# The loss, and sums over the points that have one


@compiled
def _loss(machine: _Machine, w: float, shifted: float, b: float, inside: Sums, rest: Sums) -> float:
    """The objective of a machine for the line w (x - m) + ``shifted`` = w x + ``b``, given the sums of its points."""
    square_in = w * w * inside[2] + 2.0 * w * (shifted - 1.0) * inside[1] + (shifted - 1.0) ** 2 * inside[0]
    square_out = w * w * rest[2] + 2.0 * w * (shifted + 1.0) * rest[1] + (shifted + 1.0) ** 2 * rest[0]
    return float(0.5 * (w * w + b * b) + machine.weight * square_in + machine.weight_rest * square_out)


@compiled
def _sums_with_loss(machine: _Machine, w: float, b: float) -> tuple[Sums, Sums]:
    """Sums over the points with a loss: those of the class (w x + b < 1) and those of the rest (w x + b > -1).

    The points, and so the line, are minus the mean.
    """
    x, inside, x_sums, inside_sums = machine.x, machine.inside, machine.x_sums, machine.inside_sums
    if w == 0.0:
        kept = _range_sums(inside_sums, 0, len(inside) if b < 1.0 else 0)
        every, of_class = _range_sums(x_sums, 0, len(x)), _range_sums(inside_sums, 0, len(inside))
        if b <= -1.0:
            every = of_class = (0.0, 0.0, 0.0)
    else:
        upper, lower = (1.0 - b) / w, (-1.0 - b) / w
        cut, x_start, inside_start = (
            _count_below(inside, upper),
            _count_below(x, lower),
            _count_below(inside, lower),
        )
        if w > 0.0:
            kept = _range_sums(inside_sums, 0, cut)
            every = _range_sums(x_sums, x_start, len(x))
            of_class = _range_sums(inside_sums, inside_start, len(inside))
        else:
            kept = _range_sums(inside_sums, cut, len(inside))
            every = _range_sums(x_sums, 0, x_start)
            of_class = _range_sums(inside_sums, 0, inside_start)
    return kept, (every[0] - of_class[0], every[1] - of_class[1], every[2] - of_class[2])


@compiled
def _count_below(x: FloatArray, value: float) -> int:
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
def _prefix_sums(x: FloatArray) -> FloatArray:
    """Row i: the sums of x and x^2 over the first i points."""
    sums = np.zeros((len(x) + 1, 2))
    for i in range(len(x)):
        sums[i + 1, 0] = sums[i, 0] + x[i]
        sums[i + 1, 1] = sums[i, 1] + x[i] * x[i]
    return sums


@compiled
def _range_sums(sums: FloatArray, start: int, end: int) -> Sums:
    """The sums over the points from start to end."""
    return float(end - start), sums[end, 0] - sums[start, 0], sums[end, 1] - sums[start, 1]
