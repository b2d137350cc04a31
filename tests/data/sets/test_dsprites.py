import zipfile
import zlib

import numpy as np
import pytest

import unweave as uw
from unweave.data import FactorSpace
from unweave.data.files.checksum import sha256_of
from unweave.data.recipe import SourceFile
from unweave.data.sets import dsprites as module
from unweave.errors import DataError

SMALL = FactorSpace(["shape", "scale", "orientation", "x", "y"], [1, 2, 2, 1, 3])
FILE = SourceFile("small.npz", "https://example.org/small.npz")


def contents():
    n = len(SMALL)
    classes = np.concatenate([np.zeros((n, 1), np.int64), SMALL.factors(np.arange(n))], axis=1)
    images = np.random.default_rng(0).integers(0, 2, (n, 64, 64), dtype=np.uint8)
    return {"imgs": images, "latents_classes": classes, "metadata": np.array({"date": "x"}, dtype=object)}


def write(folder, **changes):
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: value for name, value in (contents() | changes).items() if value is not None}
    np.savez_compressed(folder / FILE.name, **arrays)
    return folder / FILE.name


def load(folder):
    return module.load(folder, SMALL, FILE)


def test_the_packaged_file_is_the_official_one():
    assert sha256_of(module.packaged_file()) == module.FILE.sha256
    assert module.packaged_file().stat().st_size == module.FILE.size


def test_real_dsprites_has_every_combination_once_in_order(dsprites):
    assert len(dsprites) == 737_280
    assert dsprites.image_shape == (64, 64, 1)
    with np.load(module.packaged_file(), allow_pickle=False) as file:
        classes = file["latents_classes"]
    rows = np.arange(737_280)
    np.testing.assert_array_equal(dsprites.factors(rows), classes[:, 1:])
    np.testing.assert_array_equal(dsprites.rows(classes[:, 1:]), rows)


def test_all_real_dsprites_images_are_the_files_images(dsprites):
    """The checksum that the official file holds of its images, computed over ours."""
    with zipfile.ZipFile(module.packaged_file()) as archive:
        expected = archive.getinfo("imgs.npy").CRC
        with archive.open("imgs.npy") as stream:
            np.lib.format.read_magic(stream)
            np.lib.format.read_array_header_1_0(stream)
            length = stream.tell()
            stream.seek(0)
            checksum = zlib.crc32(stream.read(length))
    for start in range(0, len(dsprites), 4096):
        checksum = zlib.crc32(dsprites.array[start : start + 4096] & 1, checksum)
    assert checksum == expected
    assert set(np.unique(dsprites.images(np.arange(0, 737_280, 1000)))) == {0, 255}


def test_position_factors_move_the_sprite(dsprites):
    def centre(x, y):
        image = dsprites.images([[0, 5, 0, x, y]])[0, :, :, 0].astype(float)
        rows, columns = np.mgrid[:64, :64]
        return (columns * image).sum() / image.sum(), (rows * image).sum() / image.sum()

    assert centre(31, 10)[0] > centre(0, 10)[0] + 20
    assert centre(10, 31)[1] > centre(10, 0)[1] + 20
    assert centre(31, 10)[1] == pytest.approx(centre(0, 10)[1], abs=0.5)


def test_a_small_file_in_the_official_format(tmp_path):
    write(tmp_path)
    data = load(tmp_path)
    np.testing.assert_array_equal(data.images(np.arange(12))[..., 0], contents()["imgs"] * 255)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"imgs": None}, "has no array 'imgs'"),
        ({"latents_classes": None}, "has no array 'latents_classes'"),
        ({"imgs": np.zeros((12, 32, 64), np.uint8)}, r"expected shape \(12, 64, 64\)"),
        ({"imgs": np.zeros((12, 64, 64), np.float32)}, "kind 'u'"),
        ({"imgs": np.asfortranarray(np.zeros((12, 64, 64), np.uint8))}, "Fortran order"),
        ({"imgs": np.full(12, None, object)}, "pickled objects, which are never loaded"),
        ({"latents_classes": contents()["latents_classes"][::-1]}, "not the full grid"),
    ],
)
def test_wrong_contents_are_refused(tmp_path, changes, message):
    path = write(tmp_path, **changes)
    with pytest.raises(DataError, match=message) as caught:
        load(tmp_path)
    assert str(path) in str(caught.value)
    assert not list(tmp_path.glob("*prepared"))


@pytest.mark.parametrize("keep", [0, 100, 0.5, 0.99])
def test_truncated_files_are_refused(tmp_path, keep):
    path = write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(DataError, match=r"small.npz: not a complete .npz file"):
        load(tmp_path)
    assert not (tmp_path / "prepared").exists()


def test_a_flipped_bit_is_noticed(tmp_path):
    path = write(tmp_path)
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("imgs.npy").header_offset + 500
    damaged = bytearray(path.read_bytes())
    damaged[start] ^= 255
    path.write_bytes(damaged)
    with pytest.raises(DataError, match=r"small.npz"):
        load(tmp_path)
    assert not (tmp_path / "prepared").exists()


def test_a_file_with_another_hash_is_refused(tmp_path):
    write(tmp_path)
    with pytest.raises(DataError, match=r"sha256 is .* expected 00"):
        module.load(tmp_path, SMALL, SourceFile(FILE.name, FILE.url, sha256="00"))


@pytest.mark.parametrize("name", ["color_dsprites", "noisy_dsprites", "scream_dsprites"])
def test_variants_share_the_prepared_sprites_and_draw_fresh_noise(dsprites, prepared_data, name):
    data = uw.data.load(name, prepared_data / name)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(data), 8)
    first, second = data.images(rows, rng), data.images(rows, rng)
    assert data.stochastic
    assert data.space == dsprites.space
    assert first.shape == (8, *data.image_shape) == (8, 64, 64, 3)
    assert first.dtype == np.uint8
    assert (first != second).any(axis=(1, 2, 3)).all()
    np.testing.assert_array_equal(
        data.images(rows, np.random.default_rng(1)), data.images(rows, np.random.default_rng(1))
    )
    assert not (prepared_data / name).exists()
