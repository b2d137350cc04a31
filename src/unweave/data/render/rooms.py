"""rooms3d: the factor grid of Shapes3D, drawn by our own renderer.

The six factors are those of Shapes3D (Burgess and Kim, 2018), in its order and with its sizes:
floor hue 10, wall hue 10, object hue 10, scale 8, shape 4 (cube, cylinder, sphere, capsule) and
orientation 15 (the camera's azimuth from -30 to 30 degrees): 480,000 images.

The same factors always give the same bytes, whatever else is in the batch: geometry is computed per
scene with IEEE-exact operations only (see `camera`), quantised, and hues are applied in integers.
"""

import numpy as np

from unweave.arrays import ByteArray, IntArray
from unweave.data.render.camera import IMAGE_SIZE
from unweave.data.render.factors import checked_factors
from unweave.data.render.room_scene import CHANNEL_LEVELS, NUM_MATERIALS, NUM_PLANES, room_planes

ROOMS_SIZES = (10, 10, 10, 8, 4, 15)

_NUM_SCENES = ROOMS_SIZES[3] * ROOMS_SIZES[4] * ROOMS_SIZES[5]
# Images composed at once: few enough to stay in the processor's cache.
_CHUNK = 16


def render_rooms(factors: np.ndarray) -> ByteArray:
    """Draw rooms.

    Args:
        factors: integers, shape (n, 6); column k in [0, ROOMS_SIZES[k]).

    Returns:
        uint8, shape (n, 64, 64, 3).

    Raises:
        ValueError: wrong shape, non-integer or out-of-range values.
    """
    checked = checked_factors(factors, ROOMS_SIZES)
    scenes = (checked[:, 3] * ROOMS_SIZES[4] + checked[:, 4]) * ROOMS_SIZES[5] + checked[:, 5]
    planes = _CACHE.planes_of(scenes)
    images = np.empty((len(checked), IMAGE_SIZE, IMAGE_SIZE, 3), dtype=np.uint8)
    rows = scenes[:, None] * NUM_PLANES
    sky = rows + NUM_MATERIALS * CHANNEL_LEVELS + np.arange(3)
    lit = [rows + m * CHANNEL_LEVELS + _HUE_LEVELS[checked[:, m]] for m in range(NUM_MATERIALS)]
    for start in range(0, len(checked), _CHUNK):
        part = slice(start, start + _CHUNK)
        total = planes.take(sky[part], axis=0)
        for row in lit:
            total += planes.take(row[part], axis=0)
        # One copy per channel is five times as fast as one transposed copy.
        for channel in range(3):
            images[part, ..., channel] = total[:, channel].reshape(-1, IMAGE_SIZE, IMAGE_SIZE)
    return images


class _SceneCache:
    """The planes of all scenes drawn so far in this process, at most 41 MB.

    One zeroed array holds all scenes, so that composing gathers from it directly; the operating
    system provides its pages as scenes are filled in. Filling a scene twice, as two threads may,
    writes the same bytes.
    """

    def __init__(self) -> None:
        self._planes: ByteArray | None = None
        self._filled = np.zeros(_NUM_SCENES, dtype=np.bool_)

    def planes_of(self, scenes: IntArray) -> ByteArray:
        """All planes, shape (_NUM_SCENES * NUM_PLANES, 64 * 64), with those of `scenes` filled in."""
        if self._planes is None:
            self._planes = np.zeros((_NUM_SCENES * NUM_PLANES, IMAGE_SIZE * IMAGE_SIZE), dtype=np.uint8)
        for scene in np.unique(scenes[~self._filled[scenes]]):
            rest, orientation = divmod(int(scene), ROOMS_SIZES[5])
            scale, shape = divmod(rest, ROOMS_SIZES[4])
            first = int(scene) * NUM_PLANES
            self._planes[first : first + NUM_PLANES] = room_planes(
                0.75 + 0.5 * scale / (ROOMS_SIZES[3] - 1),
                shape,
                -30.0 + 60.0 * orientation / (ROOMS_SIZES[5] - 1),
            )
            self._filled[scene] = True
        return self._planes


def _hue_levels() -> IntArray:
    """Channel values of the hues 0, 0.1, ..., 0.9 in fifths: the HSV cone at full saturation.

    With the hue in units of a sixth of the circle, h, a channel's value is |h - p| - 1 or
    2 - |h - p| for the channel's own centre p, clipped to [0, 1]. Shape (10, 3).
    """
    levels = []
    for hue in range(ROOMS_SIZES[0]):
        position = 3 * hue  # in units of 1/30 of the circle; a sixth of the circle is 5 units
        red = abs(position - 15) - 5
        green = 10 - abs(position - 10)
        blue = 10 - abs(position - 20)
        levels.append([min(max(value, 0), CHANNEL_LEVELS - 1) for value in (red, green, blue)])
    return np.array(levels, dtype=np.int64)


_HUE_LEVELS = _hue_levels()
_CACHE = _SceneCache()
