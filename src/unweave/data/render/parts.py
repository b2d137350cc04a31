"""Building blocks of the solids: painted convex bodies in convenient shapes.

Lengths are in the model's own units; `fitted` brings a finished model to a common size.
"""

import colorsys
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unweave.data.render.camera import Vector, circle, dot
from unweave.data.render.convex import Body, Plane, Quadric

_WORLD: tuple[Vector, Vector, Vector] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class Paint:
    """Two colours and a pattern in the body's local coordinates p.

    With f1 = frac(wave1 . p + shift1) < fill1 and f2 likewise, the second colour shows where
    f1 xor f2 (if `checked`) or f1 and f2. The default shows the first colour everywhere.
    """

    colour: Vector
    second: Vector = (0.0, 0.0, 0.0)
    wave1: Vector = (0.0, 0.0, 0.0)
    wave2: Vector = (0.0, 0.0, 0.0)
    shift1: float = 0.0
    shift2: float = 0.0
    fill1: float = 0.0
    fill2: float = 1.0
    checked: bool = False


@dataclass(frozen=True)
class Part:
    """A body and how it is painted."""

    body: Body
    paint: Paint


def hsv(hue: float, saturation: float, value: float) -> Vector:
    """Colour with components in [0, 1]; the hue wraps around."""
    return colorsys.hsv_to_rgb(hue - math.floor(hue), saturation, value)


def striped(colour: Vector, second: Vector, wave: Vector, fill: float = 0.5) -> Paint:
    """Stripes across the direction of `wave`, |wave| of them per unit of length."""
    return Paint(colour, second, wave1=wave, fill1=fill, shift1=0.25)


def checked(colour: Vector, second: Vector, per_unit: float) -> Paint:
    """A chequerboard in x and y (and on upright faces in x + y and z)."""
    wave1, wave2 = (per_unit, 0.0, per_unit), (0.0, per_unit, 0.0)
    return Paint(colour, second, wave1, wave2, 0.13, 0.13, 0.5, 0.5, checked=True)


def windows(colour: Vector, second: Vector, across: float, upward: float) -> Paint:
    """A grid of windows on upright faces: `across` and `upward` of them per unit of length."""
    return Paint(colour, second, (across, across, 0.0), (0.0, 0.0, upward), 0.25, 0.25, 0.5, 0.55)


def box(centre: Vector, size: Vector, paint: Paint) -> Part:
    """An upright box."""
    return wedge(centre, size, (1.0, 1.0), (0.0, 0.0), paint)


def wedge(
    centre: Vector, size: Vector, top: tuple[float, float], shift: tuple[float, float], paint: Paint
) -> Part:
    """A box whose top is `top` times as large as its bottom and is moved by `shift`.

    A factor of 0 in one direction makes a gable, in both a pyramid.
    """
    half = (size[0] / 2, size[1] / 2, size[2] / 2)
    planes: list[Plane] = [((0.0, 0.0, 1.0), half[2]), ((0.0, 0.0, -1.0), half[2])]
    for axis in (0, 1):
        for sign in (1.0, -1.0):
            # Outward growth of this side from bottom to top, along its own outward direction.
            growth = half[axis] * (top[axis] - 1.0) + sign * shift[axis]
            lean = growth / size[2]
            normal = (sign, 0.0, -lean) if axis == 0 else (0.0, sign, -lean)
            length = math.sqrt(1.0 + lean * lean)
            unit = (normal[0] / length, normal[1] / length, normal[2] / length)
            planes.append((unit, (half[axis] + growth / 2) / length))
    bound_x, bound_y = (half[i] * max(1.0, top[i]) + abs(shift[i]) for i in (0, 1))
    return Part(Body(_WORLD, centre, (bound_x, bound_y, half[2]), tuple(planes)), paint)


def bar(start: Vector, end: Vector, width: float, thickness: float, paint: Paint) -> Part:
    """A straight bar of rectangular section between two points; `width` is its horizontal side."""
    axes, centre, half = _along(start, end)
    planes: tuple[Plane, ...] = tuple(
        (normal, limit)
        for axis, limit in zip(_WORLD, (width / 2, thickness / 2, half), strict=True)
        for normal in (axis, (-axis[0], -axis[1], -axis[2]))
    )
    return Part(Body(axes, centre, (width / 2, thickness / 2, half), planes), paint)


def rod(start: Vector, end: Vector, radius: float, end_radius: float, paint: Paint) -> Part:
    """A round rod between two points, tapering from one radius to the other: cylinder or cone."""
    axes, centre, half = _along(start, end)
    bound = max(radius, end_radius)
    quadric = _cone(radius, end_radius, half)
    return Part(Body(axes, centre, (bound, bound, half), _caps(half), quadric), paint)


