import errno
import multiprocessing
import os

import numpy as np
import pytest

import unweave.data.storage.lazy as lazy_module
from unweave.data.storage.lazy import LazyArray

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
