import numpy as np
import pytest

from unweave.data.factors import FactorSpace
from unweave.data.sets import mpi3d

SPACE = FactorSpace(mpi3d.SPACE.names, [2, 1, 2, 1, 3, 2, 2])
N = 48
RECIPES = [mpi3d.TOY, mpi3d.REALISTIC, mpi3d.REAL, mpi3d.REAL_COMPLEX]
NAMES = [recipe.name for recipe in RECIPES]


def pictures():
    images = np.empty((N, 64, 64, 3), np.uint8)
    images[..., 0] = np.arange(64)[:, None]
    images[..., 1] = 3 * np.arange(64)
    images[..., 2] = np.arange(N)[:, None, None]
    return images


def load(folder, name="mpi3d_real"):
    return mpi3d.load(folder, SPACE, name)


def write(folder, name="mpi3d_real", save=np.savez_compressed, **arrays):
    path = folder / mpi3d.FILES[name].name
    save(path, **arrays)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_images_are_those_of_the_file(tmp_path, name):
    write(tmp_path, name, images=pictures())
    data = load(tmp_path, name)
    assert data.name == name
    assert (data.images(np.arange(N)) == pictures()).all()
    assert data.images([[1, 0, 0, 0, 2, 1, 0]])[0, 7, 5].tolist() == [7, 15, 24 + 8 + 2]


def test_the_official_spaces_have_all_images():
    assert len(mpi3d.SPACE) == 1_036_800
    assert len(mpi3d.COMPLEX_SPACE) == 460_800
    assert [recipe.summary.split(": ")[1].split()[0] for recipe in RECIPES] == [
        *["1,036,800"] * 3,
        "460,800",
    ]


DAMAGED = {
    "other key": (dict(imgs=pictures()), ["'images'", "imgs"]),
    "wrong shape": (dict(images=pictures()[1:]), ["(47, 64, 64, 3)", "(48, 64, 64, 3)"]),
    "floats": (dict(images=pictures() / 255), ["float64"]),
    "wide integers": (dict(images=pictures().astype("u2")), ["uint16", "uint8"]),
    "pickles": (dict(images=np.array([{}] * N)), ["pickled"]),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_wrong_arrays_are_refused(tmp_path, refused, damage):
    arrays, words = DAMAGED[damage]
    refused(load, write(tmp_path, **arrays), *words)


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_truncated_files_are_refused(tmp_path, refused, keep):
    path = write(tmp_path, images=pictures())
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    refused(load, path, "not a complete .npz")


def test_a_flipped_bit_is_found(tmp_path, refused):
    path = write(tmp_path, save=np.savez, images=pictures())
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    refused(load, path, "CRC")
