"""All data sets by name."""

from __future__ import annotations

from pathlib import Path

from unweave.data.dataset import Dataset
from unweave.data.recipes import Recipe
from unweave.data.sets import (
    cars3d,
    celeba,
    chairs3d,
    coil20,
    color_dsprites,
    dsprites,
    isomap_faces,
    mnist,
    mpi3d,
    noisy_dsprites,
    pendulum,
    rooms3d,
    scream_dsprites,
    shapes3d,
    small_norb,
    solids3d,
)
from unweave.data.storage.prepared import data_folder
from unweave.errors import unknown_name

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        dsprites.RECIPE,
        color_dsprites.RECIPE,
        noisy_dsprites.RECIPE,
        scream_dsprites.RECIPE,
        rooms3d.RECIPE,
        solids3d.RECIPE,
        pendulum.RECIPE,
        small_norb.RECIPE,
        cars3d.RECIPE,
        shapes3d.RECIPE,
        *mpi3d.RECIPES,
        *mnist.RECIPES,
        celeba.RECIPE,
        chairs3d.RECIPE,
        coil20.RECIPE,
        isomap_faces.RECIPE,
    )
}


def names() -> list[str]:
    """The names of all data sets, as ``load`` takes them."""
    return list(RECIPES)


def find(name: str) -> Recipe:
    """What is known about a data set; an unknown name is answered with the nearest one."""
    if name not in RECIPES:
        raise unknown_name("data set", name, RECIPES)
    return RECIPES[name]


def load(name: str = "dsprites", folder: Path | str | None = None) -> Dataset:
    """Load a data set by name, preparing it on first use.

    Its files are looked for in ``folder`` (default: its own folder below :func:`data_folder`).
    """
    recipe = find(name)
    return recipe.load(data_folder() / name if folder is None else Path(folder))
