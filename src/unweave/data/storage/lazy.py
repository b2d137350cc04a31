"""An array of rendered images that fills itself: each image is drawn when it is first asked for."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unweave.arrays import AnyArray, BoolArray, IntArray
from unweave.data.dataset import Dataset, from_grid
from unweave.data.factors import FactorSpace
from unweave.data.storage.prepared import create_array, prepare

Render = Callable[[IntArray], AnyArray]

_BLOCK = 1024  # images drawn at a time: bounds the renderer's memory
_PUBLISH = 4096  # new images after which other processes, and later ones, get to see them


def drawn_on_demand(
    name: str, space: FactorSpace, folder: Path, render: Render, *, version: int, image_shape: tuple[int, ...]
) -> Dataset:
    """A data set of rendered images, each drawn when first asked for, then kept.

    Parameters
    ----------
    name, space, image_shape
        of the data set.
    folder
        where the images are kept.
    render
        factors (n, K) -> images (n, *image_shape).
    version
        of the pictures: a change in the renderer that moves a pixel needs a new one.

    Examples
    --------
    >>> def render(factors):
    ...     return np.uint8(factors[:, :1, None, None] + np.zeros((4, 4, 1)))
    >>> space = uw.data.FactorSpace(["level"], [256])
    >>> data = drawn_on_demand("levels", space, Path("levels"), render, version=1, image_shape=(4, 4, 1))
    >>> data.images([7])[0, 0, 0]
    array([7], dtype=uint8)
    """
    shape = (len(space), *image_shape)
    return from_grid(
        name, space, LazyArray(folder, shape, lambda rows: render(space.factors(rows)), version=version)
    )


class LazyArray:
    """Images by row, drawn once each, then read from a memory-mapped file.

    The file is sparse: only what was drawn takes disk space. A row counts as drawn only after its
    image has reached the disk, so a crash at any moment costs at most some drawing, never a wrong image.
    Several processes may share the file: rendering is deterministic, all write the same bytes.

    Parameters
    ----------
    folder
        of the files. None: images are kept in memory.
    shape
        (N, *shape of an image).
    render
        rows (n,) -> images (n, *shape of an image).
    version
        of the images, part of the files' path.
    dtype
        of the images.
    block
        how many are drawn at a time.
    in_memory
        where the folder cannot be written, a warning says so and images are drawn at every access, or, with
        ``in_memory``, kept in memory.
    what
        what the warning calls the images.

    Examples
    --------
    >>> squares = LazyArray(None, (100, 1), lambda rows: rows[:, None] ** 2, version=1, dtype=np.int64)
    >>> squares.take(np.array([3, 9]))
    array([[ 9],
           [81]])
    """

    def __init__(
        self,
        folder: Path | None,
        shape: tuple[int, ...],
        render: Render,
        *,
        version: int,
        dtype: npt.DTypeLike = np.uint8,
        block: int = _BLOCK,
        in_memory: bool = False,
        what: str = "images",
    ) -> None:
        self.shape = shape
        self.version = version
        self.dtype = np.dtype(dtype)
        self.folder = None if folder is None else folder / f"rendered-v{version}"
        self._render = render
        self._block = block
        self._in_memory = in_memory
        self._what = what
        self._lock = threading.Lock()
        self._cache: _Cache | _Memory | None = None
        self._opened = False

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: IntArray, axis: int = 0) -> AnyArray:
        """The images (n, *shape) of ``rows`` (n,), drawing those that are missing."""
        with self._lock:
            cache = self._open()
            while cache is not None:
                try:
                    self._fill(cache, rows)
                    return np.take(cache.images, rows, axis=axis)
                except OSError as error:
                    if isinstance(cache, _Memory):  # then it is not the disk
                        raise
                    cache = self._give_up(error)
        return self._draw(rows)

    def keep(self, rows: IntArray, images: AnyArray) -> None:
        """Store images of rows (n,), each once, that were drawn elsewhere."""
        with self._lock:
            cache = self._open()
            if cache is not None:
                cache.store(rows, images)

    def flush(self) -> None:
        """Let other processes, and later ones, see what was drawn so far. Also done now and then, and at exit."""
        with self._lock:
            if isinstance(self._cache, _Cache) and self._cache.process == os.getpid():
                self._cache.publish()

    def _fill(self, cache: _Cache | _Memory, rows: IntArray) -> None:
        missing = np.unique(rows[cache.missing(rows)])
        for start in range(0, len(missing), self._block):
            block = missing[start : start + self._block]
            cache.store(block, self._render(block))

    def _draw(self, rows: IntArray) -> AnyArray:
        out = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for start in range(0, len(rows), self._block):
            stop = start + self._block
            out[start:stop] = self._render(rows[start:stop])
        return out

    def _open(self) -> _Cache | _Memory | None:
        elsewhere = isinstance(self._cache, _Cache) and self._cache.process != os.getpid()
        if not self._opened or elsewhere:
            self._opened = True
            if self.folder is None:
                self._cache = _Memory(self.shape, self.dtype)
                return self._cache
            try:
                self._cache = _Cache(self.folder, self.shape, self.dtype)
            except OSError as error:
                self._cache = None
                self._give_up(error)
        return self._cache

    def _give_up(self, error: OSError) -> _Memory | None:
        """Go on without the files."""
        memory = None
        if self._in_memory:
            memory = _Memory(self.shape, self.dtype)
            if isinstance(self._cache, _Cache):
                done = self._cache.done()
                memory.store(done, self._cache.images[done])
        self._cache = memory
        fate = "drawn without a cache" if memory is None else "kept in memory only"
        reason = error.strerror or str(error)
        warnings.warn(f"{self.folder}: {self._what} are {fate} ({reason})", RuntimeWarning, stacklevel=4)
        return memory


class _Memory:
    """Images that are kept by this process alone."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.images = np.zeros(shape, dtype)  # pages that are never written take no memory
        self._done = np.zeros(shape[0], bool)

    def missing(self, rows: IntArray) -> BoolArray:
        missing: BoolArray = ~self._done[rows]
        return missing

    def store(self, rows: IntArray, images: AnyArray) -> None:
        self.images[rows] = images
        self._done[rows] = True


