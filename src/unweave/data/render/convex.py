"""Parallel rays against convex bodies: the geometry behind the solids.

A body is the intersection of half spaces n . p <= d with at most one quadric

    q(p) = a x^2 + b y^2 + c z^2 + 2 d z + e <= 0,

all in the body's own frame. That covers boxes, wedges and prisms (half spaces only), ellipsoids,
cylinders and cones; a second quadric may be bored out of it. A ray is inside each of these sets for
one interval of t, so the body is entered at the largest lower end if that does not exceed the
smallest upper end.

With parallel rays p(t) = u R + v U + t F (image plane R, U; direction F) the ends belonging to a
half space are affine in (u, v), and the discriminant of a quadric is a quadratic in (u, v). Whole
rectangles of rays therefore cost a few additions of a column to a row, and only the rectangle of
the image that a body can touch is looked at.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unweave.arrays import FloatArray
from unweave.data.render.camera import Vector, View, dot

Plane = tuple[Vector, float]
Quadric = tuple[float, float, float, float, float]

# A surface's number is SURFACES * body + face: the half spaces in order, then these two.
SURFACES = 16
QUADRIC_FACE = 14
BORE_FACE = 15
NO_SURFACE = -1

# Stands in for slopes of (nearly) zero: the plane or root then lies so far away that it decides nothing.
_TINY = 1e-9


@dataclass(frozen=True)
class Body:
    """A convex body. `axes` are its own frame's unit vectors and `centre` that frame's origin, in
    world coordinates; `half` is the half size of a box about the origin of the frame that holds it."""

    axes: tuple[Vector, Vector, Vector]
    centre: Vector
    half: Vector
    planes: tuple[Plane, ...] = ()
    quadric: Quadric | None = None
    bore: Quadric | None = None

    def __post_init__(self) -> None:
        if len(self.planes) > QUADRIC_FACE:
            raise ValueError(f"planes has {len(self.planes)} entries; at most {QUADRIC_FACE} are allowed")


@dataclass(frozen=True)
class Grid:
    """Rays on a square grid: `count` by `count`, `spacing` apart, centred on the view's axis."""

    count: int
    spacing: float

    def positions(self) -> FloatArray:
        """Positions along an axis, ascending, shape (count,)."""
        return (np.arange(self.count, dtype=np.float64) + 0.5 - self.count / 2) * self.spacing

    def range(self, centre: float, half: float) -> tuple[int, int]:
        """First and one past the last index whose position is within `half` of `centre`."""
        middle = self.count / 2 - 0.5
        first = math.ceil((centre - half) / self.spacing + middle)
        last = math.floor((centre + half) / self.spacing + middle)
        return max(first, 0), min(last + 1, self.count)


def trace_bodies(bodies: tuple[Body, ...], view: View, grid: Grid) -> tuple[FloatArray, NDArray[np.int16]]:
    """Nearest surface along every ray.

    Args:
        bodies: what is seen.
        view: image plane and direction; depths are measured from the plane through the world's
            origin, and `view.eye` is not used.
        grid: the rays; index [i, j] is the ray at v = positions[i], u = positions[j].

    Returns:
        depth: float64, shape (count, count), infinite where nothing is hit.
        surface: int16, same shape, number of the surface hit or NO_SURFACE.
    """
    depth = np.full((grid.count, grid.count), np.inf)
    surface = np.full((grid.count, grid.count), NO_SURFACE, dtype=np.int16)
    positions = grid.positions()
    for number, body in enumerate(bodies):
        across, upward, along = local_slopes(body, view)
        j0, j1 = grid.range(dot(view.right, body.centre), _reach(across, body.half))
        i0, i1 = grid.range(dot(view.up, body.centre), _reach(upward, body.half))
        if j0 >= j1 or i0 >= i1:
            continue
        start = local_start(body)
        near, far, face = _interval(body, across, upward, along, start, positions[j0:j1], positions[i0:i1])
        seen = near <= far
        seen &= near < depth[i0:i1, j0:j1]
        np.copyto(depth[i0:i1, j0:j1], near, where=seen)
        face += SURFACES * number
        np.copyto(surface[i0:i1, j0:j1], face, where=seen)
    return depth, surface


def local_slopes(body: Body, view: View) -> tuple[Vector, Vector, Vector]:
    """How the body's local coordinates change with u, v and t."""
    x, y, z = body.axes
    right, up, forward = view.right, view.up, view.forward
    return (
        (dot(x, right), dot(y, right), dot(z, right)),
        (dot(x, up), dot(y, up), dot(z, up)),
        (dot(x, forward), dot(y, forward), dot(z, forward)),
    )


