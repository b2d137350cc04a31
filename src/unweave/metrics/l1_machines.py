"""liblinear's support vector machines with an l1 penalty: its steps, its random order, its stopping rule, faster.

A step needs sums over the points that have not reached their margin. Most points stay on the side of the margin that
they are on for many steps, so the sums over those are kept as a Gram matrix, and only the points near the margin are
looked at: which these are is known as long as the weights have moved less than a radius.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unweave.metrics.compiled import compiled
from unweave.metrics.mersenne import random_below, twister

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]

_LANES = 32  # sums are made side by side, which a processor does at once
_HALVINGS = 20  # of a step, at most
_DECREASE = 0.01  # the share of the predicted decrease that a step must bring
_REACH = 8.0  # the radius, in lengths of the way of the last round
_NEAR = 0.3  # the largest share of points near the margin that is worth keeping sums of the others


class _Points(NamedTuple):
    """What steps look at: points one by one, and sums over those that are far inside the margin."""

    x: Array  # (D + 1, m): the points near the margin, times their sign
    room: Array  # (m,): 1 - s_i w . x_i, what a point lacks to reach its margin
    gram: Array  # (D + 1, D + 1): sum of x_i x_i over points far inside
    pull: Array  # (D + 1,): sum of x_i room_i over them
    radius: float  # how far w may move, in ``scales``, before a point far off can reach the margin


def l1_machines(
    codes: Array,
    labels: Labels,
    classes: int,
    seed: int,
    penalty: float = 1.0,
    tolerance: float = 1e-4,
    rounds: int = 1000,
) -> tuple[Array, int]:
    """Weights (K, D + 1), the intercept last, of each class against the rest; and the most rounds that one took.

    Minimises |w|_1 + C sum_i max(0, 1 - s_i w . x_i)^2 with x_i = (codes, 1), s_i = 1 for the class and -1 for the
    rest, as scikit-learn's LinearSVC(penalty="l1", dual=False) does: coordinate descent from w = 0 with Newton steps,
    line search and shrinking (Yuan, Chang, Hsieh and Lin 2010, section 5). It often stops far from the optimum, by
    its loose rule or after ``rounds``, so its weights can be met by its own steps only, and these visit the codes in
    the random order of liblinear's generator. Two classes share one machine, positive for class 1.
    """
    n, size = codes.shape
    columns = np.zeros(
        (size + 1, -(-n // _LANES) * _LANES)
    )  # filled up with zeros, which add nothing to any sum
    columns[:size, :n] = codes.T
    columns[size, :n] = 1.0
    wanted = np.arange(classes) if classes > 2 else np.array([1])
    scales = np.sqrt(np.mean(columns**2, axis=1))
    scales[scales == 0.0] = 1.0
    lengths = np.sqrt(np.sum((columns / scales[:, None]) ** 2, axis=0))
    draws = twister(np.random.RandomState(seed).randint(np.iinfo("i").max))
    return _all_machines(columns, labels, wanted, scales, lengths, draws, penalty, tolerance, rounds)


@compiled
def _all_machines(
    columns: Array,
    labels: Labels,
    wanted: Labels,
    scales: Array,
    lengths: Array,
    draws: Words,
    penalty: float,
    tolerance: float,
    rounds: int,
) -> tuple[Array, int]:
    n = len(labels)
    weights = np.zeros((len(wanted), len(columns)))
    most = 0
    signed = np.zeros_like(columns)
    for row in range(len(wanted)):
        inside = 0
        for i in range(n):
            mine = labels[i] == wanted[row]
            inside += mine
            for j in range(len(columns)):
                signed[j, i] = columns[j, i] if mine else -columns[j, i]
        enough = tolerance * max(min(inside, n - inside), 1) / n
        took = _machine(signed, n, scales, lengths, penalty, enough, rounds, draws, weights[row])
        most = max(most, took)
    return weights, most


@compiled
def _machine(
    x: Array,
    n: int,
    scales: Array,
    lengths: Array,
    penalty: float,
    tolerance: float,
    rounds: int,
    draws: Words,
    w: Array,
) -> int:
    """One machine: fills in ``w`` (D + 1,). ``x`` (D + 1, …) are the n points times their sign, and zeros."""
    size = len(x)
    squares = penalty * np.sum(x * x, axis=1)
    order = np.arange(size)
    active = size
    largest_before, first = np.inf, 0.0
    travel = np.inf
    points, centre = _all_points(x, n, w), w.copy()
    for round in range(rounds):
        for j in range(active):
            other = j + random_below(active - j, draws)
            order[j], order[other] = order[other], order[j]
        if points.radius == np.inf and travel < np.inf:
            points, centre = _narrowed(points, n, lengths, _REACH * travel), w.copy()
        largest = total = travel = 0.0
        s = 0
        while s < active:
            j = order[s]
            slope, bend = _derivatives(points, j)
            slope, bend = -2.0 * penalty * slope, max(2.0 * penalty * bend, 1e-12)
            up, down = slope + 1.0, slope - 1.0
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
            if up < bend * w[j]:
                step = -up / bend
            elif down > bend * w[j]:
                step = -down / bend
            else:
                step = -w[j]
            if abs(step) < 1e-12:
                continue
            if points.radius < np.inf and _distance(w, centre, scales, j, step) > points.radius:
                points = _all_points(x, n, w)
            step = _search(points, j, w[j], step, slope, squares[j], penalty)
            w[j] += step
            travel += abs(step) * scales[j]
        if round == 0:
            first = total
        if total <= tolerance * first:
            if active == size:
                return round + 1
            active = size
            largest_before = np.inf
        else:
            largest_before = largest
    return rounds


@compiled
def _all_points(x: Array, n: int, w: Array) -> _Points:
    """All points as they are at ``w``, to be looked at one by one."""
    size, full = x.shape
    room = np.zeros(full)
    room[:n] = 1.0
    for j in range(size):
        if w[j] != 0.0:
            _move(x[j], room, -w[j])
    return _Points(x, room, np.zeros((size, size)), np.zeros(size), np.inf)


@compiled
def _narrowed(points: _Points, n: int, lengths: Array, radius: float) -> _Points:
    """Of all points those that may reach the margin when w moves by ``radius``, and sums of the rest, if that pays."""
    near, far = np.empty(n, np.int64), np.empty(n, np.int64)
    nears = fars = 0
    for i in range(n):
        if abs(points.room[i]) <= radius * lengths[i]:
            near[nears] = i
            nears += 1
        elif points.room[i] > 0.0:
            far[fars] = i
            fars += 1
    if nears > _NEAR * n:
        return points
    inside, lack = _gathered(points, far[:fars])
    size = len(inside)
    gram, pull = np.empty((size, size)), np.empty(size)
    for j in range(size):
        pull[j] = _dot(inside[j], lack)
        for k in range(j + 1):
            gram[j, k] = gram[k, j] = _dot(inside[j], inside[k])
    close, room = _gathered(points, near[:nears])
    return _Points(close, room, gram, pull, radius)


@compiled
def _gathered(points: _Points, rows: Labels) -> tuple[Array, Array]:
    """Some points and their room, filled up with zeros."""
    full = -(-len(rows) // _LANES) * _LANES
    x, room = np.zeros((len(points.x), full)), np.zeros(full)
    for j in range(len(x)):
        for place in range(len(rows)):
            x[j, place] = points.x[j, rows[place]]
    for place in range(len(rows)):
        room[place] = points.room[rows[place]]
    return x, room


@compiled
def _distance(w: Array, centre: Array, scales: Array, moved: int, step: float) -> float:
    """How far w is from where the points were looked at, after a step of one weight."""
    square = 0.0
    for j in range(len(w)):
        way = w[j] - centre[j] + (step if j == moved else 0.0)
        square += (way * scales[j]) ** 2
    return math.sqrt(square)


@compiled
def _search(
    points: _Points, j: int, w: float, step: float, slope: float, square: float, penalty: float
) -> float:
    """The step or a half, a quarter, … of it, which decreases the loss enough; ``points`` are moved along."""
    predicted = abs(w + step) - abs(w) + slope * step
    made = before = 0.0
    for halvings in range(_HALVINGS):
        condition = abs(w + step) - abs(w) - _DECREASE * predicted
        if square * step * step + slope * step + condition <= 0.0:
            break
        if halvings == 0:
            before = _loss(points.room)
        _move(points.x[j], points.room, made - step)
        made = step
        far = step * (step * points.gram[j, j] - 2.0 * points.pull[j])
        if condition + penalty * (_loss(points.room) - before + far) <= 0.0:
            break
        step *= 0.5
        predicted *= 0.5
    if made != step:
        _move(points.x[j], points.room, made - step)
    for k in range(len(points.pull)):
        points.pull[k] -= step * points.gram[j, k]
    return step


@compiled
def _derivatives(points: _Points, j: int) -> tuple[float, float]:
    """sum_i x_ij room_i and sum_i x_ij^2 over points that have room."""
    x, room = points.x[j].reshape(-1, _LANES), points.room.reshape(-1, _LANES)
    first, second = np.zeros(_LANES), np.zeros(_LANES)
    for i in range(len(x)):
        for lane in range(_LANES):
            value = x[i, lane] if room[i, lane] > 0.0 else 0.0
            first[lane] += value * room[i, lane]
            second[lane] += value * value
    return first.sum() + points.pull[j], second.sum() + points.gram[j, j]


@compiled
def _loss(room: Array) -> float:
    """sum_i max(0, room_i)^2."""
    lanes = room.reshape(-1, _LANES)
    total = np.zeros(_LANES)
    for i in range(len(lanes)):
        for lane in range(_LANES):
            total[lane] += max(lanes[i, lane], 0.0) ** 2
    return float(total.sum())


@compiled
def _dot(one: Array, other: Array) -> float:
    left, right = one.reshape(-1, _LANES), other.reshape(-1, _LANES)
    total = np.zeros(_LANES)
    for i in range(len(left)):
        for lane in range(_LANES):
            total[lane] += left[i, lane] * right[i, lane]
    return float(total.sum())


@compiled
def _move(x: Array, room: Array, length: float) -> None:
    for i in range(len(x)):
        room[i] += length * x[i]
