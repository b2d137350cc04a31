"""liblinear's support vector machines with an l1 penalty: its steps, its random order, its stopping rule, faster."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from unweave.metrics.solvers.compiled import compiled
from unweave.metrics.solvers.margin_points import LANES, Points, all_points, derivatives, loss, move, narrowed
from unweave.metrics.solvers.mersenne import random_below, twister

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]

_HALVINGS = 20  # of a step, at most
_DECREASE = 0.01  # the share of the predicted decrease that a step must bring
_REACH = 8.0  # the radius, in lengths of the way of the last round


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
        (size + 1, -(-n // LANES) * LANES)
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
    points, centre = all_points(x, n, w), w.copy()
    for round in range(rounds):
        for j in range(active):
            other = j + random_below(active - j, draws)
            order[j], order[other] = order[other], order[j]
        if points.radius == np.inf and travel < np.inf:
            points, centre = narrowed(points, n, lengths, _REACH * travel), w.copy()
        largest = total = travel = 0.0
        s = 0
        while s < active:
            j = order[s]
            slope, bend = derivatives(points, j)
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
                points = all_points(x, n, w)
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
def _distance(w: Array, centre: Array, scales: Array, moved: int, step: float) -> float:
    """How far w is from where the points were looked at, after a step of one weight."""
    square = 0.0
    for j in range(len(w)):
        way = w[j] - centre[j] + (step if j == moved else 0.0)
        square += (way * scales[j]) ** 2
    return math.sqrt(square)


@compiled
def _search(
    points: Points, j: int, w: float, step: float, slope: float, square: float, penalty: float
) -> float:
    """The step or a half, a quarter, … of it, which decreases the loss enough; ``points`` are moved along."""
    predicted = abs(w + step) - abs(w) + slope * step
    made = before = 0.0
    for halvings in range(_HALVINGS):
        condition = abs(w + step) - abs(w) - _DECREASE * predicted
        if square * step * step + slope * step + condition <= 0.0:
            break
        if halvings == 0:
            before = loss(points.room)
        move(points.x[j], points.room, made - step)
        made = step
        far = step * (step * points.gram[j, j] - 2.0 * points.pull[j])
        if condition + penalty * (loss(points.room) - before + far) <= 0.0:
            break
        step *= 0.5
        predicted *= 0.5
    if made != step:
        move(points.x[j], points.room, made - step)
    for k in range(len(points.pull)):
        points.pull[k] -= step * points.gram[j, k]
    return step
