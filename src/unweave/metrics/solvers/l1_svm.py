r"""Linear support vector machines with an l1 penalty, by the steps of liblinear, faster.

A machine minimises

.. math:: |w|_1 + C \sum_i \max(0, 1 - s_i w \cdot x_i)^2, \qquad x_i = (\text{codes}_i, 1),

with :math:`s_i = 1` for the points of a class and -1 for the rest, by coordinate descent from w = 0 with Newton steps,
line search and shrinking (Yuan, Chang, Hsieh and Lin, 2010, section 5). It often stops far from the optimum, by its
loose rule or after the last iteration, so its weights can be reproduced by its own steps only, and these visit the
codes in the random order of liblinear's generator.

What makes it fast: a step needs sums over the points that have slack, :math:`1 - s_i w \cdot x_i > 0`. Most points stay
on their side of the margin for many steps. The sums over those far inside are kept as a Gram matrix, and only the
points near the margin are visited: which these are is known as long as the weights have moved less than a radius.

The file is in the order of the calls: all machines, one machine, its points and the sums over them, random numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unweave.arrays import FloatArray, IntArray
from unweave.compiled import compiled

State = npt.NDArray[np.uint32]

_HALVINGS = 20  # of a step, at most
_DECREASE = 0.01  # the share of the predicted decrease that a step must bring
_REACH = 8.0  # the radius, in lengths of the path of the last iteration
_NEAR = 0.3  # the largest share of points near the margin for which sums over the others save time
_LANES = 32  # sums that are computed side by side, which a processor does at once


def fit_l1_svm(
    codes: FloatArray,
    labels: IntArray,
    num_classes: int,
    seed: int,
    C: float = 1.0,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> tuple[FloatArray, int]:
    """Fit a linear support vector machine with an l1 penalty for each class against the rest.

    The weights are those of scikit-learn's ``LinearSVC(penalty="l1", dual=False)``, by the same steps. The equation is
    in the docstring of this module.

    Parameters
    ----------
    codes
        (n, D).
    labels
        (n,) of 0 .. num_classes - 1.
    num_classes
        K. Two classes share one machine, positive for class 1.
    seed
        of the order in which codes are visited.
    C
        the weight of the loss against the penalty.
    tol
        a machine stops when the violation of its optimality is this share of the first one (times the share of the
        smaller of its two sides).
    max_iter
        the most iterations of a machine.

    Returns
    -------
    weights : array
        (K or 1, D + 1), the intercept last.
    iterations : int
        the most that one machine took.

    References
    ----------
    Yuan, Chang, Hsieh and Lin (2010). A comparison of optimization methods and software for large-scale
    L1-regularized linear classification. JMLR 11.

    Examples
    --------
    >>> codes = np.array([[-2.0, 0.3], [-1.0, -0.3], [1.0, 0.3], [2.0, -0.3]])
    >>> weights, iterations = fit_l1_svm(codes, np.array([0, 0, 1, 1]), 2, seed=0)
    >>> weights.shape
    (1, 3)
    >>> bool(weights[0, 0] > 0), float(weights[0, 1])
    (True, 0.0)
    """
    n, num_codes = codes.shape
    # Filled up with points at zero, which add nothing to any sum.
    x = np.zeros((num_codes + 1, -(-n // _LANES) * _LANES))
    x[:num_codes, :n] = codes.T
    x[num_codes, :n] = 1.0
    positive = np.arange(num_classes) if num_classes > 2 else np.array([1])
    scales = np.sqrt(np.mean(x**2, axis=1))
    scales[scales == 0.0] = 1.0
    lengths = np.sqrt(np.sum((x / scales[:, None]) ** 2, axis=0))
    random = _mersenne_twister(np.random.RandomState(seed).randint(np.iinfo("i").max))
    return _fit_all(_Data(x, n, scales, lengths), labels, positive, (C, tol, max_iter), random)


class _Data(NamedTuple):
    """All points, one row for each code and one of ones."""

    x: FloatArray  # (D + 1, m): the n points, times their sign in a machine, and zeros
    n: int
    scales: FloatArray  # (D + 1,): the root mean square of each row
    lengths: FloatArray  # (m,): of the points in these scales


class _Points(NamedTuple):
    """What a step needs: the points near the margin, one by one, and sums over those far inside it."""

    x: FloatArray  # (D + 1, m): the points near the margin, times their sign
    slack: FloatArray  # (m,): 1 - s_i w . x_i, what a point lacks to reach its margin
    gram: FloatArray  # (D + 1, D + 1): the sum of x_i x_i over the points far inside
    moment: FloatArray  # (D + 1,): the sum of x_i slack_i over them
    radius: float  # how far w may move, in the scales, before a point that is not near can reach the margin


# All machines


@compiled
def _fit_all(
    data: _Data, labels: IntArray, positive: IntArray, settings: tuple[float, float, int], random: State
) -> tuple[FloatArray, int]:
    """One machine for each class in ``positive``, in order; ``settings`` are C, tol and max_iter."""
    C, tol, max_iter = settings
    x, n = data.x, data.n
    weights = np.zeros((len(positive), len(x)))
    most = 0
    signed = np.zeros_like(x)
    for row in range(len(positive)):
        count = 0
        for i in range(n):
            is_positive = labels[i] == positive[row]
            count += is_positive
            for j in range(len(x)):
                signed[j, i] = x[j, i] if is_positive else -x[j, i]
        smaller_side = max(min(count, n - count), 1)
        machine = _Data(signed, n, data.scales, data.lengths)
        iterations = _fit(machine, C, tol * smaller_side / n, max_iter, random, weights[row])
        most = max(most, iterations)
    return weights, most


# One machine


@compiled
def _fit(data: _Data, C: float, tol: float, max_iter: int, random: State, w: FloatArray) -> int:
    """Fill in the weights ``w`` (D + 1,) of one machine. Returns the number of iterations."""
    x, n = data.x, data.n
    size = len(x)
    squares = C * np.sum(x * x, axis=1)
    order = np.arange(size)
    active = size  # weights that are not shrunk away come first in the order
    largest_before, first = np.inf, 0.0
    path = np.inf
    points, centre = _all_points(x, n, w), w.copy()
    for iteration in range(max_iter):
        for j in range(active):
            other = j + _random_below(active - j, random)
            order[j], order[other] = order[other], order[j]
        if points.radius == np.inf and path < np.inf:
            points, centre = _points_near(points, n, data.lengths, _REACH * path), w.copy()
        largest = total = path = 0.0
        s = 0
        while s < active:
            j = order[s]
            slope, curvature = _derivatives(points, j)
            slope, curvature = -2.0 * C * slope, max(2.0 * C * curvature, 1e-12)
            up, down = (
                slope + 1.0,
                slope - 1.0,
            )  # the slopes of loss and penalty to the right and left of w = 0
            violation = 0.0
            if w[j] == 0.0:
                if up < 0.0:
                    violation = -up
                elif down > 0.0:
                    violation = down
                elif up > largest_before / n and down < -largest_before / n:
                    active -= 1
                    order[s], order[active] = order[active], order[s]
                    continue
            else:
                violation = abs(up) if w[j] > 0.0 else abs(down)
            largest = max(largest, violation)
            total += violation
            s += 1
            if up < curvature * w[j]:
                step = -up / curvature
            elif down > curvature * w[j]:
                step = -down / curvature
            else:
                step = -w[j]
            if abs(step) < 1e-12:
                continue
            if points.radius < np.inf and _distance(w, centre, data.scales, j, step) > points.radius:
                points = _all_points(x, n, w)
            step = _line_search(points, j, w[j], step, slope, squares[j], C)
            w[j] += step
            path += abs(step) * data.scales[j]
        if iteration == 0:
            first = total
        if total <= tol * first:
            if active == size:
                return iteration + 1
            active = size
            largest_before = np.inf
        else:
            largest_before = largest
    return max_iter


@compiled
def _distance(w: FloatArray, centre: FloatArray, scales: FloatArray, changed: int, step: float) -> float:
    """How far w is from ``centre``, in the scales, after a step of one weight."""
    square = 0.0
    for j in range(len(w)):
        difference = w[j] - centre[j] + (step if j == changed else 0.0)
        square += (difference * scales[j]) ** 2
    return math.sqrt(square)


@compiled
def _line_search(
    points: _Points, j: int, w: float, step: float, slope: float, square: float, C: float
) -> float:
    """The step or a half, a quarter, … of it, which decreases the objective enough; updates the slack of the points."""
    predicted = abs(w + step) - abs(w) + slope * step
    taken = before = 0.0
    for halvings in range(_HALVINGS):
        condition = abs(w + step) - abs(w) - _DECREASE * predicted
        if square * step * step + slope * step + condition <= 0.0:
            break
        if halvings == 0:
            before = _loss(points.slack)
        _add_multiple(points.slack, points.x[j], taken - step)
        taken = step
        far = step * (step * points.gram[j, j] - 2.0 * points.moment[j])
        if condition + C * (_loss(points.slack) - before + far) <= 0.0:
            break
        step *= 0.5
        predicted *= 0.5
    if taken != step:
        _add_multiple(points.slack, points.x[j], taken - step)
    for k in range(len(points.moment)):
        points.moment[k] -= step * points.gram[j, k]
    return step


# Points, and sums over them


@compiled
def _all_points(x: FloatArray, n: int, w: FloatArray) -> _Points:
    """All points, as near the margin, with their slack at ``w``."""
    size, padded = x.shape
    slack = np.zeros(padded)
    slack[:n] = 1.0
    for j in range(size):
        if w[j] != 0.0:
            _add_multiple(slack, x[j], -w[j])
    return _Points(x, slack, np.zeros((size, size)), np.zeros(size), np.inf)


@compiled
def _points_near(points: _Points, n: int, lengths: FloatArray, radius: float) -> _Points:
    """The points that may reach the margin when w moves by ``radius``, if they are few, and sums over the others."""
    near, far = np.empty(n, np.int64), np.empty(n, np.int64)
    num_near = num_far = 0
    for i in range(n):
        if abs(points.slack[i]) <= radius * lengths[i]:
            near[num_near] = i
            num_near += 1
        elif points.slack[i] > 0.0:
            far[num_far] = i
            num_far += 1
    if num_near > _NEAR * n:
        return points
    far_x, far_slack = _gather(points, far[:num_far])
    size = len(far_x)
    gram, moment = np.empty((size, size)), np.empty(size)
    for j in range(size):
        moment[j] = _dot(far_x[j], far_slack)
        for k in range(j + 1):
            gram[j, k] = gram[k, j] = _dot(far_x[j], far_x[k])
    near_x, near_slack = _gather(points, near[:num_near])
    return _Points(near_x, near_slack, gram, moment, radius)


@compiled
def _gather(points: _Points, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    """Some points and their slack, filled up with zeros."""
    padded = -(-len(rows) // _LANES) * _LANES
    x, slack = np.zeros((len(points.x), padded)), np.zeros(padded)
    for j in range(len(x)):
        for i in range(len(rows)):
            x[j, i] = points.x[j, rows[i]]
    for i in range(len(rows)):
        slack[i] = points.slack[rows[i]]
    return x, slack


@compiled
def _derivatives(points: _Points, j: int) -> tuple[float, float]:
    """sum_i x_ij slack_i and sum_i x_ij^2 over points that have slack."""
    x, slack = points.x[j].reshape(-1, _LANES), points.slack.reshape(-1, _LANES)
    first, second = np.zeros(_LANES), np.zeros(_LANES)
    for i in range(len(x)):
        for lane in range(_LANES):
            value = x[i, lane] if slack[i, lane] > 0.0 else 0.0
            first[lane] += value * slack[i, lane]
            second[lane] += value * value
    return first.sum() + points.moment[j], second.sum() + points.gram[j, j]


@compiled
def _loss(slack: FloatArray) -> float:
    """sum_i max(0, slack_i)^2."""
    lanes = slack.reshape(-1, _LANES)
    total = np.zeros(_LANES)
    for i in range(len(lanes)):
        for lane in range(_LANES):
            total[lane] += max(lanes[i, lane], 0.0) ** 2
    return float(total.sum())


@compiled
def _dot(a: FloatArray, b: FloatArray) -> float:
    """sum_i a_i b_i."""
    a_lanes, b_lanes = a.reshape(-1, _LANES), b.reshape(-1, _LANES)
    total = np.zeros(_LANES)
    for i in range(len(a_lanes)):
        for lane in range(_LANES):
            total[lane] += a_lanes[i, lane] * b_lanes[i, lane]
    return float(total.sum())


@compiled
def _add_multiple(slack: FloatArray, x: FloatArray, factor: float) -> None:
    """Add ``factor`` times x_i to the slack of each point."""
    for i in range(len(x)):
        slack[i] += factor * x[i]


# Random numbers: the Mersenne Twister as C++ and so liblinear has it

_STATE_WORDS, _AHEAD = 624, 397


def _mersenne_twister(seed: int) -> State:
    """The state of std::mt19937(seed): 624 words, and the index of the next one."""
    words = np.random.RandomState(seed).get_state(legacy=False)["state"]["key"]
    return np.append(words, _STATE_WORDS).astype(np.uint32)


@compiled
def _random_below(size: int, state: State) -> int:
    """A random number 0 .. size - 1, without bias (Lemire, 2019)."""
    product = np.uint64(_next_word(state)) * np.uint64(size)
    low = product & np.uint64(0xFFFFFFFF)
    if low < np.uint64(size):
        least = np.uint64((1 << 32) % size)
        while low < least:
            product = np.uint64(_next_word(state)) * np.uint64(size)
            low = product & np.uint64(0xFFFFFFFF)
    return int(product >> np.uint64(32))


@compiled
def _next_word(state: State) -> int:
    """The next 32 random bits."""
    if state[_STATE_WORDS] == _STATE_WORDS:
        for i in range(_STATE_WORDS):
            upper = state[i] & np.uint32(0x80000000)
            lower = state[(i + 1) % _STATE_WORDS] & np.uint32(0x7FFFFFFF)
            mixed = upper | lower
            twisted = mixed >> np.uint32(1)
            if mixed & np.uint32(1):
                twisted ^= np.uint32(0x9908B0DF)
            state[i] = state[(i + _AHEAD) % _STATE_WORDS] ^ twisted
        state[_STATE_WORDS] = 0
    word = state[state[_STATE_WORDS]]
    state[_STATE_WORDS] += np.uint32(1)
    word ^= word >> np.uint32(11)
    word ^= (word << np.uint32(7)) & np.uint32(0x9D2C5680)
    word ^= (word << np.uint32(15)) & np.uint32(0xEFC60000)
    word ^= word >> np.uint32(18)
    return int(word)
