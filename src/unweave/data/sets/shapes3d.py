"""Shapes3D: 480,000 renderings of one object in a room, every combination of six factors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset, from_grid
from unweave.data.factors import FactorSpace
from unweave.data.files.checksum import check_sha256
from unweave.data.files.factor_table import check_grid, ranks
from unweave.data.files.hdf5 import read_hdf5, stream_hdf5
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.prepared import Writer, prepared

SPACE = FactorSpace(
    ["floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation"],
    [10, 10, 10, 8, 4, 15],
    categorical=["shape"],
    value_names={"shape": ["cube", "cylinder", "sphere", "capsule"]},
)
FILE = SourceFile(
    "3dshapes.h5",
    "https://storage.googleapis.com/3d-shapes/3dshapes.h5",
    size=267_573_662,
    sha256="0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785",
)


def load(folder: Path, space: FactorSpace = SPACE, file: SourceFile = FILE) -> Dataset:
    """Shapes3D from the official HDF5 file.

    Parameters
    ----------
    folder
        of the official files; the prepared arrays are kept there, too.
    space
        the factors; tests pass a smaller grid.
    file
        the official file; tests pass another.

    Examples
    --------
    >>> uw.data.find("shapes3d").images
    '480,000 of 64x64, colour'
    """

    def build(paths: Mapping[str, Path], out: Writer) -> None:
        _build(paths[file.name], file, space, out)

    return from_grid("shapes3d", space, prepared(folder, [file], build)["images"])


def _build(path: Path, file: SourceFile, space: FactorSpace, out: Writer) -> None:
    # HDF5 has no checksum of its own: a flipped bit would be a wrong pixel.
    check_sha256(path, file.sha256)
    n = len(space)
    labels = read_hdf5(path, "labels", (n, space.num_factors), np.float64)
    check_grid(path, space, ranks(path, space, labels))
    images = out.create("images", (n, 64, 64, 3))
    stream_hdf5(path, "images", np.uint8, images)


RECIPE = Recipe(
    name="shapes3d",
    title="3D Shapes",
    label="Shapes3D",
    summary="One object in a coloured room: 480,000 colour 64x64 images, a full grid of six factors.",
    num_images=len(SPACE),
    image_shape=(64, 64, 3),
    space=SPACE,
    licence="Apache-2.0",
    homepage="https://github.com/google-deepmind/3d-shapes",
    citation="Burgess, Kim: 3D Shapes Dataset, 2018.",
    load=load,
    files=(FILE,),
)
