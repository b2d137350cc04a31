import gzip
import struct

import numpy as np
import pytest

from unweave.data.registry import find
from unweave.data.sets import mnist
from unweave.data.storage.status import status
from unweave.errors import ArgumentError

COUNTS = (5, 3)
PARTS = [("train", 5, 0), ("t10k", 3, 100)]


def idx(array, kind=8):
    return struct.pack(f">HBB{array.ndim}i", 0, kind, array.ndim, *array.shape) + array.tobytes()


def pictures(n, offset):
    y, x = np.mgrid[:28, :28]
    return np.stack([y * 5 + x // 4 + i + offset for i in range(n)]).astype(np.uint8)


def labels(n, offset):
    return ((np.arange(n) * 3 + offset) % 10).astype(np.uint8)


@pytest.fixture
def write(tmp_path):
    for stem, n, offset in PARTS:
        for name, array in (
            (f"{stem}-images-idx3-ubyte.gz", pictures(n, offset)),
            (f"{stem}-labels-idx1-ubyte.gz", labels(n, offset)),
        ):
            (tmp_path / name).write_bytes(gzip.compress(idx(array)))

    def change(name, data):
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if isinstance(data, bytes) else gzip.compress(idx(data)))
        return path

    return change


def load(folder, split="train", **options):
    return mnist.load(folder, split=split, counts=COUNTS, **options)


@pytest.mark.parametrize("split", ["train", "test", "all"])
def test_splits(tmp_path, write, split):
    expected = {"train": PARTS[:1], "test": PARTS[1:], "all": PARTS}[split]
    images = np.concatenate([pictures(n, offset) for _, n, offset in expected])
    classes = np.concatenate([labels(n, offset) for _, n, offset in expected])
    data = load(tmp_path, split)
    assert data.image_shape == (28, 28, 1)
    rows = np.arange(len(data))
    assert (data.images(rows)[..., 0] == images).all()
    assert (data.factors(rows)[:, 0] == classes).all()


def test_fashion_mnist_has_other_names(tmp_path, write):
    recipe = mnist.FASHION_RECIPE
    data = recipe.load(tmp_path, counts=COUNTS)
    assert (recipe.name, data.name) == ("fashion_mnist", "fashion_mnist")
    assert data.space.value_names["class"][9] == "ankle boot"


def test_an_unknown_split_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="train"):
        load(tmp_path, "trian")


IMAGES, LABELS = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"
DAMAGED = {
    "truncated": (IMAGES, idx(pictures(3, 0))[:-1], ["early"]),
    "header cut": (IMAGES, idx(pictures(3, 0))[:9], ["early"]),
    "too long": (IMAGES, idx(pictures(3, 0)) + b"\0", ["longer"]),
    "not IDX": (IMAGES, b"<html>not found</html>", ["not an IDX file"]),
    "empty": (IMAGES, b"", ["early"]),
    "wrong count": (LABELS, labels(4, 0), ["(4,)", "(3,)"]),
    "images for labels": (LABELS, pictures(3, 0), ["(3, 28, 28)", "(3,)"]),
    "wrong type": (LABELS, idx(labels(3, 0).astype(">i4"), kind=12), ["int32", "uint8"]),
    "no such class": (LABELS, np.array([1, 10, 2], np.uint8), ["'class'", "10"]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_files_are_refused(write, refused, damage):
    name, data, words = DAMAGED[damage]
    refused(load, write(name, data), *words)


@pytest.mark.parametrize("keep", [1, 15, -9, -1])
def test_truncated_gzip_is_refused(tmp_path, write, refused, keep):
    path = tmp_path / IMAGES
    path.write_bytes(path.read_bytes()[:keep])
    refused(load, path)


def test_something_not_gzipped_is_refused(tmp_path, write, refused):
    path = tmp_path / IMAGES
    path.write_bytes(idx(pictures(3, 100)))
    refused(load, path, "gzip")


def test_the_real_files(real):
    folder = real("mnist")
    data = mnist.load(folder)
    assert len(data) == 60_000
    counts = np.bincount(data.factors(np.arange(60_000))[:, 0])
    assert counts.tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert data.factors([0, 1, 2])[:, 0].tolist() == [5, 0, 4]
    # The known mean and standard deviation of the training images.
    images = data.images(np.arange(60_000)) / np.float32(255)
    assert images.mean() == pytest.approx(0.1307, abs=1e-4)
    assert images.std() == pytest.approx(0.3081, abs=1e-4)
    assert np.bincount(mnist.load(folder, split="test").factors(np.arange(10_000))[:, 0])[1] == 1135


def test_real_files_that_were_gzipped_again_need_no_download(real):
    """Links to them will do, for the test images beside them, too."""
    folder = real("mnist")
    for name in ("mnist", "mnist_test"):
        found = status(find(name), folder.parent / name)
        assert found.state == "files present"
        assert not any(file.size_differs for file in found.files)