class _Cache:
    """The files behind a LazyArray: the images, and one byte per row that says whether it was drawn."""

    def __init__(self, folder: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        def create(work: Path) -> None:
            create_array(work / "images.npy", shape, dtype, sparse=True)
            create_array(work / "done.npy", shape[:1], np.uint8)

        prepare(folder, create)
        self.process = os.getpid()
        self.images = np.load(folder / "images.npy", mmap_mode="r", allow_pickle=False)
        self._shared = np.load(folder / "done.npy", mmap_mode="r+", allow_pickle=False)
        self._done = self._shared.astype(bool)
        self._fresh: list[IntArray] = []
        self._file = open(folder / "images.npy", "r+b", buffering=0)  # noqa: SIM115 (closed by close())
        self._stride = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
        self._offset = int(self.images.offset)
        weakref.finalize(self, _close, self._file, self._shared, self._fresh, self.process)

    def done(self) -> IntArray:
        """The rows that were drawn."""
        return np.flatnonzero(self._done)

    def missing(self, rows: IntArray) -> BoolArray:
        missing: BoolArray = ~self._done[rows]
        if missing.any():  # perhaps another process has drawn them by now
            self._done[rows] |= self._shared[rows].astype(bool)
            missing = ~self._done[rows]
        return missing

    def store(self, rows: IntArray, images: AnyArray) -> None:
        # write(), not the memory map: a full disk is then an error here, not a fatal signal.
        images = np.ascontiguousarray(images)
        starts = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
        for start, stop in pairwise(starts):  # one write for each run of neighbouring rows
            self._file.seek(self._offset + int(rows[start]) * self._stride)
            self._file.write(images[start:stop].data)
        self._done[rows] = True
        self._fresh.append(rows)
        if sum(map(len, self._fresh)) >= _PUBLISH:
            self.publish()

    def publish(self) -> None:
        _publish(self._file, self._shared, self._fresh)


def _publish(file: Any, shared: AnyArray, fresh: list[IntArray]) -> None:
    if fresh:
        os.fsync(file.fileno())
        shared[np.concatenate(fresh)] = 1
        fresh.clear()


def _close(file: Any, shared: AnyArray, fresh: list[IntArray], process: int) -> None:
    try:
        if process == os.getpid():
            _publish(file, shared, fresh)
    finally:
        file.close()
