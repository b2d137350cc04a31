import gzip
import itertools
import struct

import numpy as np
import pytest

from unweave.data.factors import FactorSpace
from unweave.data.sets import small_norb
from unweave.errors import MissingDataError

SPACE = FactorSpace(["category", "elevation", "azimuth", "lighting"], [2, 1, 3, 2])
INSTANCES = 2
PAIRS = 24
MAGIC = {"u1": 0x1E3D4C55, "<i4": 0x1E3D4C54}


def matrix(array) -> bytes:
    sizes = [*array.shape, 1, 1][: max(3, array.ndim)]
    header = struct.pack(f"<ii{len(sizes)}i", MAGIC[array.dtype.str.lstrip("|")], array.ndim, *sizes)
    return header + array.tobytes()


def part(seed):
    """dat, cat, info of one part, in shuffled order: a gradient whose slope and offset tell the pair."""
    rng = np.random.default_rng(seed)
    rows = np.array(list(itertools.product(range(2), range(INSTANCES), range(1), range(3), range(2))))
    rows = rows[rng.permutation(PAIRS)]
    y, x = np.mgrid[:96, :96]
    left = np.stack([(3 * i + x + y // (i + 1)) % 256 for i in range(PAIRS)])
    dat = np.stack([left, 255 - left], axis=1).astype("u1")
    info = rows[:, 1:].astype("<i4")
    info[:, 2] *= 2  # azimuths are stored as 0, 2, 4, …
    return dat, rows[:, 0].astype("<i4"), info


@pytest.fixture
def write(tmp_path):
    def write(change=None, packed=True):
        parts = {small_norb.TRAINING: part(0), small_norb.TESTING: part(1)}
        for stem, arrays in parts.items():
            for kind, array in zip(("dat", "cat", "info"), arrays, strict=True):
                name = f"{stem}-{kind}.mat"
                array = change(name, array) if change else array
                data = array if isinstance(array, bytes) else matrix(array)
                path = tmp_path / (name + ".gz" * packed)
                path.write_bytes(gzip.compress(data) if packed else data)
        return parts

    return write


def load(folder):
    return small_norb.load(folder, SPACE, INSTANCES)


@pytest.mark.parametrize("packed", [True, False])
def test_images_and_factors_are_those_of_the_files(tmp_path, write, lanczos, close, packed):
    parts = write(packed=packed)
    data = load(tmp_path)
    assert (len(data), data.image_shape) == (2 * PAIRS, (64, 64, 1))
    images, factors = data.images(np.arange(2 * PAIRS)), data.factors(np.arange(2 * PAIRS))
    for i, (dat, cat, info) in enumerate(parts.values()):
        for j in range(PAIRS):
            close(images[PAIRS * i + j], lanczos(dat[j, 0, :, :, None]))
            expected = [cat[j], info[j, 1], info[j, 2] // 2, info[j, 3]]
            assert factors[PAIRS * i + j].tolist() == expected


def test_bright_pixels_stay_bright(tmp_path, write):
    write(lambda name, array: np.full_like(array, 200) if "dat" in name else array)
    assert (load(tmp_path).images([0, 40]) == 200).all()


def test_any_toy_may_show_the_same_factors(tmp_path, write):
    write()
    data = load(tmp_path)
    wanted = np.tile([[1, 0, 2, 1]], (200, 1))
    rows = data.rows(wanted, np.random.default_rng(0))
    assert (data.factors(rows) == wanted).all()
    assert len(set(rows.tolist())) == 2 * INSTANCES


def test_the_official_space_fits_the_official_files():
    assert len(small_norb.SPACE) * 5 * 2 == 48_600
    assert len(small_norb.FILES) == len(small_norb.RECIPE.files) == 6


def test_missing_files_are_listed(tmp_path):
    with pytest.raises(MissingDataError, match=r"training-dat.mat.gz"):
        load(tmp_path)


def changed(kind, change):
    return lambda name, array: change(array) if f"testing-{kind}" in name else array


CHANGES = {
    "truncated": (changed("dat", lambda a: matrix(a)[:-1]), ["testing-dat.mat.gz", "early"]),
    "too long": (changed("dat", lambda a: matrix(a) + b"\0"), ["testing-dat.mat.gz", "longer"]),
    "header cut": (changed("cat", lambda a: b"\x55"), ["testing-cat.mat.gz", "early"]),
    "not a matrix": (
        changed("cat", lambda a: b"\0" * 200),
        ["testing-cat.mat.gz", "not a NORB binary matrix"],
    ),
    "wrong shape": (
        changed("dat", lambda a: a[:, :1]),
        ["testing-dat.mat.gz", "(24, 1, 96, 96)", "(24, 2, 96, 96)"],
    ),
    "wrong type": (changed("info", lambda a: a.astype("u1")), ["testing-info.mat.gz", "uint8", "int32"]),
    "odd azimuth": (
        changed("info", lambda a: a + np.array([0, 0, 1, 0], "<i4")),
        ["testing-info.mat.gz", "azimuth"],
    ),
    "out of range": (
        changed("info", lambda a: a + np.array([0, 0, 0, 5], "<i4")),
        ["testing-info.mat.gz", "lighting"],
    ),
    "uneven": (changed("cat", lambda a: a * 0), ["testing-info.mat.gz", "2 times"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_damaged_files_are_refused(write, refused, change):
    make, words = CHANGES[change]
    write(make)
    refused(load, *words)


@pytest.mark.parametrize("cut", [10, 3000])
def test_a_truncated_gzip_is_refused(tmp_path, write, refused, cut):
    write()
    path = tmp_path / f"{small_norb.TRAINING}-dat.mat.gz"
    path.write_bytes(path.read_bytes()[:-cut])
    refused(load, path, "damaged or not complete")


def test_a_flipped_bit_is_found(tmp_path, write, refused):
    write()
    path = tmp_path / f"{small_norb.TRAINING}-dat.mat.gz"
    data = bytearray(path.read_bytes())
    data[-6] ^= 1  # within the checksum that gzip keeps of the data
    path.write_bytes(data)
    refused(load, path, "CRC")
