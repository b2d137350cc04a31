import errno
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from unweave.data.recipe import SourceFile
from unweave.data.storage.prepared import create_array, data_folder, map_array, prepared
from unweave.errors import DataError, MissingDataError

FILE = SourceFile("numbers.txt", "https://example.org/numbers.txt")


def build(paths, out):
    values = np.loadtxt(paths["numbers.txt"], dtype=np.uint8, ndmin=1)
    out.create("images", values.shape)[:] = values
    out.save("factors", values * 2)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "numbers"
    folder.mkdir()
    (folder / "numbers.txt").write_text("1 2 3\n")
    return folder


def listing(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix != ".lock")


def test_the_environment_chooses_the_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "here"))
    assert data_folder() == tmp_path / "here"
    monkeypatch.delenv("UNWEAVE_DATA")
    assert data_folder().is_absolute()
    assert "unweave" in data_folder().parts


def test_preparation_happens_once(folder):
    arrays = prepared(folder, [FILE], build)
    np.testing.assert_array_equal(arrays["images"], [1, 2, 3])
    np.testing.assert_array_equal(arrays["factors"], [2, 4, 6])
    again = prepared(folder, [FILE], lambda paths, out: pytest.fail("prepared twice"))
    np.testing.assert_array_equal(again["images"], [1, 2, 3])


def test_the_source_is_not_needed_afterwards(folder):
    prepared(folder, [FILE], build)
    (folder / "numbers.txt").unlink()
    np.testing.assert_array_equal(prepared(folder, [FILE], build)["images"], [1, 2, 3])


def test_a_changed_source_or_version_is_prepared_anew(folder):
    old = prepared(folder, [FILE], build)["images"]
    (folder / "numbers.txt").write_text("7 8\n")
    np.testing.assert_array_equal(prepared(folder, [FILE], build)["images"], [7, 8])
    np.testing.assert_array_equal(old, [1, 2, 3])  # who has the old array keeps it

    def build_other(paths, out):
        out.save("images", np.array([9]))

    np.testing.assert_array_equal(prepared(folder, [FILE], build_other, version=2)["images"], [9])
    assert listing(folder) == ["numbers.txt", "prepared", "prepared/images.npy", "prepared/meta.json"]


def test_a_failed_preparation_leaves_everything_as_it_was(folder):
    prepared(folder, [FILE], build)
    before = listing(folder)

    def fail(paths, out):
        out.create("images", (5,))
        raise DataError("damaged")

    with pytest.raises(DataError, match="damaged"):
        prepared(folder, [FILE], fail, version=2)
    assert listing(folder) == before
    np.testing.assert_array_equal(prepared(folder, [FILE], build)["images"], [1, 2, 3])


def test_missing_files_are_named_with_address_and_place(tmp_path):
    with pytest.raises(MissingDataError) as caught:
        prepared(tmp_path / "numbers", [FILE], build)
    message = str(caught.value)
    assert "unweave data get numbers" in message
    assert FILE.url in message
    assert str(tmp_path / "numbers" / "numbers.txt") in message
    assert not (tmp_path / "numbers").exists()


def test_no_disk_space_is_one_clear_error(folder):
    def fill_the_disk(paths, out):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(DataError, match=r"cannot prepare data here .*No space left"):
        prepared(folder, [FILE], fill_the_disk)
    assert listing(folder) == ["numbers.txt"]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="disk space is reserved on POSIX only")
def test_disk_space_is_reserved_before_anything_is_written(tmp_path):
    with pytest.raises(OSError, match=r".") as caught:
        create_array(tmp_path / "huge.npy", (2**50,))
    assert caught.value.errno in (errno.ENOSPC, errno.EFBIG)


def test_created_arrays_are_plain_npy_files_aligned_to_a_page(tmp_path):
    array = create_array(tmp_path / "a.npy", (3, 5), np.float32)
    array[1, 2] = 4
    array.flush()
    loaded = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert loaded.offset % 4096 == 0
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, array)


def test_mapped_arrays_never_change_the_file(folder):
    prepared(folder, [FILE], build)["images"][:] = 0
    np.testing.assert_array_equal(prepared(folder, [FILE], build)["images"], [1, 2, 3])


def test_a_truncated_prepared_file_is_one_clear_error(folder):
    prepared(folder, [FILE], build)
    path = folder / "prepared" / "images.npy"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DataError, match=r"images.npy: not a complete .npy file.*Delete"):
        map_array(path)


def test_what_a_killed_process_left_is_cleared(folder):
    leftover = folder / ".prepared-0123"
    leftover.mkdir()
    (leftover / "images.npy").write_bytes(b"half")
    prepared(folder, [FILE], build)
    assert not leftover.exists()


PREPARE_SLOWLY = """
    import sys, time
    from pathlib import Path
    import numpy as np
    from unweave.data.recipe import SourceFile
    from unweave.data.storage.prepared import prepared

    def build(paths, out):
        with open(paths["numbers.txt"].with_name("builds"), "a") as log:
            log.write("x")
        images = out.create("images", (200,))
        time.sleep(float(sys.argv[2]))
        images[:] = 5

    arrays = prepared(Path(sys.argv[1]), [SourceFile("numbers.txt", "")], build)
    assert (arrays["images"] == 5).all() and len(arrays["images"]) == 200
"""


def start_preparing(folder, seconds):
    code = textwrap.dedent(PREPARE_SLOWLY)
    return subprocess.Popen([sys.executable, "-c", code, str(folder), str(seconds)])


def test_processes_that_prepare_at_once_all_end_well(folder):
    processes = [start_preparing(folder, 1) for _ in range(3)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    assert (folder / "builds").read_text() == "x"


def test_a_killed_preparation_is_repeated_whole(folder):
    process = start_preparing(folder, 60)
    while not (folder / "builds").exists() or not (folder / "builds").read_text():
        assert process.poll() is None
    process.kill()
    process.wait()
    assert not (folder / "prepared").exists()
    assert start_preparing(folder, 0).wait(timeout=60) == 0
    assert (folder / "builds").read_text() == "xx"
    assert "prepared/images.npy" in listing(folder)
    assert not list(folder.glob(".prepared-*"))
