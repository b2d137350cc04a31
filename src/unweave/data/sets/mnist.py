"""MNIST and Fashion-MNIST: 28x28 images with class labels, no other factors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from unweave.data.dataset import Dataset, from_table
from unweave.data.factors import FactorSpace
from unweave.data.files.factor_table import checked_factors
from unweave.data.files.idx import read_idx
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.prepared import Writer, prepared
from unweave.errors import unknown_name

SPACE = FactorSpace(["class"], [10], categorical=["class"], value_names={"class": list("0123456789")})
FASHION_SPACE = FactorSpace(
    ["class"],
    [10],
    categorical=["class"],
    value_names={
        "class": [
            *("T-shirt/top", "trouser", "pullover", "dress", "coat"),
            *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
        ]
    },
)
# Yann LeCun's page, where MNIST appeared, does not serve the files any more; this copy does.
_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_TRAIN_IMAGES, _TRAIN_LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"
_TEST_IMAGES, _TEST_LABELS = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"
_UNPACKED = {  # the header of an IDX file, and a byte for each pixel or class
    _TRAIN_IMAGES: 16 + 60_000 * 28 * 28,
    _TRAIN_LABELS: 8 + 60_000,
    _TEST_IMAGES: 16 + 10_000 * 28 * 28,
    _TEST_LABELS: 8 + 10_000,
}


def _files(address: str, known: Mapping[str, tuple[int, str]]) -> tuple[SourceFile, ...]:
    return tuple(
        SourceFile(name, address + name, size, sha256, unpacked_size=_UNPACKED[name])
        for name, (size, sha256) in known.items()
    )


FILES = _files(
    _MNIST,
    {
        _TRAIN_IMAGES: (9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        _TRAIN_LABELS: (28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        _TEST_IMAGES: (1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        _TEST_LABELS: (4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    },
)
FASHION_FILES = _files(
    _FASHION,
    {
        _TRAIN_IMAGES: (26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        _TRAIN_LABELS: (29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        _TEST_IMAGES: (4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        _TEST_LABELS: (5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    },
)


def load(
    folder: Path,
    space: FactorSpace = SPACE,
    split: str = "train",
    name: str = "mnist",
    files: tuple[SourceFile, ...] = FILES,
    counts: tuple[int, int] = (60_000, 10_000),
) -> Dataset:
    """MNIST from its four IDX files.

    What a file unpacks to is checked, not the sha256 of the file: one that was gzipped again is good too.

    Parameters
    ----------
    folder
        of the official files; the prepared arrays are kept there, too.
    space
        the factors; tests pass a smaller grid.
    split
        "train", "test" or "all" (train, then test).
    name
        of the data set.
    files
        the four official files.
    counts
        the numbers of training and of test images.

    Examples
    --------
    >>> uw.data.find("mnist").images
    '60,000 of 28x28, grey'
    """
    train, total = counts[0], sum(counts)
    parts = {"train": slice(0, train), "test": slice(train, total), "all": slice(0, total)}
    if split not in parts:
        raise unknown_name("split", split, parts)

    def build(paths: Mapping[str, Path], out: Writer) -> None:
        images, labels = out.create("images", (total, 28, 28, 1)), np.empty((total, 1), np.int64)
        for part, (pictures, classes) in zip(("train", "test"), (files[:2], files[2:]), strict=True):
            rows = parts[part]
            n = rows.stop - rows.start
            images[rows, ..., 0] = read_idx(paths[pictures.name], (n, 28, 28))
            path = paths[classes.name]
            labels[rows] = checked_factors(path, space, read_idx(path, (n,))[:, np.newaxis])
        out.save("factors", labels)

    arrays = prepared(folder, files, build)
    return from_table(name, space, arrays["images"][parts[split]], arrays["factors"][parts[split]])


def load_test(folder: Path) -> Dataset:
    """The 10,000 test images of MNIST.

    Parameters
    ----------
    folder
        of the official files; where there is none, that of mnist beside it.

    Examples
    --------
    >>> uw.data.find("mnist_test").images
    '10,000 of 28x28, grey'
    """
    return load(TEST_RECIPE.folder_of_files(folder), split="test", name="mnist_test")


_load_fashion = partial(load, space=FASHION_SPACE, name="fashion_mnist", files=FASHION_FILES)
RECIPE = Recipe(
    name="mnist",
    title="MNIST",
    summary="Handwritten digits: the 60,000 grey 28x28 training images.",
    num_images=60_000,
    image_shape=(28, 28, 1),
    space=SPACE,
    licence="none stated",
    homepage="http://yann.lecun.com/exdb/mnist/",
    citation="LeCun, Bottou, Bengio, Haffner: Gradient-Based Learning Applied to Document Recognition, "
    "Proceedings of the IEEE, 1998.",
    load=load,
    splits={part: partial(load, split=part) for part in ("train", "test", "all")},
    files=FILES,
)
TEST_RECIPE = Recipe(
    name="mnist_test",
    title="MNIST test",
    summary="Handwritten digits: the 10,000 grey 28x28 test images.",
    num_images=10_000,
    image_shape=(28, 28, 1),
    space=SPACE,
    licence=RECIPE.licence,
    homepage=RECIPE.homepage,
    citation=RECIPE.citation,
    load=load_test,
    files=FILES,
    beside="mnist",
)
FASHION_RECIPE = Recipe(
    name="fashion_mnist",
    title="Fashion-MNIST",
    summary="Articles of clothing: the 60,000 grey 28x28 training images.",
    num_images=60_000,
    image_shape=(28, 28, 1),
    space=FASHION_SPACE,
    licence="MIT",
    homepage="https://github.com/zalandoresearch/fashion-mnist",
    citation="Xiao, Rasul, Vollgraf: Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine "
    "Learning Algorithms, 2017.",
    load=_load_fashion,
    splits={part: partial(_load_fashion, split=part) for part in ("train", "test", "all")},
    files=FASHION_FILES,
)