def local_start(body: Body) -> Vector:
    """The body's local coordinates at u = v = t = 0."""
    x, y, z = body.axes
    return -dot(x, body.centre), -dot(y, body.centre), -dot(z, body.centre)


def _reach(slopes: Vector, half: Vector) -> float:
    return abs(slopes[0]) * half[0] + abs(slopes[1]) * half[1] + abs(slopes[2]) * half[2]


def _interval(
    body: Body, across: Vector, upward: Vector, along: Vector, start: Vector, u: FloatArray, v: FloatArray
) -> tuple[FloatArray, FloatArray, NDArray[np.int16]]:
    """Where rays (v[:, None], u[None, :]) enter and leave the body, and by which face they enter.

    A ray that misses has an entry beyond its exit. All results have shape (len(v), len(u)).
    """
    shape = (len(v), len(u))
    near, far = np.full(shape, -np.inf), np.full(shape, np.inf)
    face = np.zeros(shape, dtype=np.int16)
    if body.quadric is not None:
        near, far = _quadric_interval(body.quadric, across, upward, along, start, u, v)
        face += QUADRIC_FACE
    for number, (normal, offset) in enumerate(body.planes):
        slope = dot(normal, along)
        if abs(slope) < _TINY:
            slope = _TINY
        column = (-dot(normal, across) / slope) * u + (offset - dot(normal, start)) / slope
        row = (-dot(normal, upward) / slope) * v
        ends = row[:, None] + column[None, :]
        if slope < 0:
            np.copyto(face, np.int16(number), where=ends > near)
            np.maximum(near, ends, out=near)
        else:
            np.minimum(far, ends, out=far)
    if body.bore is not None:
        enter, leave = _quadric_interval(body.bore, across, upward, along, start, u, v)
        # An entry inside the bore is no surface: the ray goes on to the bore's far wall.
        hollow = (near > enter) & (near < leave)
        np.copyto(near, leave, where=hollow)
        np.copyto(face, np.int16(BORE_FACE), where=hollow)
    return near, far, face


def _quadric_interval(
    quadric: Quadric,
    across: Vector,
    upward: Vector,
    along: Vector,
    start: Vector,
    u: FloatArray,
    v: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Interval of t for which a t^2 + 2 b t + c <= 0, with b affine and c quadratic in (u, v).

    b^2 - a c is expanded into a polynomial in (u, v) whose coefficients are plain numbers. If a < 0
    (a ray steeper than the cone it meets) the set has two rays as its parts; the one on the nappe in
    which the radius is positive is kept.
    """
    weights, d, e = quadric[:3], quadric[3], quadric[4]
    uu, vv, tt = (_form(weights, s, s) for s in (across, upward, along))
    uv, ut, vt = _form(weights, across, upward), _form(weights, across, along), _form(weights, upward, along)
    u0 = _form(weights, across, start) + d * across[2]
    v0 = _form(weights, upward, start) + d * upward[2]
    t0 = _form(weights, along, start) + d * along[2]
    c0 = _form(weights, start, start) + 2.0 * d * start[2] + e
    a = tt if abs(tt) > _TINY else _TINY
    column = ((ut * ut - a * uu) * u + 2.0 * (ut * t0 - a * u0)) * u + (t0 * t0 - a * c0)
    row = ((vt * vt - a * vv) * v + 2.0 * (vt * t0 - a * v0)) * v
    discriminant = (2.0 * (ut * vt - a * uv) * v)[:, None] * u[None, :]
    discriminant += row[:, None]
    discriminant += column[None, :]
    missed = discriminant < 0.0
    np.maximum(discriminant, 0.0, out=discriminant)
    root = np.sqrt(discriminant, out=discriminant)
    root /= a
    middle = ((-vt / a) * v)[:, None] + ((-ut / a) * u - t0 / a)[None, :]
    near, far = middle - root, middle + root
    if a < 0:
        if d * along[2] < 0:
            far.fill(np.inf)
        else:
            near.fill(-np.inf)
    np.copyto(near, np.inf, where=missed)
    np.copyto(far, -np.inf, where=missed)
    return near, far


def _form(weights: Vector, a: Vector, b: Vector) -> float:
    return weights[0] * a[0] * b[0] + weights[1] * a[1] * b[1] + weights[2] * a[2] * b[2]
