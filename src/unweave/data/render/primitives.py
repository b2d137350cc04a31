"""Where rays meet a box, a sphere, an upright cylinder and an upright capsule.

A ray is p(t) = o + t d. Every function takes its origin and direction as three components each,
which may be floats or arrays that broadcast against one another, and returns the distance t of the
first hit with t > 0 (infinity where there is none) and the three components of the outward unit
normal there (arbitrary where there is no hit). The origin is assumed to be outside the body.
"""

import numpy as np

from unweave.arrays import FloatArray

Components = tuple[FloatArray | float, FloatArray | float, FloatArray | float]
Hit = tuple[FloatArray, tuple[FloatArray, FloatArray, FloatArray]]

# Stands in for a direction component of exactly zero: the ray then meets the slab's planes so far
# away that the comparison of distances gives the right answer without a division by zero.
_TINY = 1e-30


def box_hit(origin: Components, direction: Components, centre: Components, half: Components) -> Hit:
    """Axis-parallel box by the slab method.

    Per axis the ray is inside the slab for t in [near, far]; the box is hit at the largest near if
    this does not exceed the smallest far.
    """
    nears, fars, steps = [], [], []
    for o, d, c, h in zip(origin, direction, centre, half, strict=True):
        step = _nonzero(d)
        first, second = (c - h - o) / step, (c + h - o) / step
        nears.append(np.minimum(first, second))
        fars.append(np.maximum(first, second))
        steps.append(step)
    near = np.maximum(np.maximum(nears[0], nears[1]), nears[2])
    far = np.minimum(np.minimum(fars[0], fars[1]), fars[2])
    t = np.where((near <= far) & (near > 0), near, np.inf)
    x, y, z = (np.where(nears[i] == near, -np.sign(steps[i]), 0.0) for i in range(3))
    # At an edge two axes tie; the first one wins so that the normal keeps length 1.
    y = np.where(x != 0, 0.0, y)
    z = np.where((x != 0) | (y != 0), 0.0, z)
    return t, (x, y, z)


def sphere_hit(origin: Components, direction: Components, centre: Components, radius: float) -> Hit:
    """Sphere: |o - c + t d|^2 = r^2, the smaller root."""
    x, y, z = (np.asarray(o - c, dtype=np.float64) for o, c in zip(origin, centre, strict=True))
    dx, dy, dz = direction
    a = dx * dx + dy * dy + dz * dz
    b = x * dx + y * dy + z * dz
    c = x * x + y * y + z * z - radius * radius
    t = _first_root(a, b, c)
    return t, _normal(x, y, z, dx, dy, dz, t, radius)


def cylinder_hit(
    origin: Components, direction: Components, centre: Components, radius: float, half_height: float
) -> Hit:
    """Cylinder with a vertical axis, closed by two discs."""
    x, y, z = (np.asarray(o - c, dtype=np.float64) for o, c in zip(origin, centre, strict=True))
    dx, dy = direction[0], direction[1]
    dz = _nonzero(direction[2])
    side = _first_root(dx * dx + dy * dy + _TINY, x * dx + y * dy, x * x + y * y - radius * radius)
    with np.errstate(invalid="ignore"):
        side = np.where(np.abs(z + side * dz) <= half_height, side, np.inf)
    # Only the disc that faces the ray can be entered from outside.
    disc = (-np.sign(dz) * half_height - z) / dz
    px, py = x + disc * dx, y + disc * dy
    disc = np.where((px * px + py * py <= radius * radius) & (disc > 0), disc, np.inf)
    t = np.minimum(side, disc)
    nx, ny, _ = _normal(x, y, z, dx, dy, 0.0, t, radius)
    on_disc = disc <= side
    zero = np.zeros_like(t)
    return t, (
        np.where(on_disc, zero, nx),
        np.where(on_disc, zero, ny),
        np.where(on_disc, -np.sign(dz), zero),
    )


def capsule_hit(
    origin: Components, direction: Components, centre: Components, radius: float, half_height: float
) -> Hit:
    """Upright capsule: a cylinder of half height `half_height` with a half sphere on either end.

    The first hit of the union of the open cylinder's side and the two spheres is the first hit of
    the capsule, since the spheres' inner halves are hidden inside the body.
    """
    x, y, z = (np.asarray(o - c, dtype=np.float64) for o, c in zip(origin, centre, strict=True))
    dx, dy, dz = direction
    side = _first_root(dx * dx + dy * dy + _TINY, x * dx + y * dy, x * x + y * y - radius * radius)
    with np.errstate(invalid="ignore"):
        side = np.where(np.abs(z + side * dz) <= half_height, side, np.inf)
    top, _ = sphere_hit((x, y, z), direction, (0.0, 0.0, half_height), radius)
    bottom, _ = sphere_hit((x, y, z), direction, (0.0, 0.0, -half_height), radius)
    t = np.minimum(np.minimum(top, bottom), side)
    nx, ny, pz = _normal(x, y, z, dx, dy, dz, t, radius)
    nearest_axis_point = np.minimum(np.maximum(pz * radius, -half_height), half_height) / radius
    return t, (nx, ny, pz - nearest_axis_point)


def _nonzero(value: FloatArray | float) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    return np.where(array == 0.0, _TINY, array)


def _first_root(a: FloatArray | float, b: FloatArray | float, c: FloatArray | float) -> FloatArray:
    """Smaller root of a t^2 + 2 b t + c = 0 if real and positive, else infinity."""
    discriminant = np.asarray(b * b - a * c)
    root = np.sqrt(np.maximum(discriminant, 0.0))
    t = (-b - root) / a
    return np.where((discriminant >= 0) & (t > 0), t, np.inf)


def _normal(
    x: FloatArray,
    y: FloatArray,
    z: FloatArray,
    dx: FloatArray | float,
    dy: FloatArray | float,
    dz: FloatArray | float,
    t: FloatArray,
    radius: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(o + t d) / r, with misses (t infinite) replaced by t = 0 to stay finite."""
    finite = np.where(np.isfinite(t), t, 0.0)
    return (x + finite * dx) / radius, (y + finite * dy) / radius, (z + finite * dz) / radius
