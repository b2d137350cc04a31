"""solids3d: many objects from all sides, a stand-in with the structure of Cars3D and 3D Chairs.

Factors: identity 120, azimuth 24 (the full circle in steps of 15 degrees), elevation 4, light 3:
34,560 images. The identities come from six families in turn (chair, vehicle, lamp, desk, tower,
creature), each built from painted primitives drawn by a fixed integer generator, with detail
(slats, spokes, stripes, knobs) about as fine as the pixels.

The camera is far away (parallel rays). The three lights come from the viewer's left, from above and
from the viewer's right; they turn with the camera, so that their shading does not depend on azimuth.
Each view is computed on its own with IEEE-exact operations (see `camera`): the same factors always
give the same bytes, whatever else is in the batch.
"""

from functools import lru_cache

import numpy as np

from unweave.arrays import ByteArray
from unweave.data.render.camera import IMAGE_SIZE, orbit_view
from unweave.data.render.creatures import creature
from unweave.data.render.dice import Dice
from unweave.data.render.factors import checked_factors
from unweave.data.render.furniture import chair, desk, lamp
from unweave.data.render.outdoors import tower, vehicle
from unweave.data.render.parts import Part, fitted
from unweave.data.render.shading import Solid, SolidView, compile_solid

NUM_SOLIDS = 120
SOLIDS_SIZES = (NUM_SOLIDS, 24, 4, 3)

ELEVATIONS = (8.0, 20.0, 32.0, 44.0)

_FAMILIES = (chair, vehicle, lamp, desk, tower, creature)
# Changing it draws a different set of objects, that is, a different data set.
_SEED = 20


def render_solids(factors: np.ndarray) -> ByteArray:
    """Draw solids.

    Args:
        factors: integers, shape (n, 4): identity, azimuth, elevation, light; column k in
            [0, SOLIDS_SIZES[k]).

    Returns:
        uint8, shape (n, 64, 64, 3).

    Raises:
        ValueError: wrong shape, non-integer or out-of-range values.
    """
    checked = checked_factors(factors, SOLIDS_SIZES)
    images = np.empty((len(checked), IMAGE_SIZE, IMAGE_SIZE, 3), dtype=np.uint8)
    geometry: tuple[int, int, int] | None = None
    view: SolidView | None = None
    # In sorted order the lights of one view follow one another and share its geometry.
    for row in np.lexsort(checked.T[::-1]):
        identity, azimuth, elevation, light = (int(value) for value in checked[row])
        if view is None or geometry != (identity, azimuth, elevation):
            geometry = (identity, azimuth, elevation)
            degrees = 360.0 * azimuth / SOLIDS_SIZES[1]
            view = SolidView(solid(identity), orbit_view(degrees, ELEVATIONS[elevation], 1.0, 0.0))
        images[row] = view.shaded(light)
    return images


def solid_parts(identity: int) -> tuple[tuple[Part, ...], float]:
    """The parts of one identity, fitted into the picture, and the height of the ground."""
    family = _FAMILIES[identity % len(_FAMILIES)]
    return fitted(family(Dice(_SEED * NUM_SOLIDS + identity)), ELEVATIONS)


@lru_cache(maxsize=NUM_SOLIDS)
def solid(identity: int) -> Solid:
    """One identity, ready to be drawn."""
    return compile_solid(*solid_parts(identity))
