import errno
import multiprocessing
import os
import shutil
import warnings

import numpy as np
import pytest

import unweave.data.storage.lazy as lazy_module
from unweave.data.storage.lazy import LazyArray
from unweave.data.storage.prepared import create_array
from unweave.errors import DataError

SHAPE = (50, 4, 3)


def render(rows):
    return (rows[:, None, None] * 5 + np.arange(12).reshape(4, 3)).astype(np.uint8)


class Counted:
    """A renderer that remembers what it drew."""

    def __init__(self):
        self.rows = []

    def __call__(self, rows):
        self.rows += rows.tolist()
        return render(rows)


def make(folder, version=1):
    renderer = Counted()
    return LazyArray(folder, SHAPE, renderer, version=version), renderer


def test_each_image_is_drawn_once(tmp_path):
    array, renderer = make(tmp_path)
    rows = np.array([7, 3, 7, 49])
    np.testing.assert_array_equal(array.take(rows), render(rows))
    np.testing.assert_array_equal(array.take(rows[::-1]), render(rows[::-1]))
    assert renderer.rows == [3, 7, 49]
    assert len(array) == 50
    assert array.shape == SHAPE


def test_images_drawn_before_are_there_the_next_time(tmp_path):
    array, _ = make(tmp_path)
    array.take(np.arange(10))
    del array
    again, renderer = make(tmp_path)
    np.testing.assert_array_equal(again.take(np.arange(12)), render(np.arange(12)))
    assert renderer.rows == [10, 11]


def test_another_version_of_the_renderer_draws_anew(tmp_path):
    array, _ = make(tmp_path)
    array.take(np.arange(10))
    del array
    again, renderer = make(tmp_path, version=2)
    again.take(np.arange(3))
    assert renderer.rows == [0, 1, 2]


def test_the_file_takes_only_the_space_of_what_was_drawn(tmp_path):
    array = LazyArray(
        tmp_path, (1_000_000, 64, 64), lambda rows: np.ones((len(rows), 64, 64), np.uint8), version=1
    )
    array.take(np.array([0, 999_999]))
    status = (tmp_path / "rendered-v1" / "images.npy").stat()
    assert status.st_size > 4_000_000_000
    assert status.st_blocks * 512 < 10_000_000


def _crash_while_drawing(folder):
    array, _ = make(folder)
    array.take(np.arange(20))
    os._exit(9)  # no destructor, no exit handler: nothing was published


