"""Originals in a folder of somebody else's are only read."""

import gzip
import os
import shutil

import numpy as np
import pytest

import unweave as uw
from unweave.cli import main
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.registry import RECIPES
from unweave.data.storage.clean import removable_data
from unweave.data.storage.download import obtain
from unweave.data.storage.elsewhere import folder_to_write, kept_elsewhere, only_read
from unweave.data.storage.prepared import prepared

FILES = (
    SourceFile("pixels.bin.gz", "https://example.org/pixels"),
    SourceFile("labels.bin", "https://example.org/labels"),
)


@pytest.fixture
def built():
    """A data set of two official files, the images gzipped or not; the folders that it was prepared from."""
    folders = []

    def load(folder):
        packed = (folder / "pixels.bin.gz").is_file()

        def build(paths, out):
            folders.append(folder)
            data = (folder / ("pixels.bin.gz" if packed else "pixels.bin")).read_bytes()
            data = gzip.decompress(data) if packed else data
            out.save("images", np.frombuffer(data, np.uint8).reshape(-1, 8, 8, 1))

        arrays = prepared(folder, FILES if packed else FILES[1:], build)
        return uw.data.from_arrays(arrays["images"], name="tiny_set")

    RECIPES.register(
        "tiny_set", Recipe(name="tiny_set", load=load, files=FILES, splits={"train": load}), source=load
    )
    yield folders
    RECIPES.unregister("tiny_set")


def write(folder, seed=0):
    folder.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (5, 8, 8, 1), np.uint8)
    (folder / "pixels.bin.gz").write_bytes(gzip.compress(pixels.tobytes()))
    (folder / "labels.bin").write_bytes(b"01234")
    return pixels


def listing(folder):
    return {path: path.lstat().st_mtime_ns for path in [folder, *folder.rglob("*")]}


def images(data):
    return data.images(np.arange(len(data)))


def test_originals_are_only_read(built, data_folder, tmp_path):
    theirs = tmp_path / "theirs"
    pixels, before = write(theirs), listing(theirs)
    for _ in range(2):
        np.testing.assert_array_equal(images(uw.data.load("tiny_set", theirs)), pixels)
        assert uw.data.load("tiny_set", theirs, image_size=4).image_shape == (4, 4, 1)
        assert uw.data.load("tiny_set", theirs, image_size=2, split="train").image_shape == (2, 2, 1)
    assert len(built) == 1
    assert listing(theirs) == before
    ((kept, originals, unchanged),) = kept_elsewhere("tiny_set", data_folder)
    assert (originals, unchanged) == (theirs, True)
    assert kept.parent == data_folder / "elsewhere"
    arrays = sorted(str(path.relative_to(kept)) for path in kept.rglob("*.npy"))
    assert arrays == [f"theirs/{name}/images.npy" for name in ("prepared", "sizes/4", "train/sizes/2")]
    assert not (data_folder / "tiny_set").exists()


def test_two_folders_do_not_collide(built, data_folder, tmp_path):
    one, two = write(tmp_path / "a" / "set", 1), write(tmp_path / "b" / "set", 2)
    for _ in range(2):
        np.testing.assert_array_equal(images(uw.data.load("tiny_set", tmp_path / "a" / "set")), one)
        np.testing.assert_array_equal(images(uw.data.load("tiny_set", tmp_path / "b" / "set")), two)
    assert len(built) == 2


@pytest.mark.parametrize("packed", [True, False])
def test_changed_originals_are_prepared_again(built, data_folder, tmp_path, packed):
    theirs = tmp_path / "theirs"
    for seed in (0, 1):
        pixels = write(theirs, seed)
        if not packed:  # no official file, and yet of the same name
            (theirs / "pixels.bin.gz").unlink()
            (theirs / "pixels.bin").write_bytes(pixels.tobytes())
            os.utime(theirs / "labels.bin", (1, 1))
        for path in theirs.glob("pixels*"):
            os.utime(path, (seed, seed))
        np.testing.assert_array_equal(images(uw.data.load("tiny_set", theirs)), pixels)
    assert len(built) == 2
    assert len(kept_elsewhere("tiny_set", data_folder)) == 1
    shutil.rmtree(theirs)  # not needed any more
    np.testing.assert_array_equal(images(uw.data.load("tiny_set", theirs)), pixels)


def test_what_an_earlier_version_prepared_beside_the_originals_is_used(built, data_folder, tmp_path):
    theirs = tmp_path / "theirs"
    write(theirs)
    obtain(uw.data.find("tiny_set"), theirs)  # as the command that is asked to write there does
    assert (theirs / "prepared" / "images.npy").is_file()
    uw.data.load("tiny_set", theirs)
    assert len(built) == 1
    assert not (data_folder / "elsewhere").exists()
    pixels = write(theirs, 1)
    os.utime(theirs / "pixels.bin.gz", (1, 1))
    np.testing.assert_array_equal(images(uw.data.load("tiny_set", theirs)), pixels)
    assert (data_folder / "elsewhere").is_dir()


def test_a_folder_of_unweave_is_written_to(built, data_folder, tmp_path):
    write(data_folder / "tiny_set")
    uw.data.load("tiny_set", data_folder / "tiny_set", image_size=4)
    assert (data_folder / "tiny_set" / "sizes" / "4").is_dir()
    uw.data.load("rooms3d", tmp_path / "rooms").images([0])  # there are no originals of it
    assert (tmp_path / "rooms" / "rendered-v1").is_dir()
    assert not (data_folder / "elsewhere").exists()


def test_files_beside_the_folder_are_only_read(data_folder, tmp_path):
    """Of the sprites of noisy_dsprites, for one."""
    beside = tmp_path / "dsprites"
    write(beside)
    with only_read("noisy_dsprites", tmp_path / "noisy_dsprites", [], data_folder):
        moved = folder_to_write(beside / "sizes")
        assert moved.is_relative_to(data_folder / "elsewhere")
        assert moved.parts[-2:] == ("dsprites", "sizes")
        assert folder_to_write(tmp_path / "nothing here") == tmp_path / "nothing here"
        with only_read("dsprites", data_folder / "dsprites", [], data_folder):  # one data set loads another
            assert folder_to_write(beside) == beside
    assert folder_to_write(beside) == beside


def test_what_is_prepared_from_elsewhere_can_be_cleaned(built, data_folder, tmp_path, capsys):
    def run(*arguments):
        with pytest.raises(SystemExit):
            main([*arguments])
        return " ".join(capsys.readouterr().out.split())

    theirs, recipe = tmp_path / "theirs", uw.data.find("tiny_set")
    write(theirs)
    uw.data.load("tiny_set", theirs)
    ((kept, *_),) = kept_elsewhere("tiny_set", data_folder)
    assert str(theirs) in run("data", "info", "tiny_set")
    assert removable_data(recipe, data_folder / "tiny_set") == []
    assert f"prepared from {theirs}" in run("data", "clean", "--elsewhere", "--format", "csv")
    os.utime(theirs / "pixels.bin.gz", (1, 1))
    (stale,) = removable_data(recipe, data_folder / "tiny_set")
    assert (stale.path, "have changed" in stale.why) == (kept, True)
    shutil.rmtree(theirs)
    assert "are gone or have changed" in run("data", "clean", "tiny_set", "--yes", "--format", "csv")
    assert not kept.exists()
