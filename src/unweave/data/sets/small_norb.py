"""SmallNORB: 48,600 photographs of 50 toys in 5 categories, from all sides and in 6 lightings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset, from_table
from unweave.data.factors import FactorArray, FactorSpace
from unweave.data.files.factor_table import checked_factors
from unweave.data.files.images import resize
from unweave.data.files.norb import read_norb, stream_norb
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.prepared import Writer, prepared
from unweave.errors import DataError, unknown_name
from unweave.progress import progress

SPACE = FactorSpace(
    ["category", "elevation", "azimuth", "lighting"],
    [5, 9, 18, 6],
    categorical=["category", "lighting"],
    value_names={
        "category": ["animal", "human", "airplane", "truck", "car"],
        "elevation": [f"{degrees}°" for degrees in range(30, 75, 5)],
        "azimuth": [f"{degrees}°" for degrees in range(0, 360, 20)],
    },
)
HOMEPAGE = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/"
TRAINING = "smallnorb-5x46789x9x18x6x2x96x96-training"
TESTING = "smallnorb-5x01235x9x18x6x2x96x96-testing"


def _file(name: str, size: int, sha256: str) -> SourceFile:
    return SourceFile(
        f"{name}.mat.gz", f"{HOMEPAGE}{name}.mat.gz", size, sha256, alternatives=(f"{name}.mat",)
    )


FILES = (
    _file(f"{TRAINING}-dat", 131_896_188, "5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873"),
    _file(f"{TRAINING}-cat", 348, "2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa"),
    _file(f"{TRAINING}-info", 71_052, "de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32"),
    _file(f"{TESTING}-dat", 130_799_817, "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474"),
    _file(f"{TESTING}-cat", 347, "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff"),
    _file(f"{TESTING}-info", 10_428, "16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2"),
)


def load(folder: Path, space: FactorSpace = SPACE, instances: int = 5, split: str = "all") -> Dataset:
    """SmallNORB, training and test files, the left image of each stereo pair, 96 -> 64 pixels.

    The toy (``instances`` of each category in each of the two parts) is no factor: ten images show the
    same factors, and ``images(factors, rng)`` chooses one. The files may be gzipped or not.

    Parameters
    ----------
    folder
        of the official files; the prepared arrays are kept there, too.
    space
        the factors; tests pass a smaller grid.
    instances
        the toys of a category in each of the two parts.
    split
        "all", "train" (the training files) or "test" (the testing files): other toys of the same categories.

    Examples
    --------
    >>> uw.data.find("small_norb").images
    '48,600 of 64x64, grey'
    """
    if split not in ("all", "train", "test"):
        raise unknown_name("split", split, ("all", "train", "test"))
    files = [replace(file, name=file.name_in(folder)) for file in FILES]

    def build(paths: Mapping[str, Path], out: Writer) -> None:
        _build([paths[file.name] for file in files], space, instances, out)

    arrays = prepared(folder, files, build)
    boundary = len(space) * instances
    rows = {"all": slice(None), "train": slice(boundary), "test": slice(boundary, None)}[split]
    return from_table("small_norb", space, arrays["images"][rows], arrays["factors"][rows])


def _build(paths: list[Path], space: FactorSpace, instances: int, out: Writer) -> None:
    pairs = len(space) * instances
    parts = [paths[:3], paths[3:]]
    factors = [_factors(cat, info, space, instances) for _, cat, info in parts]
    out.save("factors", np.concatenate(factors))
    images = out.create("images", (2 * pairs, 64, 64, 1))
    row = 0
    with progress("Preparing SmallNORB", 2 * pairs, "images") as advance:
        for dat, _, _ in parts:
            for block in stream_norb(dat, (pairs, 2, 96, 96), np.uint8):
                images[row : row + len(block)] = resize(block[:, 0, :, :, np.newaxis])
                row += len(block)
                advance(len(block))


def _factors(cat: Path, info: Path, space: FactorSpace, instances: int) -> FactorArray:
    """Factors (pairs, 4): the category, and of the info file's columns all but the first, the toy."""
    pairs = len(space) * instances
    category = read_norb(cat, (pairs,), np.int32)
    _, elevation, azimuth, lighting = read_norb(info, (pairs, 4), np.int32).T
    if (azimuth % 2).any():
        raise DataError(f"{info}: azimuths are odd; expected 0, 2, …, 34 (tens of degrees)")
    factors = checked_factors(info, space, np.stack([category, elevation, azimuth // 2, lighting], axis=1))
    if (np.bincount(space.rows(factors), minlength=len(space)) != instances).any():
        raise DataError(f"{info}: expected each of {len(space)} combinations of factors {instances} times")
    return factors


RECIPE = Recipe(
    name="small_norb",
    title="SmallNORB",
    summary="Photographs of 50 toys on a plain ground: 48,600 grey 64x64 images, ten for each combination.",
    num_images=48_600,
    image_shape=(64, 64, 1),
    space=SPACE,
    licence="for research, not to be sold",
    homepage=HOMEPAGE,
    citation="LeCun, Huang, Bottou: Learning Methods for Generic Object Recognition with Invariance to "
    "Pose and Lighting, CVPR 2004.",
    load=load,
    splits={part: partial(load, split=part) for part in ("train", "test")},
    files=FILES,
)
