"""One room seen from one side: which material each pixel shows, and how brightly lit.

The scene is that of the Shapes3D data set (Burgess and Kim, 2018): a square room open to a pale
sky, one object in its middle, a camera that circles the object. Camera, room, object sizes and
lighting were fitted to published pictures of the set.

A sample shows one material m with brightness b and highlight s, and a hue whose channel value is c
gives it the intensity min(1, b c + s). Shapes3D uses ten equally spaced saturated hues, so c only
takes the six values 0, 1/5, ..., 1 (`CHANNEL_LEVELS`), and one picture per material and level is
enough to compose every colouring of the scene by adding bytes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unweave.arrays import BoolArray, ByteArray, FloatArray
from unweave.data.render.camera import IMAGE_SIZE, Vector, orbit_view, perspective_directions
from unweave.data.render.primitives import Hit, box_hit, capsule_hit, cylinder_hit, sphere_hit

Components = tuple[FloatArray | float, FloatArray | float, FloatArray | float]

CHANNEL_LEVELS = 6
NUM_MATERIALS = 3  # floor, wall, object
NUM_PLANES = NUM_MATERIALS * CHANNEL_LEVELS + 3

_SAMPLES = 3
_FOCAL_LENGTH = 69.4
_CAMERA_DISTANCE = 10.0
_CAMERA_TILT = -0.28
_TARGET_HEIGHT = 3.01
_BACK_WALL = 15.7
_SIDE_WALL = 15.2
_WALL_HEIGHT = 8.4
_SKY = (153, 226, 249)

_LIGHT: Vector = (-3.0, 0.0, 19.7)
_SPOT_CENTRE = (-6.5, 2.5)
_SPOT_WIDTH = 223.0  # squared distance at which the spot has fallen to about 1/e
_FLOOR_AMBIENT = 0.33
_FLOOR_SPOT = 0.96


@dataclass(frozen=True)
class _Surface:
    """What all samples show: arrays of one shape. `distance` is along the ray, in its units."""

    distance: FloatArray
    brightness: FloatArray
    highlight: FloatArray


def room_planes(scale: float, shape: int, azimuth: float) -> ByteArray:
    """Pictures from which every colouring of one scene can be added up.

    Args:
        scale: relative size of the object, 1 in the middle of the range of Shapes3D.
        shape: 0 cube, 1 cylinder, 2 sphere, 3 capsule.
        azimuth: the camera's position on its circle, in degrees.

    Returns:
        uint8, shape (NUM_PLANES, 64 * 64). Plane m * CHANNEL_LEVELS + j is the light that material m
        (0 floor, 1 wall, 2 object) adds to a colour channel in which its hue has the value j / 5.
        The last three planes are the red, green and blue light of the sky. Rounding is downwards,
        so that no sum of one plane per material and one of the sky can exceed 255.
    """
    view = orbit_view(azimuth, _CAMERA_TILT, _CAMERA_DISTANCE, _TARGET_HEIGHT)
    directions = perspective_directions(view, _FOCAL_LENGTH, _SAMPLES)
    surfaces = (
        _floor(view.eye, directions, scale, shape),
        _walls(view.eye, directions),
        _object(view.eye, directions, scale, shape),
    )
    nearest = np.full(directions[0].shape, np.inf)
    for surface in surfaces:
        nearest = np.minimum(nearest, surface.distance)
    planes = np.empty((NUM_PLANES, IMAGE_SIZE * IMAGE_SIZE), dtype=np.uint8)
    for material, surface in enumerate(surfaces):
        seen = (surface.distance == nearest) & np.isfinite(nearest)
        for level in range(CHANNEL_LEVELS):
            light = surface.brightness * (level / (CHANNEL_LEVELS - 1)) + surface.highlight
            byte = np.where(seen, np.minimum(light, 1.0) * 255.0 + 0.5, 0.0).astype(np.int32)
            planes[material * CHANNEL_LEVELS + level] = _pixel_means(byte)
    sky = (~np.isfinite(nearest)).astype(np.int32)
    for channel, value in enumerate(_SKY):
        planes[NUM_MATERIALS * CHANNEL_LEVELS + channel] = _pixel_means(sky * value)
    return planes


def object_hit(origin: Components, direction: Components, scale: float, shape: int) -> Hit:
    """First hit of the rays with the object that stands, a hair above the floor, at the origin."""
    lift = 0.1 * scale
    if shape == 0:
        half = 1.39 * scale
        return box_hit(origin, direction, (0.0, 0.0, half + lift), (half, half, half))
    if shape == 1:
        radius, half = 1.43 * scale, 1.48 * scale
        return cylinder_hit(origin, direction, (0.0, 0.0, half + lift), radius, half)
    if shape == 2:
        radius = 1.66 * scale
        return sphere_hit(origin, direction, (0.0, 0.0, radius + lift), radius)
    radius, half = 1.27 * scale, 1.29 * scale
    return capsule_hit(origin, direction, (0.0, 0.0, radius + half + lift), radius, half)


def _object(eye: Vector, directions: Components, scale: float, shape: int) -> _Surface:
    """The object: ambient light, a lamp at the camera, and the key light with its white gloss."""
    distance, normal = object_hit(eye, directions, scale, shape)
    facing = np.maximum(-_cosine(normal, directions), 0.0)
    finite = np.where(np.isfinite(distance), distance, 0.0)
    x, y, z = (e + finite * d for e, d in zip(eye, directions, strict=True))
    lit = np.maximum(_cosine(normal, (_LIGHT[0] - x, _LIGHT[1] - y, _LIGHT[2] - z)), 0.0)
    # The published pictures show a brighter cap with a visible rim rather than a smooth falloff.
    cap = np.minimum(6.0 * lit, 1.0)
    return _Surface(distance, 0.45 + 0.5 * facing + 0.12 * cap + 0.5 * lit, 0.09 * cap)


def _walls(eye: Vector, directions: Components) -> _Surface:
    """The back wall and the two side walls, mainly lit by the lamp at the camera."""
    dx, dy, dz = (np.asarray(d) for d in directions)
    back = (_BACK_WALL - eye[1]) / dy
    side = (np.sign(dx) * _SIDE_WALL - eye[0]) / dx
    on_back = back <= side
    distance = np.where(on_back, back, side)
    height = eye[2] + distance * dz
    distance = np.where((height >= 0.0) & (height <= _WALL_HEIGHT), distance, np.inf)
    length = np.sqrt(dx * dx + dy * dy + dz * dz)
    along_back, along_side = eye[0] + back * dx, eye[1] + side * dy
    facing = np.where(on_back, dy, np.abs(dx)) / length
    on_back_wall = -0.07 + 1.09 * facing - 0.005 * along_back + 0.0007 * along_back * along_back
    on_right_wall = -1.22 + 2.13 * facing + 0.035 * along_side
    on_left_wall = -1.01 + 2.08 * facing + 0.025 * along_side
    on_side_wall = np.where(dx > 0, on_right_wall, on_left_wall)
    brightness = np.maximum(np.where(on_back, on_back_wall, on_side_wall), 0.0)
    marked = _mark(np.where(on_back, along_back, along_side), height)
    return _Surface(distance, np.where(marked, 0.93, 1.0) * brightness, np.zeros_like(distance))


def _mark(along: FloatArray, height: FloatArray) -> BoolArray:
    """The faint slanted strokes on the walls, repeated every six units of length."""
    offset = along + 2.0 - 6.0 * np.floor((along + 2.0) / 6.0) - 3.0
    return (np.abs(height - 4.6) < 1.3) & (np.abs(offset + 0.9 * (height - 4.6)) < 0.7)


def _floor(eye: Vector, directions: Components, scale: float, shape: int) -> _Surface:
    """The floor: ambient light and a wide spot from the left, with the object's hard shadow."""
    dx, dy, dz = (np.asarray(d) for d in directions)
    downward = dz < 0
    distance = np.where(downward, -eye[2] / np.where(downward, dz, -1.0), np.inf)
    finite = np.where(downward, distance, 0.0)
    x, y = eye[0] + finite * dx, eye[1] + finite * dy
    inside = (y <= _BACK_WALL) & (np.abs(x) <= _SIDE_WALL)
    across, away = x - _SPOT_CENTRE[0], y - _SPOT_CENTRE[1]
    # (1 + r^2 / 8w)^-8 is close to exp(-r^2 / w) and needs no transcendental function.
    fall = 1.0 + (across * across + away * away) / (8.0 * _SPOT_WIDTH)
    fall = fall * fall
    fall = fall * fall
    fall = fall * fall
    to_light = (_LIGHT[0] - x, _LIGHT[1] - y, _LIGHT[2])
    blocked, _ = object_hit((x, y, 0.0), to_light, scale, shape)
    spot = np.where(np.isfinite(blocked), 0.0, _FLOOR_SPOT / fall)
    return _Surface(np.where(inside, distance, np.inf), _FLOOR_AMBIENT + spot, np.zeros_like(distance))


def _cosine(normal: tuple[FloatArray, FloatArray, FloatArray], directions: Components) -> FloatArray:
    dx, dy, dz = (np.asarray(d) for d in directions)
    product = normal[0] * dx + normal[1] * dy + normal[2] * dz
    return np.asarray(product / np.sqrt(dx * dx + dy * dy + dz * dz))


def _pixel_means(samples: NDArray[np.int32]) -> ByteArray:
    """Mean of the sub-samples of each pixel, rounded down; (64 s, 64 s) to (64 * 64,)."""
    rows = sum((samples[i::_SAMPLES] for i in range(1, _SAMPLES)), samples[::_SAMPLES])
    total = sum((rows[:, i::_SAMPLES] for i in range(1, _SAMPLES)), rows[:, ::_SAMPLES])
    return (total // (_SAMPLES * _SAMPLES)).astype(np.uint8).ravel()
