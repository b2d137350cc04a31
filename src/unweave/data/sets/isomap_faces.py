"""Isomap faces: 698 renderings of one head, turned left-right and up-down, and lit from a varying side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from unweave.arrays import AnyArray, ByteArray
from unweave.data.dataset import Dataset, from_table
from unweave.data.factors import FactorSpace
from unweave.data.files.mat import read_mat
from unweave.data.files.unix_compress import decompress
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.prepared import Writer, prepared
from unweave.errors import DataError
from unweave.files import check_regular

FACTORS = ("left_right", "up_down", "light")
# The original address, which does not answer any more, as the Internet Archive keeps it.
FILE = SourceFile(
    "face_data.mat.Z",
    "https://web.archive.org/web/20150922051706id_/http://isomap.stanford.edu/face_data.mat.Z",
    sha256="9c5bc75f204071bbd340aa3ff584757ec784b0630206e526d4cd3809f2650a8a",
    at_most=100 << 20,
    alternatives=("face_data.mat", "face_1024.mat"),
)
SMALL = "face_1024.mat"


def load(folder: Path, count: int = 698) -> Dataset:
    """The faces from one of these files in ``folder``, the first that is there:

    - ``face_data.mat.Z`` or, unpacked, ``face_data.mat``: the original, 64 x 64 pixels,
      with arrays ``images``, ``poses`` and ``lights``;
    - ``face_1024.mat``: a copy in common use, 32 x 32 pixels, whose ``dataT`` (light, left-right, up-down)
      are standardised: mean 0, variance 1.

    Images keep the size that they have in the file. The factors are continuous, each within the
    range that it has in the file, so images are asked for by row.

    Parameters
    ----------
    folder
        of the official files; the prepared arrays are kept there, too.
    count
        the number of images.

    Examples
    --------
    >>> uw.data.find("isomap_faces").images
    '698 of 64x64, grey'
    """
    name = FILE.name_in(folder)

    def build(paths: Mapping[str, Path], out: Writer) -> None:
        path = paths[name]
        pixels, factors = (_read_small if name == SMALL else _read_original)(path, count)
        if not np.isfinite(factors).all() or (np.ptp(factors, axis=0) == 0).any():
            raise DataError(f"{path}: expected finite poses and lights that vary, not NaN or one value")
        out.save("images", _images(path, pixels))
        out.save("factors", factors.astype(np.float64))

    arrays = prepared(folder, [replace(FILE, name=name)], build)
    factors = arrays["factors"]
    ranges = [(float(column.min()), float(column.max())) for column in factors.T]
    return from_table("isomap_faces", FactorSpace(FACTORS, ranges), arrays["images"], factors)


def _read_original(path: Path, count: int) -> tuple[AnyArray, AnyArray]:
    check_regular(path)
    data = path.read_bytes()
    if path.suffix == ".Z":
        data = decompress(data, str(path))
    pixels = read_mat(data, str(path), "images", (64 * 64, count), np.float64)
    poses = read_mat(data, str(path), "poses", (2, count), np.float64)
    lights = read_mat(data, str(path), "lights", (1, count), np.float64)
    return pixels, np.concatenate([poses, lights]).T


def _read_small(path: Path, count: int) -> tuple[AnyArray, AnyArray]:
    check_regular(path)
    data = path.read_bytes()
    pixels = read_mat(data, str(path), "dataY", (32 * 32, count), np.float64)
    light, left_right, up_down = read_mat(data, str(path), "dataT", (3, count), np.float64)
    return pixels, np.stack([left_right, up_down, light], axis=1)


def _images(path: Path, pixels: AnyArray) -> ByteArray:
    """Pixels (side^2, n) in [0, 1], each image column after column as MATLAB has it -> (n, side, side, 1)."""
    if not (pixels.min() >= 0 and pixels.max() <= 1):
        raise DataError(f"{path}: pixels lie in [{pixels.min()}, {pixels.max()}]; expected [0, 1]")
    side = round(len(pixels) ** 0.5)
    upright = pixels.T.reshape(-1, side, side).transpose(0, 2, 1)
    return np.asarray(np.rint(upright * 255), np.uint8)[..., np.newaxis]


RECIPE = Recipe(
    name="isomap_faces",
    title="Isomap faces",
    summary="One rendered head: 698 grey 64x64 images with three continuous factors.",
    num_images=698,
    image_shape=(64, 64, 1),
    factor_names=FACTORS,
    licence="none stated",
    homepage="http://isomap.stanford.edu/datasets.html",
    citation="Tenenbaum, de Silva, Langford: A Global Geometric Framework for Nonlinear Dimensionality "
    "Reduction, Science, 2000.",
    load=load,
    files=(FILE,),
)
