"""rooms3d: the factor grid of Shapes3D, drawn by unweave itself. 480,000 images, no download."""

from __future__ import annotations

from pathlib import Path

from unweave.data.dataset import Dataset
from unweave.data.factors import FactorSpace
from unweave.data.recipe import Recipe
from unweave.data.storage.lazy import drawn_on_demand

SPACE = FactorSpace(
    ["floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation"],
    [10, 10, 10, 8, 4, 15],
    categorical=["shape"],
    value_names={"shape": ["cube", "cylinder", "sphere", "capsule"]},
)


def load(folder: Path) -> Dataset:
    """The rooms, each drawn when first asked for and kept in a memory-mapped file.

    Parameters
    ----------
    folder
        where the drawn images are kept.

    Examples
    --------
    >>> uw.data.load("rooms3d").images([0]).shape
    (1, 64, 64, 3)
    """
    from unweave.data.render import render_rooms

    return drawn_on_demand("rooms3d", SPACE, folder, render_rooms, version=1, image_shape=(64, 64, 3))


RECIPE = Recipe(
    name="rooms3d",
    title="rooms3d",
    summary="An object in a room, drawn on demand: the factor grid and the style of Shapes3D, offline.",
    num_images=len(SPACE),
    image_shape=(64, 64, 3),
    space=SPACE,
    licence="Apache-2.0",
    homepage="part of unweave",
    citation="unweave; the factors follow Burgess, Kim: 3D Shapes Dataset, 2018.",
    load=load,
)
