"""From traced surfaces to pixels: patterns, light and the contact shadow of one solid."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unweave.arrays import BoolArray, ByteArray, FloatArray
from unweave.data.render.camera import IMAGE_SIZE, Vector, View
from unweave.data.render.convex import (
    BORE_FACE,
    NO_SURFACE,
    QUADRIC_FACE,
    SURFACES,
    Body,
    Grid,
    local_slopes,
    local_start,
    trace_bodies,
)
from unweave.data.render.parts import Part

_SAMPLES = 2
_GRID = Grid(IMAGE_SIZE * _SAMPLES, 2.16 / (IMAGE_SIZE * _SAMPLES))
_SHADOW_GRID = Grid(128, 3.2 / 128)
_FROM_BELOW = View((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
_BACKGROUND = (236, 238, 241)
_AMBIENT = 0.4
# Towards each light: along the viewer's right, towards the viewer, and up; unit vectors.
_LIGHTS: tuple[Vector, ...] = ((-0.8, 0.36, 0.48), (0.0, 0.28, 0.96), (0.8, 0.36, 0.48))
_STRENGTH = 0.72
# The contact shadow is moved this far along the viewer's right, away from the light.
_SHADOW_SHIFTS = (0.07, 0.0, -0.07)
_SHADOW_DEPTH = 0.6
_SHADOW_FADE = 0.35
_SHADOW_BLUR = 3


@dataclass(frozen=True)
class Solid:
    """One object: bodies, the height of the ground, tables of its paint, the shadow on the ground.

    Attributes:
        colours: (bodies, 2, 3), the two colours of each body, times 255.
        waves, shifts, fills: (bodies, 2, 3), (bodies, 2), (bodies, 2), the patterns of `Paint`.
        checked, patterned: (bodies,), whether patterns combine by xor, and whether there are any.
        normals: (bodies * SURFACES, 3), unit world normals of the flat surfaces.
        floor: uint16, (128 * 128, 3), the ground's colour under the contact shadow, by y and x.
    """

    bodies: tuple[Body, ...]
    ground: float
    colours: FloatArray
    waves: FloatArray
    shifts: FloatArray
    fills: FloatArray
    checked: BoolArray
    patterned: BoolArray
    normals: FloatArray
    floor: NDArray[np.uint16]


def compile_solid(parts: tuple[Part, ...], ground: float) -> Solid:
    """Gather the tables of a solid from its parts."""
    bodies, paints = tuple(part.body for part in parts), [part.paint for part in parts]
    normals = np.zeros((len(bodies) * SURFACES, 3))
    for number, body in enumerate(bodies):
        for face, (local, _) in enumerate(body.planes):
            normals[number * SURFACES + face] = [
                local[0] * body.axes[0][i] + local[1] * body.axes[1][i] + local[2] * body.axes[2][i]
                for i in range(3)
            ]
    return Solid(
        bodies,
        ground,
        colours=np.array([(p.colour, p.second) for p in paints]) * 255.0,
        waves=np.array([(p.wave1, p.wave2) for p in paints]),
        shifts=np.array([(p.shift1, p.shift2) for p in paints]),
        fills=np.array([(p.fill1, p.fill2) for p in paints]),
        checked=np.array([p.checked for p in paints]),
        patterned=np.array([p.fill1 > 0.0 for p in paints]),
        normals=normals,
        floor=_shadowed_floor(bodies, ground),
    )


class SolidView:
    """One solid from one side: all that does not depend on the light."""

    def __init__(self, solid: Solid, view: View) -> None:
        self._solid, self._view = solid, view
        depth, surface = trace_bodies(solid.bodies, view, _GRID)
        self._covered = np.flatnonzero(surface != NO_SURFACE)
        self._surface = surface.ravel()[self._covered].astype(np.intp)
        body = self._surface // SURFACES
        face = self._surface % SURFACES
        self._curved = np.flatnonzero(face >= QUADRIC_FACE)
        needed = np.flatnonzero((face >= QUADRIC_FACE) | solid.patterned[body])
        local = self._local(depth.ravel()[self._covered[needed]], self._covered[needed], body[needed])
        second = np.zeros(len(body), dtype=np.intp)
        second[needed] = _pattern(solid, body[needed], local)
        self._colour = solid.colours.reshape(-1, 3)[2 * body + second]
        curved = face[needed] >= QUADRIC_FACE
        self._normals = self._curved_normals(body[self._curved], face[self._curved], local[:, curved])

    def shaded(self, light: int) -> ByteArray:
        """The picture under one of the lights, uint8, shape (64, 64, 3)."""
        right, (across, nearer, upward) = self._view.right, _LIGHTS[light]
        # The lights turn with the camera about the vertical but do not tilt with it.
        x, y = across * right[0] + nearer * right[1], across * right[1] - nearer * right[0]
        flat = self._solid.normals
        facing = (flat[:, 0] * x + flat[:, 1] * y + flat[:, 2] * upward)[self._surface]
        nx, ny, nz = self._normals
        facing[self._curved] = nx * x + ny * y + nz * upward
        shade = _AMBIENT + _STRENGTH * np.maximum(facing, 0.0)
        samples = self._ground(_SHADOW_SHIFTS[light])
        lit = self._colour * shade[:, None]
        samples[self._covered] = np.minimum(lit + 0.5, 255.0)
        return _pixel_means(samples)

    def _local(self, depth: FloatArray, index: NDArray[np.intp], body: NDArray[np.intp]) -> FloatArray:
        """Local coordinates, shape (3, k), of the points seen at flat grid positions `index`."""
        slopes = np.array([local_slopes(b, self._view) for b in self._solid.bodies])
        starts = np.array([local_start(b) for b in self._solid.bodies])
        positions = _GRID.positions()
        u, v = positions[index % _GRID.count], positions[index // _GRID.count]
        local = np.empty((3, len(index)))
        for i in range(3):
            column = slopes[:, :, i]
            local[i] = column[body, 0] * u + column[body, 1] * v + column[body, 2] * depth + starts[body, i]
        return local

    def _curved_normals(
        self, body: NDArray[np.intp], face: NDArray[np.intp], local: FloatArray
    ) -> FloatArray:
        """World normals, shape (3, k), along the gradient (a x, b y, c z + d) of the quadric."""
        table = np.zeros((len(self._solid.bodies) * 2, 4))
        for number, b in enumerate(self._solid.bodies):
            table[2 * number] = (b.quadric or (0.0,) * 5)[:4]
            # The wall of a bore faces its axis.
            table[2 * number + 1] = [-value for value in (b.bore or (0.0,) * 5)[:4]]
        weights = table[2 * body + (face == BORE_FACE)]
        gx, gy = weights[:, 0] * local[0], weights[:, 1] * local[1]
        gz = weights[:, 2] * local[2] + weights[:, 3]
        length = np.sqrt(gx * gx + gy * gy + gz * gz)
        axes = np.array([b.axes for b in self._solid.bodies])
        world = np.empty((3, len(body)))
        for i in range(3):
            x, y, z = (axes[:, k, i][body] for k in range(3))
            world[i] = (gx * x + gy * y + gz * z) / length
        return world

    def _ground(self, shift: float) -> NDArray[np.uint16]:
        """The ground under its contact shadow at every sample, uint16, shape (count^2, 3)."""
        view, positions = self._view, _GRID.positions()
        (rx, ry, _), (ux, uy, uz), (fx, fy, fz) = view.right, view.up, view.forward
        reach = (self._solid.ground - positions * uz) / fz
        spacing, count = _SHADOW_GRID.spacing, _SHADOW_GRID.count
        column_x, column_y = (positions - shift) * (rx / spacing), (positions - shift) * (ry / spacing)
        row_x, row_y = (positions * ux + reach * fx) / spacing, (positions * uy + reach * fy) / spacing
        x = (row_x[:, None] + (column_x + count / 2)[None, :]).astype(np.intp)
        y = (row_y[:, None] + (column_y + count / 2)[None, :]).astype(np.intp)
        np.clip(x, 0, count - 1, out=x)
        np.clip(y, 0, count - 1, out=y)
        y *= count
        y += x
        return self._solid.floor.take(y.ravel(), axis=0)


def _pattern(solid: Solid, body: NDArray[np.intp], local: FloatArray) -> BoolArray:
    """Where the second colour shows, for points with the given bodies and local coordinates."""
    inside = []
    for k in (0, 1):
        wave = solid.waves[:, k]
        phase = wave[body, 0] * local[0] + wave[body, 1] * local[1] + wave[body, 2] * local[2]
        phase += solid.shifts[body, k]
        inside.append(phase - np.floor(phase) < solid.fills[body, k])
    shown: BoolArray = inside[0] & inside[1]
    np.copyto(shown, inside[0] ^ inside[1], where=solid.checked[body])
    return shown


def _shadowed_floor(bodies: tuple[Body, ...], ground: float) -> NDArray[np.uint16]:
    """The ground's colour, darkest under low parts and blurred; uint16, shape (128 * 128, 3).

    The bodies are traced from below; a part at height h above the ground takes away a share
    proportional to 1 / (1 + h / fade). Sums are written as explicit additions to fix their order.
    """
    depth, surface = trace_bodies(bodies, _FROM_BELOW, _SHADOW_GRID)
    hit = surface != NO_SURFACE
    height = np.where(hit, depth - ground, 0.0)
    shade = np.where(hit, _SHADOW_FADE / (_SHADOW_FADE + np.maximum(height, 0.0)), 0.0)
    width = 2 * _SHADOW_BLUR + 1
    for _ in range(2):
        for axis in (0, 1):
            padding = [(0, 0), (0, 0)]
            padding[axis] = (_SHADOW_BLUR, _SHADOW_BLUR)
            padded, size = np.pad(shade, padding), shade.shape[axis]
            total = np.zeros_like(shade)
            for offset in range(width):
                total = total + np.take(padded, np.arange(offset, offset + size), axis=axis)
            shade = total / width
    light = (1.0 - _SHADOW_DEPTH * shade).ravel()
    return (light[:, None] * np.array(_BACKGROUND, dtype=np.float64) + 0.5).astype(np.uint16)


def _pixel_means(samples: NDArray[np.uint16]) -> ByteArray:
    """Means over the sub-samples, rounded; turned so that row 0 is the top of the picture."""
    grid = samples.reshape(_GRID.count, _GRID.count, 3)[::-1]
    rows = sum((grid[i::_SAMPLES] for i in range(1, _SAMPLES)), grid[::_SAMPLES])
    total = sum((rows[:, i::_SAMPLES] for i in range(1, _SAMPLES)), rows[:, ::_SAMPLES])
    square = _SAMPLES * _SAMPLES
    return ((total + square // 2) // square).astype(np.uint8)
