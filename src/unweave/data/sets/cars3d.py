"""Cars3D: 17,568 renderings of 183 cars, every combination of car, azimuth and elevation."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset, from_grid
from unweave.data.factors import FactorSpace
from unweave.data.files.archives import member_names, read_members
from unweave.data.files.images import resize
from unweave.data.files.mat import read_mat
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.prepared import Writer, prepared
from unweave.errors import DataError
from unweave.progress import progress

SPACE = FactorSpace(["elevation", "azimuth", "object"], [4, 24, 183], categorical=["object"])
FILE = SourceFile(
    "nips2015-analogy-data.tar.gz",
    "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
    at_most=2 << 30,
)


def load(folder: Path, space: FactorSpace = SPACE) -> Dataset:
    """Cars3D from the archive of Reed et al., 128 -> 64 pixels.

    Cars are numbered by the names of their files. (disentanglement_lib took them in the order in which
    the folder was listed, which differs between machines: only the numbering of ``object`` does.)

    Parameters
    ----------
    folder
        of the official files; the prepared arrays are kept there, too.
    space
        the factors; tests pass a smaller grid.

    Examples
    --------
    >>> uw.data.find("cars3d").images
    '17,568 of 64x64, colour'
    """

    def build(paths: Mapping[str, Path], out: Writer) -> None:
        _build(paths[FILE.name], space, out)

    return from_grid("cars3d", space, prepared(folder, [FILE], build)["images"])


def _build(path: Path, space: FactorSpace, out: Writer) -> None:
    elevations, azimuths, cars = space.grid_shape
    names = member_names(path, _is_car)
    if len(names) != cars:
        raise DataError(f"{path}: has {len(names)} files data/cars/*.mat; expected {cars}")
    images = out.create("images", (len(space), 64, 64, 3)).reshape(*space.grid_shape, 64, 64, 3)
    with progress("Preparing Cars3D", cars, "cars") as advance:
        for name, data in read_members(path, _is_car):
            mesh = read_mat(data, f"{path}: {name}", "im", (128, 128, 3, azimuths, elevations), np.uint8)
            views = np.moveaxis(mesh, (4, 3), (0, 1)).reshape(-1, 128, 128, 3)
            images[:, :, names.index(name)] = resize(views).reshape(elevations, azimuths, 64, 64, 3)
            advance(1)


def _is_car(name: str) -> bool:
    return fnmatchcase(name, "data/cars/[!.]*.mat")


RECIPE = Recipe(
    name="cars3d",
    title="Cars3D",
    summary="Renderings of 183 car models: 17,568 colour 64x64 images, a full grid of three factors.",
    num_images=len(SPACE),
    image_shape=(64, 64, 3),
    space=SPACE,
    licence="none stated",
    homepage="http://www.scottreed.info/",
    citation="Reed, Zhang, Zhang, Lee: Deep Visual Analogy-Making, NIPS 2015. "
    "Models: Fidler, Dickinson, Urtasun: 3D Object Detection and Viewpoint Estimation with a Deformable 3D "
    "Cuboid Model, NIPS 2012.",
    load=load,
    files=(FILE,),
)
