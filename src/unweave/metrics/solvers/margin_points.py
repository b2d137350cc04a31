"""Points that are looked at one by one because they are near the margin of a machine, and sums over the others.

A step of `l1_machines` needs sums over the points that have not reached their margin. Most points stay
on their side of it for many steps. The sums over those far inside are kept as a Gram matrix, and only the points near
the margin are looked at: which these are is known as long as the weights have moved less than a radius.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unweave.metrics.solvers.compiled import compiled

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

LANES = 32  # sums are made side by side, which a processor does at once
_NEAR = 0.3  # the largest share of points near the margin that is worth keeping sums of the others


class Points(NamedTuple):
    """What steps look at: points one by one, and sums over those that are far inside the margin."""

    x: Array  # (D + 1, m): the points near the margin, times their sign
    room: Array  # (m,): 1 - s_i w . x_i, what a point lacks to reach its margin
    gram: Array  # (D + 1, D + 1): sum of x_i x_i over points far inside
    pull: Array  # (D + 1,): sum of x_i room_i over them
    radius: float  # how far w may move, in ``scales``, before a point far off can reach the margin


@compiled
def all_points(x: Array, n: int, w: Array) -> Points:
    """All points as they are at ``w``, to be looked at one by one."""
    size, full = x.shape
    room = np.zeros(full)
    room[:n] = 1.0
    for j in range(size):
        if w[j] != 0.0:
            move(x[j], room, -w[j])
    return Points(x, room, np.zeros((size, size)), np.zeros(size), np.inf)


@compiled
def narrowed(points: Points, n: int, lengths: Array, radius: float) -> Points:
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
    return Points(close, room, gram, pull, radius)


@compiled
def _gathered(points: Points, rows: Labels) -> tuple[Array, Array]:
    """Some points and their room, filled up with zeros."""
    full = -(-len(rows) // LANES) * LANES
    x, room = np.zeros((len(points.x), full)), np.zeros(full)
    for j in range(len(x)):
        for place in range(len(rows)):
            x[j, place] = points.x[j, rows[place]]
    for place in range(len(rows)):
        room[place] = points.room[rows[place]]
    return x, room


@compiled
def derivatives(points: Points, j: int) -> tuple[float, float]:
    """sum_i x_ij room_i and sum_i x_ij^2 over points that have room."""
    x, room = points.x[j].reshape(-1, LANES), points.room.reshape(-1, LANES)
    first, second = np.zeros(LANES), np.zeros(LANES)
    for i in range(len(x)):
        for lane in range(LANES):
            value = x[i, lane] if room[i, lane] > 0.0 else 0.0
            first[lane] += value * room[i, lane]
            second[lane] += value * value
    return first.sum() + points.pull[j], second.sum() + points.gram[j, j]


@compiled
def loss(room: Array) -> float:
    """sum_i max(0, room_i)^2."""
    lanes = room.reshape(-1, LANES)
    total = np.zeros(LANES)
    for i in range(len(lanes)):
        for lane in range(LANES):
            total[lane] += max(lanes[i, lane], 0.0) ** 2
    return float(total.sum())


@compiled
def _dot(one: Array, other: Array) -> float:
    left, right = one.reshape(-1, LANES), other.reshape(-1, LANES)
    total = np.zeros(LANES)
    for i in range(len(left)):
        for lane in range(LANES):
            total[lane] += left[i, lane] * right[i, lane]
    return float(total.sum())


@compiled
def move(x: Array, room: Array, length: float) -> None:
    """Add ``length`` x_i to the room of each point."""
    for i in range(len(x)):
        room[i] += length * x[i]