def ring(start: Vector, end: Vector, radius: float, bore: float, paint: Paint) -> Part:
    """A cylinder between two points with a round hole of radius `bore` along its axis."""
    axes, centre, half = _along(start, end)
    hole = _cone(bore, bore, half)
    quadric = _cone(radius, radius, half)
    return Part(Body(axes, centre, (radius, radius, half), _caps(half), quadric, hole), paint)


def ellipsoid(centre: Vector, radii: Vector, paint: Paint) -> Part:
    """An ellipsoid with upright axes."""
    a, b, c = (1.0 / (r * r) for r in radii)
    return Part(Body(_WORLD, centre, radii, quadric=(a, b, c, 0.0, -1.0)), paint)


def fitted(parts: list[Part], elevations: Sequence[float]) -> tuple[tuple[Part, ...], float]:
    """The model moved and scaled, and the height of the ground it stands on.

    Its bounding box is centred on the origin. A point at distance r from the z axis and at height z
    is seen at most r from the middle of the picture sideways and |z| cos e + r sin e upwards or
    downwards; the scale makes the largest of these, over the corners of all bodies, equal to 1.
    """
    corners = [corner for part in parts for corner in _corners(part.body)]
    low, high = ([pick(c[i] for c in corners) for i in range(3)] for pick in (min, max))
    middle: Vector = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2, (low[2] + high[2]) / 2)
    circles = [circle(elevation) for elevation in elevations]
    extent = 0.0
    for corner in corners:
        x, y, z = (c - m for c, m in zip(corner, middle, strict=True))
        r = math.sqrt(x * x + y * y)
        extent = max(extent, r, *(abs(z) * cos + r * sin for cos, sin in circles))
    scale = 1.0 / extent
    return tuple(_scaled(part, middle, scale) for part in parts), scale * (low[2] - middle[2])


def _corners(body: Body) -> list[Vector]:
    """The eight corners of the box that holds a body."""
    corners = []
    for signs in itertools.product((-1.0, 1.0), repeat=3):
        steps = [sign * half for sign, half in zip(signs, body.half, strict=True)]
        x, y, z = (
            body.centre[i]
            + steps[0] * body.axes[0][i]
            + steps[1] * body.axes[1][i]
            + steps[2] * body.axes[2][i]
            for i in range(3)
        )
        corners.append((x, y, z))
    return corners


def _scaled(part: Part, middle: Vector, scale: float) -> Part:
    body, paint = part.body, part.paint
    x, y, z = (scale * (c - m) for c, m in zip(body.centre, middle, strict=True))
    return Part(
        replace(
            body,
            centre=(x, y, z),
            half=_times(body.half, scale),
            planes=tuple((normal, offset * scale) for normal, offset in body.planes),
            quadric=_scaled_quadric(body.quadric, scale),
            bore=_scaled_quadric(body.bore, scale),
        ),
        replace(paint, wave1=_times(paint.wave1, 1.0 / scale), wave2=_times(paint.wave2, 1.0 / scale)),
    )


def _scaled_quadric(quadric: Quadric | None, scale: float) -> Quadric | None:
    if quadric is None:
        return None
    a, b, c, d, e = quadric
    square = scale * scale
    return a / square, b / square, c / square, d / scale, e


def _times(vector: Vector, factor: float) -> Vector:
    return vector[0] * factor, vector[1] * factor, vector[2] * factor


def _caps(half: float) -> tuple[Plane, ...]:
    return ((0.0, 0.0, 1.0), half), ((0.0, 0.0, -1.0), half)


def _cone(start: float, end: float, half: float) -> Quadric:
    """x^2 + y^2 <= r(z)^2 with r linear from `start` at z = -half to `end` at z = half."""
    middle, slope = (start + end) / 2, (end - start) / (2 * half)
    return 1.0, 1.0, -slope * slope, -slope * middle, -middle * middle


def _along(start: Vector, end: Vector) -> tuple[tuple[Vector, Vector, Vector], Vector, float]:
    """A frame with z from `start` to `end` and x horizontal, their midpoint, and half their distance."""
    step = (end[0] - start[0], end[1] - start[1], end[2] - start[2])
    length = math.sqrt(dot(step, step))
    z = _times(step, 1.0 / length)
    flat = math.sqrt(z[0] * z[0] + z[1] * z[1])
    x: Vector = (1.0, 0.0, 0.0) if flat < 1e-9 else (-z[1] / flat, z[0] / flat, 0.0)
    y = (z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0])
    centre = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, (start[2] + end[2]) / 2)
    return (x, y, z), centre, length / 2
