"""Reading a folder of photographs: what is there, what cannot be read, what is there twice."""

import errno
import os

import numpy as np
import pytest
from PIL import Image

from unweave.data.own.folders import image_files
from unweave.discovery.photographs import check_enough, read_photographs, write_array
from unweave.errors import ArgumentError, DataError
from unweave.files import is_full


def test_photographs_of_different_kinds_and_sizes_become_squares(save, tmp_path):
    rng = np.random.default_rng(0)
    folder = save("photos", rng.integers(0, 256, (3, 60, 90, 3), np.uint8), suffix="jpg")
    (folder / "sub").mkdir()
    Image.fromarray(rng.integers(0, 256, (200, 100), np.uint8)).save(folder / "sub" / "grey.png")
    (folder / "notes.txt").write_text("no image")
    photographs = read_photographs(folder, tmp_path / "store")
    assert photographs.names == ("000.jpg", "001.jpg", "002.jpg", "sub/grey.png")
    assert photographs.images.shape == (4, 64, 64, 3)
    assert photographs.common_sizes == [((60, 90), 3), ((200, 100), 1)]


def test_small_files_stay_small(save, squares, tmp_path):
    assert read_photographs(save("a", squares(3)), tmp_path / "a-store").side == 28
    forty = np.random.default_rng(0).integers(0, 256, (3, 40, 40), np.uint8)
    assert read_photographs(save("b", forty), tmp_path / "b-store").side == 32


def test_colour_files_without_colour_are_grey(save, tmp_path):
    grey = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 1), np.uint8)
    folder = save("photos", np.repeat(grey, 3, axis=3))
    photographs = read_photographs(folder, tmp_path / "store")
    assert photographs.channels == 1
    np.testing.assert_array_equal(photographs.images, grey)


def test_unreadable_files_are_listed_with_the_reason(save, squares, tmp_path):
    folder = save("photos", squares(3))
    (folder / "broken.png").write_bytes(b"nothing of a picture")
    whole = (folder / "000.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    photographs = read_photographs(folder, tmp_path / "store")
    assert [name for name, _ in photographs.unreadable] == ["broken.png", "cut.png"]
    assert all(why and str(folder) not in why for _, why in photographs.unreadable)
    assert len(photographs) == 3


def test_photographs_of_telephones_are_not_passed_over(save, squares, tmp_path):
    folder = save("photos", squares(3))
    (folder / "IMG_0001.HEIC").write_bytes(b"ftypheic")
    (folder / "notes.txt").write_text("no photograph")
    photographs = read_photographs(folder, tmp_path / "store")
    ((name, why),) = photographs.unreadable
    assert name == "IMG_0001.HEIC"
    assert "save them as JPEG" in why


def test_a_second_call_reads_no_file(save, squares, tmp_path, monkeypatch):
    folder = save("photos", squares(4))
    first = read_photographs(folder, tmp_path / "store")
    monkeypatch.setattr("unweave.discovery.photographs.read_image", None)
    second = read_photographs(folder, tmp_path / "store")
    np.testing.assert_array_equal(first.images, second.images)
    assert (first.names, first.digest, first.sizes) == (second.names, second.digest, second.sizes)


def test_a_damaged_store_is_read_anew(save, squares, tmp_path):
    folder = save("photos", squares(4))
    first = read_photographs(folder, tmp_path / "store")
    (tmp_path / "store" / "images.npy").write_bytes(b"damaged")
    assert read_photographs(folder, tmp_path / "store").digest == first.digest


def test_copies_are_duplicates_and_neighbours_are_not(save, squares, tmp_path):
    images = squares(6)
    images[1] = np.roll(images[0], 1, axis=1)  # moved by one pixel
    folder = save("photos", [*images, images[2]])
    noisy = np.clip(np.repeat(np.repeat(images[3], 4, 0), 4, 1).astype(int) + 2, 0, 255).astype(np.uint8)
    Image.fromarray(noisy).resize((28, 28), Image.Resampling.BOX).save(folder / "saved-again.jpg", quality=95)
    photographs = read_photographs(folder, tmp_path / "store")
    assert photographs.first_alike.tolist() == [0, 1, 2, 3, 4, 5, 2, 3]
    assert photographs.distinct.tolist() == [0, 1, 2, 3, 4, 5]


def test_photographs_that_hardly_differ_are_not_thrown_away(save, tmp_path):
    images = np.full((20, 64, 64), 100, np.uint8) + np.arange(20, dtype=np.uint8)[:, None, None] // 4
    images[:, 0, 0] += np.arange(20, dtype=np.uint8)
    assert len(read_photographs(save("photos", images), tmp_path / "store").distinct) == 20


def test_the_output_inside_the_folder_is_passed_over(save, squares, tmp_path):
    folder = save("photos", squares(3))
    save("photos/results", squares(2))
    assert len(read_photographs(folder, tmp_path / "store", exclude=folder / "results")) == 3


def test_folders_without_enough_are_refused(save, squares, tmp_path):
    with pytest.raises(ArgumentError, match="needs a folder"):
        read_photographs(tmp_path / "nowhere", tmp_path / "store")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no images here"):
        read_photographs(tmp_path / "empty", tmp_path / "store")
    with pytest.raises(DataError, match="1 readable images, 1 of them different; needs 10"):
        check_enough(read_photographs(save("one", squares(1)), tmp_path / "store"))
    same = np.repeat(squares(1), 12, axis=0)
    with pytest.raises(DataError, match="all 12 images show the same"):
        check_enough(read_photographs(save("same", same), tmp_path / "store"))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"none of 1 image files can be read, first 'a\.png'"):
        read_photographs(tmp_path / "bad", tmp_path / "store")


def test_a_disk_that_is_full_of_photographs_is_said_to_be_full(small_disk):
    """NumPy says "N requested and M written", without the number of the error."""
    disk = small_disk(64)
    with pytest.raises(OSError, match="No space left") as caught:
        write_array(disk / "images.npy", np.zeros((100, 32, 32, 3), np.uint8))
    assert is_full(caught.value)
    assert list(disk.iterdir()) == []


def test_a_folder_inside_that_cannot_be_read_is_listed(save, squares, tmp_path, monkeypatch):
    folder = save("photos", squares(12))
    (folder / "private").mkdir()
    scan = os.scandir

    def refuse(path):
        if str(path).endswith("private"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    photographs = read_photographs(folder, tmp_path / "store")
    assert len(photographs) == 12
    assert photographs.unreadable == (("private/", "the folder cannot be read (Permission denied)"),)
    monkeypatch.undo()
    assert read_photographs(folder, tmp_path / "store").unreadable == ()


def test_files_that_can_be_listed_and_not_read_do_no_harm(save, squares, tmp_path, monkeypatch):
    """As in a folder that one may list and not enter."""
    folder = save("photos", squares(12))
    (folder / "private").mkdir()
    (folder / "private" / "a.png").write_bytes(b"")
    scan = os.scandir

    class Locked:
        def __init__(self, entry):
            self.name, self.path, self.is_dir, self.is_file = (
                entry.name,
                entry.path,
                entry.is_dir,
                entry.is_file,
            )

        def stat(self):
            raise PermissionError(errno.EACCES, "Permission denied", self.path)

    def refuse(path):
        return [Locked(entry) if "private" in entry.path else entry for entry in scan(path)]

    monkeypatch.setattr(os, "scandir", refuse)
    photographs = read_photographs(folder, tmp_path / "store")
    assert photographs.unreadable == (("private/a.png", "cannot be read (Permission denied)"),)
    with pytest.raises(DataError, match=r"a\.png: cannot be read \(Permission denied\)"):
        image_files(folder)
