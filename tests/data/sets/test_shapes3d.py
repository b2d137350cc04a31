import h5py
import numpy as np
import pytest

from unweave.data.factors import FactorSpace
from unweave.data.recipe import SourceFile
from unweave.data.sets import shapes3d

SPACE = FactorSpace(shapes3d.SPACE.names, [2, 1, 2, 3, 2, 3])
FILE = SourceFile("3dshapes.h5", "https://example.org/3dshapes.h5")
N = 72


def arrays():
    values = [[0.0, 0.1], [0.0], [0.0, 0.1], [0.75, 1.0, 1.25], [0.0, 1.0], [-30.0, 0.0, 30.0]]
    labels = np.stack([grid.ravel() for grid in np.meshgrid(*values, indexing="ij")], axis=1)
    images = np.empty((N, 64, 64, 3), np.uint8)
    images[..., 0] = np.arange(64)[:, None]
    images[..., 1] = 2 * np.arange(64)
    images[..., 2] = np.arange(N)[:, None, None]
    return {"images": images, "labels": labels}


@pytest.fixture
def write(tmp_path):
    def write(**changes):
        path = tmp_path / FILE.name
        with h5py.File(path, "w") as file:
            for name, array in (arrays() | changes).items():
                if array is not None:
                    chunks = (7, *array.shape[1:]) if name == "images" else None
                    file.create_dataset(
                        name, data=array, chunks=chunks, compression="gzip" if chunks else None
                    )
        return path

    return write


def load(folder):
    return shapes3d.load(folder, SPACE, FILE)


def test_images_are_those_of_the_file(tmp_path, write, monkeypatch):
    monkeypatch.setattr(
        "unweave.data.files.hdf5._CHUNK", 64 * 64 * 3 * 20
    )  # several blocks, the last one short
    write()
    data = load(tmp_path)
    assert (data.images(np.arange(N)) == arrays()["images"]).all()
    assert data.images([[1, 0, 1, 2, 0, 1]])[0, 5, 9].tolist() == [5, 18, 67]


def test_a_changed_file_is_refused_by_its_checksum(write, refused):
    path = write()
    refused(lambda folder: shapes3d.load(folder, SPACE), path, "sha256")


def test_the_official_space_has_all_images():
    assert len(shapes3d.SPACE) == 480_000


def nan_labels():
    labels = arrays()["labels"]
    labels[3, 2] = np.nan
    return labels


def two_hues_swapped():
    labels = arrays()["labels"]
    labels[[0, -1]] = labels[[-1, 0]]
    return labels


DAMAGED = {
    "no images": (dict(images=None), ["'images'", "labels"]),
    "no labels": (dict(labels=None), ["'labels'", "images"]),
    "wrong shape": (dict(images=arrays()["images"][:-1]), ["(71, 64, 64, 3)", "(72, 64, 64, 3)"]),
    "wrong type": (dict(images=arrays()["images"].astype("u2")), ["uint16", "uint8"]),
    "integer labels": (dict(labels=arrays()["labels"].astype(int)), ["int64", "float64"]),
    "NaN": (dict(labels=nan_labels()), ["NaN"]),
    "too few values": (
        dict(labels=arrays()["labels"] * [1, 1, 1, 0, 1, 1]),
        ["'scale'", "1 values", "expected 3"],
    ),
    "not in order": (dict(labels=two_hues_swapped()), ["full grid"]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_wrong_arrays_are_refused(write, refused, damage):
    changes, words = DAMAGED[damage]
    refused(load, write(**changes), *words)


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.99])
def test_truncated_files_are_refused(write, refused, keep):
    path = write()
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    refused(load, path, "not a complete HDF5 file")


def test_damage_inside_is_refused(write, refused):
    path = write()
    data = bytearray(path.read_bytes())
    middle = data.find(b"\x78\x5e")  # the start of a compressed block
    middle = middle if middle >= 0 else data.find(b"\x78\x9c")
    assert middle > 0
    data[middle : middle + 40] = bytes(40)
    path.write_bytes(data)
    refused(load, path, "not a complete HDF5 file")
