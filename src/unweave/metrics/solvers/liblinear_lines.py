"""liblinear's support vector machines that see one number per point, with its steps and its stopping rule."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from unweave.metrics.solvers.compiled import compiled
from unweave.metrics.solvers.line_classifiers import Sums, active_sums, groups, prefix_sums

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Pair = tuple[float, float]
Quadratic = tuple[float, float, float]


def liblinear_lines(x: Array, labels: Labels, classes: int, penalty: float, tolerance: float = 1e-4) -> Array:
    """As `squared_hinge_lines`, but stopping where scikit-learn's LinearSVC(dual=False) does by default.

    The method is the trust region Newton method of Lin, Weng and Keerthi (2008), as liblinear has it: from w = b = 0,
    Newton steps by conjugate gradients to a tenth of the gradient or to the edge of the region, until the gradient is
    below ``tolerance`` x (share of the smaller side) x the first gradient, or 1000 steps were made. Where codes are
    far from unit scale this is far from the optimum, so scores made with liblinear can be met by its steps only.
    """
    shifted, grouped, starts, wanted, centre, weights, rest = groups(x, labels, classes, penalty)
    return _all_lines(shifted, grouped, starts, wanted, centre, weights, rest, tolerance)


@compiled
def _all_lines(
    x: Array,
    grouped: Array,
    starts: Labels,
    wanted: Labels,
    centre: float,
    weights: Array,
    rest: float,
    tolerance: float,
) -> Array:
    lines = np.empty((len(wanted), 2))
    everything = prefix_sums(x)
    for row in range(len(wanted)):
        k = wanted[row]
        inside = grouped[starts[k] : starts[k + 1]]
        smaller = max(min(len(inside), len(x) - len(inside)), 1)
        lines[row] = _line(
            x, everything, inside, prefix_sums(inside), centre, weights[k], rest, tolerance * smaller / len(x)
        )
    return lines


@compiled
def _line(
    x: Array,
    x_sums: Array,
    inside: Array,
    inside_sums: Array,
    centre: float,
    c_in: float,
    c_out: float,
    tolerance: float,
) -> Array:
    """One machine: slope and intercept. ``x`` and ``inside`` are shifted by ``centre``, the line is not."""
    w, b = 0.0, 0.0
    line = np.zeros(2)
    kept, rest = active_sums(x, x_sums, inside, inside_sums, line)
    loss = _loss(w, b, kept, rest, centre, c_in, c_out)
    gradient, hessian = _derivatives(w, b, kept, rest, centre, c_in, c_out)
    first = radius = math.hypot(gradient[0], gradient[1])
    steps = 0
    while steps < 1000 and first >= tolerance:
        step, residual = _step_inside(gradient, hessian, radius)
        line[0], line[1] = w + step[0], b + step[1] + (w + step[0]) * centre
        kept, rest = active_sums(x, x_sums, inside, inside_sums, line)
        new_loss = _loss(w + step[0], b + step[1], kept, rest, centre, c_in, c_out)
        slope = _dot(gradient, step)
        predicted, actual = -0.5 * (slope - _dot(step, residual)), loss - new_loss
        length = math.hypot(step[0], step[1])
        if steps == 0:
            radius = min(radius, length)
        radius = _new_radius(radius, length, slope, new_loss - loss - slope, predicted, actual)
        if actual > 1e-4 * predicted:
            steps += 1
            w, b, loss = w + step[0], b + step[1], new_loss
            gradient, hessian = _derivatives(w, b, kept, rest, centre, c_in, c_out)
            if math.hypot(gradient[0], gradient[1]) <= tolerance * first:
                break
        if max(abs(actual), abs(predicted)) <= 1e-12 * abs(loss) or (actual == 0.0 and predicted <= 0.0):
            break
        if math.isnan(actual) or math.isnan(predicted):
            break
    line[0], line[1] = w, b
    return line


@compiled
def _step_inside(gradient: Pair, hessian: Quadratic, radius: float) -> tuple[Pair, Pair]:
    """Conjugate gradients for a Newton step no longer than ``radius``, and what it leaves of -gradient."""
    step, rest = (0.0, 0.0), (-gradient[0], -gradient[1])
    direction, square = rest, _dot(rest, rest)
    enough = 0.1 * math.sqrt(square)
    while math.sqrt(_dot(rest, rest)) > enough:
        bent = (
            hessian[0] * direction[0] + hessian[1] * direction[1],
            hessian[1] * direction[0] + hessian[2] * direction[1],
        )
        length = square / _dot(direction, bent)
        if not length > 0.0:  # codes so large that their fourth powers are no numbers
            break
        longer = (step[0] + length * direction[0], step[1] + length * direction[1])
        if math.hypot(longer[0], longer[1]) > radius:
            along, left = _dot(step, direction), radius * radius - _dot(step, step)
            own = _dot(direction, direction)
            root = math.sqrt(along * along + own * left)
            length = left / (along + root) if along >= 0.0 else (root - along) / own
            step = (step[0] + length * direction[0], step[1] + length * direction[1])
            rest = (rest[0] - length * bent[0], rest[1] - length * bent[1])
            break
        step = longer
        rest = (rest[0] - length * bent[0], rest[1] - length * bent[1])
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
def _loss(w: float, b: float, kept: Sums, rest: Sums, centre: float, c_in: float, c_out: float) -> float:
    """Half the squared norm of (w, b) and the weighted squares; the sums are those of shifted points."""
    shifted = b + w * centre
    square_in = w * w * kept[2] + 2.0 * w * (shifted - 1.0) * kept[1] + (shifted - 1.0) ** 2 * kept[0]
    square_out = w * w * rest[2] + 2.0 * w * (shifted + 1.0) * rest[1] + (shifted + 1.0) ** 2 * rest[0]
    return 0.5 * (w * w + b * b) + c_in * square_in + c_out * square_out


@compiled
def _derivatives(
    w: float, b: float, kept: Sums, rest: Sums, centre: float, c_in: float, c_out: float
) -> tuple[Pair, Quadratic]:
    """Gradient and Hessian (ww, wb, bb) in w and b."""
    shifted = b + w * centre
    by_shifted = 2.0 * (
        c_in * (w * kept[1] + (shifted - 1.0) * kept[0]) + c_out * (w * rest[1] + (shifted + 1.0) * rest[0])
    )
    by_w = 2.0 * (
        c_in * (w * kept[2] + (shifted - 1.0) * kept[1]) + c_out * (w * rest[2] + (shifted + 1.0) * rest[1])
    )
    n, first, second = (
        2.0 * (c_in * kept[0] + c_out * rest[0]),
        2.0 * (c_in * kept[1] + c_out * rest[1]),
        2.0 * (c_in * kept[2] + c_out * rest[2]),
    )
    gradient = (w + by_w + centre * by_shifted, b + by_shifted)
    return gradient, (1.0 + second + centre * (2.0 * first + centre * n), first + centre * n, 1.0 + n)


@compiled
def _dot(one: Pair, other: Pair) -> float:
    return one[0] * other[0] + one[1] * other[1]
