"""solids3d: 120 objects of fine detail seen from all around, drawn by unweave itself. 34,560 images.

It has the structure of Cars3D and 3D Chairs: an identity that is hard to reconstruct, and the view.
"""

from __future__ import annotations

from pathlib import Path

from unweave.data.dataset import Dataset
from unweave.data.factors import FactorSpace
from unweave.data.recipe import Recipe
from unweave.data.storage.lazy import drawn_on_demand

SPACE = FactorSpace(
    ["identity", "azimuth", "elevation", "light"], [120, 24, 4, 3], categorical=["identity", "light"]
)


def load(folder: Path) -> Dataset:
    """The objects, each picture drawn when first asked for and kept in a memory-mapped file.

    Parameters
    ----------
    folder
        where the drawn images are kept.

    Examples
    --------
    >>> uw.data.load("solids3d").images([0]).shape
    (1, 64, 64, 3)
    """
    from unweave.data.render import render_solids

    return drawn_on_demand("solids3d", SPACE, folder, render_solids, version=1, image_shape=(64, 64, 3))


RECIPE = Recipe(
    name="solids3d",
    title="solids3d",
    summary="Chairs, vehicles, lamps, desks, towers and creatures with fine detail, drawn on demand.",
    num_images=len(SPACE),
    image_shape=(64, 64, 3),
    space=SPACE,
    licence="Apache-2.0",
    homepage="part of unweave",
    citation="unweave; the structure follows Cars3D (Reed et al. 2015) and 3D Chairs (Aubry et al. 2014).",
    load=load,
)
