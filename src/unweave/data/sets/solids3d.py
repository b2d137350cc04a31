"""solids3d: 120 objects of fine detail seen from all around, drawn by unweave itself. 34,560 images.

It has the structure of Cars3D and 3D Chairs: an identity that is hard to reconstruct, and the view.
"""

from __future__ import annotations

from pathlib import Path

from unweave.data.dataset import Dataset, from_grid
from unweave.data.factors import FactorSpace
from unweave.data.lazy import LazyArray
from unweave.data.recipes import Recipe
from unweave.data.render import SOLIDS_SIZES, render_solids

SPACE = FactorSpace(
    ["identity", "azimuth", "elevation", "light"], SOLIDS_SIZES, categorical=["identity", "light"]
)
_VERSION = 1  # of the pictures: a change in the renderer that moves a pixel needs a new one


def load(folder: Path) -> Dataset:
    """The objects, each picture drawn when first asked for and kept in a memory-mapped file."""
    shape = (len(SPACE), 64, 64, 3)
    return from_grid(
        "solids3d",
        SPACE,
        LazyArray(folder, shape, lambda rows: render_solids(SPACE.factors(rows)), version=_VERSION),
    )


RECIPE = Recipe(
    name="solids3d",
    title="solids3d",
    summary="Chairs, vehicles, lamps, desks, towers and creatures with fine detail, drawn on demand.",
    images="34,560 of 64x64, colour",
    factors="identity 120, azimuth 24, elevation 4, light 3",
    licence="Apache-2.0",
    homepage="part of unweave",
    citation="unweave; the structure follows Cars3D (Reed et al. 2015) and 3D Chairs (Aubry et al. 2014).",
    load=load,
)
