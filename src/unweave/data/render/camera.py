"""Cameras: perspective rays for the rooms, an orthographic view for the solids.

World axes: x to the right, y away from the viewer, z up. Angles are in degrees. Sines and cosines
are the only transcendental functions used anywhere in the renderer; they are taken from `math` for
a handful of parameters and rounded to twelve decimals, so that a last-digit difference between C
libraries cannot reach a pixel. All per-pixel arithmetic is + - * / and sqrt, which IEEE 754
defines exactly.
"""

import math
from dataclasses import dataclass

import numpy as np

from unweave.arrays import FloatArray

Vector = tuple[float, float, float]

IMAGE_SIZE = 64


def circle(degrees: float) -> tuple[float, float]:
    """Return (cos, sin) of an angle, rounded to twelve decimals."""
    radians = math.radians(degrees)
    return round(math.cos(radians), 12), round(math.sin(radians), 12)


def dot(a: Vector, b: Vector) -> float:
    """Scalar product of two vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def sample_positions(samples: int) -> FloatArray:
    """Positions of the sub-samples along one image axis, in pixels from the image centre.

    Shape (IMAGE_SIZE * samples,). They are symmetric about 0 and never equal to 0.
    """
    count = IMAGE_SIZE * samples
    return (np.arange(count, dtype=np.float64) + 0.5) / samples - IMAGE_SIZE / 2


@dataclass(frozen=True)
class View:
    """A camera frame: unit vectors to the right, up and forward, and the eye's position."""

    right: Vector
    up: Vector
    forward: Vector
    eye: Vector


def orbit_view(azimuth: float, elevation: float, distance: float, target_height: float) -> View:
    """A camera on a circle about the z axis, looking along its own elevation.

    At azimuth 0 it stands at negative y and looks to positive y; it moves to positive x as the
    azimuth grows. `elevation` is the downward tilt of the viewing direction, and the line of sight
    meets the z axis at `target_height`.
    """
    cos_a, sin_a = circle(azimuth)
    cos_e, sin_e = circle(elevation)
    forward = (-sin_a * cos_e, cos_a * cos_e, -sin_e)
    eye = (-distance * forward[0], -distance * forward[1], target_height - distance * forward[2])
    return View((cos_a, sin_a, 0.0), (-sin_a * sin_e, cos_a * sin_e, cos_e), forward, eye)


def perspective_directions(
    view: View, focal_length: float, samples: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Directions (not normalised) of the rays through all sub-samples.

    Args:
        view: the camera frame; all rays start at `view.eye`.
        focal_length: in pixels.
        samples: sub-samples per pixel and axis.

    Returns:
        The x, y and z components, each of shape (64 * samples, 64 * samples); row 0 is the top.
    """
    across = sample_positions(samples)[None, :] / focal_length
    upward = -sample_positions(samples)[:, None] / focal_length
    x, y, z = (view.forward[i] + across * view.right[i] + upward * view.up[i] for i in range(3))
    return x, y, z