def test_a_crash_costs_drawing_but_never_a_wrong_image(tmp_path):
    process = multiprocessing.get_context("spawn").Process(target=_crash_while_drawing, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == 9
    array, renderer = make(tmp_path)
    np.testing.assert_array_equal(array.take(np.arange(50)), render(np.arange(50)))
    assert renderer.rows == list(range(50))


def test_two_arrays_on_one_file_see_each_others_images(tmp_path, monkeypatch):
    monkeypatch.setattr(lazy_module, "_PUBLISH", 1)
    first, _ = make(tmp_path)
    second, renderer = make(tmp_path)
    second.take(np.array([0]))
    first.take(np.arange(30))
    np.testing.assert_array_equal(second.take(np.arange(30)), render(np.arange(30)))
    assert renderer.rows == [0]


def test_without_a_writable_folder_images_are_drawn_each_time(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    array, renderer = make(blocked)
    with pytest.warns(RuntimeWarning, match="drawn without a cache"):
        np.testing.assert_array_equal(array.take(np.array([3])), render(np.array([3])))
    np.testing.assert_array_equal(array.take(np.array([3])), render(np.array([3])))
    assert renderer.rows == [3, 3]


def test_a_full_disk_stops_the_cache_not_the_work(tmp_path, monkeypatch):
    array, _ = make(tmp_path)
    array.take(np.array([0]))

    def full(self, rows, images):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(lazy_module._Cache, "store", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        np.testing.assert_array_equal(array.take(np.array([1])), render(np.array([1])))


def test_a_forked_child_does_not_share_the_parents_file_position(tmp_path):
    array, _ = make(tmp_path)
    array.take(np.array([1]))
    child = os.fork()
    if child == 0:
        ok = np.array_equal(array.take(np.arange(25)), render(np.arange(25)))
        os._exit(0 if ok else 1)
    np.testing.assert_array_equal(array.take(np.arange(25, 50)), render(np.arange(25, 50)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    fresh, _ = make(tmp_path)
    np.testing.assert_array_equal(fresh.take(np.arange(50)), render(np.arange(50)))


# --- full disks and damaged files ----------------------------------------------------------------------

LARGE = (400, 32, 32, 3)  # 1.2 MB


def render_large(rows):
    rng = np.random.default_rng(0).integers(1, 256, LARGE[1:], np.uint8)
    return rng ^ rows.astype(np.uint8)[:, None, None, None] | 1


def make_large(folder, **options):
    return LazyArray(folder, LARGE, render_large, version=1, **options)


def legacy(folder, shape, dtype=np.uint8):
    """The files of a folder as earlier versions made them, without checksums."""
    target = folder / "rendered-v1"
    target.mkdir(parents=True)
    return create_array(target / "images.npy", shape, dtype, sparse=True), create_array(
        target / "done.npy", shape[:1]
    )


@pytest.mark.parametrize("total", [0, 1, 4096, 50_001, 800_000])
def test_rows_that_the_disk_did_not_take_are_not_counted_as_drawn(tmp_path, short_writes, total):
    rows = np.arange(LARGE[0])
    array = make_large(tmp_path)
    array.take(rows[:1])
    with short_writes(total), pytest.warns(RuntimeWarning, match="drawn without a cache .*No space left"):
        np.testing.assert_array_equal(array.take(rows), render_large(rows))
    del array
    np.testing.assert_array_equal(make_large(tmp_path).take(rows[:50]), render_large(rows[:50]))


def test_short_writes_are_continued(tmp_path, short_writes):
    rows = np.arange(LARGE[0])
    with short_writes(10_000_000):
        make_large(tmp_path).take(rows)
    again = LazyArray(tmp_path, LARGE, lambda rows: pytest.fail("drawn again"), version=1)
    np.testing.assert_array_equal(again.take(rows), render_large(rows))


@pytest.mark.parametrize("kilobytes", [60, 300, 700])
@pytest.mark.parametrize("in_memory", [False, True])
def test_on_a_full_disk_every_image_is_right_now_and_later(small_disk, kilobytes, in_memory):
    rows = np.arange(LARGE[0])
    folder = small_disk(kilobytes)
    array = make_large(folder, in_memory=in_memory)
    with pytest.warns(RuntimeWarning, match="No space left"):
        np.testing.assert_array_equal(array.take(rows), render_large(rows))
    np.testing.assert_array_equal(array.take(rows[::-1]), render_large(rows[::-1]))
    del array
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the disk is still full
        np.testing.assert_array_equal(make_large(folder).take(rows), render_large(rows))


def _read_on_a_full_disk(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = np.arange(LARGE[0])
        os._exit(0 if np.array_equal(make_large(folder).take(rows), render_large(rows)) else 1)


def test_holes_that_an_earlier_version_counted_as_drawn_kill_no_reader_of_a_full_disk(small_disk):
    folder = small_disk(700)
    images, done = legacy(folder, LARGE)
    with open(folder / "rendered-v1" / "images.npy", "r+b", buffering=0) as file:
        file.seek(images.offset)
        written = file.write(render_large(np.arange(LARGE[0])).data)
    assert 0 < written < images.nbytes
    done[:] = 1
    done.flush()
    process = multiprocessing.get_context("spawn").Process(target=_read_on_a_full_disk, args=(folder,))
    process.start()
    process.join()
    assert process.exitcode == 0  # a hole read through the map of a full tmpfs is SIGBUS


def test_what_an_earlier_version_left_black_is_drawn_again(tmp_path):
    images, done = legacy(tmp_path, LARGE)
    rows = np.arange(LARGE[0])
    images[:200] = render_large(rows[:200])
    images[150, -1] = 0  # cut
    done[:300] = 1
    renderer = []
    array = LazyArray(
        tmp_path, LARGE, lambda rows: renderer.extend(rows.tolist()) or render_large(rows), version=1
    )
    np.testing.assert_array_equal(array.take(rows), render_large(rows))
    assert renderer == [150, *range(200, 400)]
    del array
    again = LazyArray(tmp_path, LARGE, lambda rows: pytest.fail("drawn again"), version=1)
    np.testing.assert_array_equal(again.take(rows), render_large(rows))


def test_damaged_rows_are_found_and_drawn_again(tmp_path):
    array, _ = make(tmp_path)
    array.take(np.arange(50))
    del array
    stored = np.load(tmp_path / "rendered-v1" / "images.npy", mmap_mode="r+")
    stored[7, 0, 0] += 1
    stored[[20, 21]] = stored[[21, 20]]
    stored.flush()
    again, renderer = make(tmp_path)
    with pytest.warns(RuntimeWarning, match=r"3 images are not what was written \(first row 7\)"):
        np.testing.assert_array_equal(again.take(np.arange(50)), render(np.arange(50)))
    assert renderer.rows == [7, 20, 21]


def test_files_of_another_array_are_not_taken(tmp_path):
    ones = LazyArray(
        tmp_path / "a", (9, 4), lambda rows: np.ones((len(rows), 4), np.uint8), version=1, identity="a"
    )
    ones.take(np.arange(9))
    del ones
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    twos = LazyArray(
        tmp_path / "b", (9, 4), lambda rows: np.full((len(rows), 4), 2, np.uint8), version=1, identity="b"
    )
    with pytest.warns(RuntimeWarning, match="not what was written"):
        assert (twos.take(np.arange(9)) == 2).all()


@pytest.mark.parametrize("name", ["images.npy", "done.npy", "checksums.npy"])
@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"nothing of the kind" * 1000])
def test_truncated_files_are_made_again(tmp_path, name, content):
    array, _ = make(tmp_path)
    array.take(np.arange(50))
    del array
    (tmp_path / "rendered-v1" / name).write_bytes(content)
    again, _ = make(tmp_path)
    np.testing.assert_array_equal(again.take(np.arange(50)), render(np.arange(50)))


@pytest.mark.parametrize("name", ["images.npy", "done.npy", "checksums.npy"])
def test_nothing_is_written_through_a_link(tmp_path, name):
    array, _ = make(tmp_path / "cache")
    array.take(np.arange(5))
    del array
    path = tmp_path / "cache" / "rendered-v1" / name
    victim = tmp_path / "victim.npy"
    path.rename(victim)
    before = victim.read_bytes()
    path.symlink_to(victim)
    again, _ = make(tmp_path / "cache")
    with pytest.raises(DataError, match=f"{name}: is a link"):
        again.take(np.arange(50))
    assert victim.read_bytes() == before


def test_a_disk_that_reports_no_space_only_at_the_end_loses_no_row(tmp_path, monkeypatch):
    """As a network file system does: write() succeeds, fsync() does not."""
    array, _ = make(tmp_path)
    array.take(np.arange(5))

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(RuntimeWarning, match="No space left"):
            array.flush()
    del array
    assert not np.load(tmp_path / "rendered-v1" / "done.npy").any()
    np.testing.assert_array_equal(make(tmp_path)[0].take(np.arange(5)), render(np.arange(5)))
