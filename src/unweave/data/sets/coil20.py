"""COIL-20: 1,440 photographs of 20 objects on a turntable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset, from_grid
from unweave.data.factors import FactorSpace
from unweave.data.files.archives import member_names, read_members
from unweave.data.files.factor_table import check_grid
from unweave.data.files.images import decode_image, resize
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.prepared import Writer, prepared
from unweave.errors import DataError
from unweave.progress import progress

SPACE = FactorSpace(
    ["object", "azimuth"],
    [20, 72],
    categorical=["object"],
    value_names={"azimuth": [f"{degrees}°" for degrees in range(0, 360, 5)]},
)
FILE = SourceFile(
    "coil-20-proc.zip",
    "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip",
    at_most=100 << 20,
)
_IMAGE = re.compile(r"coil-20-proc/obj(\d+)__(\d+)\.png")


def load(folder: Path, space: FactorSpace = SPACE) -> Dataset:
    """The processed COIL-20 (each object fills its picture), grey, 128 -> 64 pixels, antialiased.

    Parameters
    ----------
    folder
        of the official files; the prepared arrays are kept there, too.
    space
        the factors; tests pass a smaller grid.

    Examples
    --------
    >>> uw.data.find("coil20").images
    '1,440 of 64x64, grey'
    """

    def build(paths: Mapping[str, Path], out: Writer) -> None:
        _build(paths[FILE.name], space, out)

    return from_grid("coil20", space, prepared(folder, [FILE], build)["images"])


def _build(path: Path, space: FactorSpace, out: Writer) -> None:
    names = sorted(member_names(path, _IMAGE.fullmatch), key=_factors)
    if len(names) != len(space):
        raise DataError(f"{path}: has {len(names)} images obj<object>__<azimuth>.png; expected {len(space)}")
    check_grid(path, space, np.array([_factors(name) for name in names]))
    images = out.create("images", (len(space), 64, 64, 1))
    with progress("Preparing COIL-20", len(space), "images") as advance:
        for name, data in read_members(path, _IMAGE.fullmatch):
            image = decode_image(data, f"{path}: {name}", "L", (128, 128))
            images[names.index(name)] = resize(image[np.newaxis])[0]
            advance(1)


def _factors(name: str) -> tuple[int, int]:
    match = _IMAGE.fullmatch(name)
    assert match
    return int(match[1]) - 1, int(match[2])


RECIPE = Recipe(
    name="coil20",
    title="COIL-20",
    summary="Twenty objects on a turntable: 1,440 grey 64x64 photographs, a full grid of two factors.",
    num_images=len(SPACE),
    image_shape=(64, 64, 1),
    space=SPACE,
    licence="none stated",
    homepage="https://www.cs.columbia.edu/CAVE/software/softlib/coil-20.php",
    citation="Nene, Nayar, Murase: Columbia Object Image Library (COIL-20), Report CUCS-005-96, 1996.",
    load=load,
    files=(FILE,),
)
