"""An array of rendered images that fills itself: each image is drawn when it is first asked for."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unweave.arrays import AnyArray, BoolArray, IntArray
from unweave.data.dataset import Dataset, from_grid
from unweave.data.factors import FactorSpace
from unweave.data.storage.elsewhere import folder_to_write
from unweave.data.storage.prepared import create_array, map_created, prepare
from unweave.data.storage.row_checksums import row_checksums
from unweave.files import check_no_links, open_regular, replacing, write_all

Render = Callable[[IntArray], AnyArray]

_BLOCK = 1024  # images drawn at a time: bounds the renderer's memory
_COMPARE_BYTES = 1 << 24  # read at a time to compare checksums
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

    The file is sparse: only what was drawn takes disk space. A row counts as drawn only after all of its
    image has reached the disk, so a crash or a full disk costs at most some drawing, never a wrong image.
    Each row has a checksum, which a process compares when it first reads the row: one that does not match is drawn
    again. Several processes may share the file: rendering is deterministic, all write the same bytes.

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
    identity
        of what the images are, beyond their version: part of the checksums, so that the files of another array, put
        in this one's folder, are not taken for its own.

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
        identity: str = "",
    ) -> None:
        self.shape = shape
        self.version = version
        self.dtype = np.dtype(dtype)
        self.folder = None if folder is None else folder_to_write(folder) / f"rendered-v{version}"
        self._render = render
        self._block = block
        self._in_memory = in_memory
        self._what = what
        self._identity = identity
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
            while cache is not None:
                try:
                    return cache.store(rows, images)
                except OSError as error:
                    cache = self._give_up(error)

    def flush(self) -> None:
        """Let other processes, and later ones, see what was drawn so far. Also done now and then, and at exit."""
        with self._lock:
            if isinstance(self._cache, _Cache) and self._cache.process == os.getpid():
                try:
                    self._cache.publish()
                except OSError as error:
                    self._give_up(error)

    def drawn_before(self) -> IntArray:
        """The rows (n,) that were drawn by an earlier process, or by another one, as far as it is known now."""
        with self._lock:
            cache = self._open()
            return cache.marked() if isinstance(cache, _Cache) else np.empty(0, np.int64)

    def discard(self) -> None:
        """Forget all that was drawn, by whomever: it turned out to be wrong."""
        with self._lock:
            if isinstance(self._cache, _Cache):
                self._cache.discard()

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
                self._cache = _Cache(self.folder, self.shape, self.dtype, self._identity, self._what)
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
    """The files behind a LazyArray: the images, for each row a checksum, and a byte that says whether it was drawn.

    The images are written by write(), where a full disk is an error, and their checksums are compared by read(), where
    a hole in a sparse file is zeros; both would be fatal signals in a memory map. A row is mapped once it is known to
    be whole.
    """

    def __init__(
        self, folder: Path, shape: tuple[int, ...], dtype: np.dtype[Any], identity: str, what: str
    ) -> None:
        def create(work: Path) -> None:
            create_array(work / "images.npy", shape, dtype, sparse=True)
            create_array(work / "done.npy", shape[:1], np.uint8)
            create_array(work / "checksums.npy", shape[:1], np.uint32)

        check_no_links(folder, folder.parent)
        prepare(folder, create, lambda: _is_sound(folder, shape, dtype))
        self.process = os.getpid()
        self._folder, self._what = folder, what
        self._checksums_of = row_checksums(f"{identity} {shape[1:]} {dtype.str}")
        self._file = open_regular(folder / "images.npy", update=True)
        try:
            self.images = map_created(folder / "images.npy", shape, dtype, "r")
            self._shared = map_created(folder / "done.npy", shape[:1], np.dtype(np.uint8), "r+")
            self._stride = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
            self._offset = int(self.images.offset)
            self._done = np.zeros(shape[0], bool)  # written, or compared, by this process
            self._fresh: list[IntArray] = []
            self._checksums = self._open_checksums(shape[0])
        except BaseException:
            self._file.close()
            raise
        weakref.finalize(
            self, _close, self._file, self._checksums, self._shared, self._fresh, self._done, self.process
        )

    def done(self) -> IntArray:
        """The rows that this process knows to be whole."""
        return np.flatnonzero(self._done)

    def marked(self) -> IntArray:
        """The rows that some process has drawn."""
        return np.flatnonzero(self._shared)

    def missing(self, rows: IntArray) -> BoolArray:
        missing: BoolArray = ~self._done[rows]
        if missing.any():
            self._compare(np.unique(rows[missing]))
            missing = ~self._done[rows]
        return missing

    def store(self, rows: IntArray, images: AnyArray) -> None:
        images = np.ascontiguousarray(images, self.images.dtype)
        for start, stop in _neighbours(rows):  # one write for each run of neighbouring rows
            offset = self._offset + int(rows[start]) * self._stride
            write_all(self._file.fileno(), images[start:stop].data, offset)
        self._checksums[rows] = self._checksums_of(rows, images)
        self._done[rows] = True
        self._fresh.append(rows)
        if sum(map(len, self._fresh)) >= _PUBLISH:
            self.publish()

    def publish(self) -> None:
        _publish(self._file, self._checksums, self._shared, self._fresh, self._done)

    def discard(self) -> None:
        self._shared[:] = 0
        self._done[:] = False
        self._fresh.clear()

    def _compare(self, rows: IntArray) -> None:
        """Take over those of ``rows`` that others have drawn and whose bytes are as they were written."""
        for block in self._blocks(rows[self._shared[rows] != 0]):
            is_whole = self._checksums_of(block, self._read(block)) == self._checksums[block]
            self._done[block[is_whole]] = True
            damaged = block[~is_whole]
            if len(damaged):
                self._shared[damaged] = 0
                warnings.warn(
                    f"{self._folder}: {len(damaged):,} {self._what} are not what was written (first row "
                    f"{damaged[0]:,}): they are drawn again",
                    RuntimeWarning,
                    stacklevel=6,
                )

    def _read(self, rows: IntArray) -> AnyArray:
        """The bytes (n, bytes of a row) of rows, not by the map."""
        content = np.zeros((len(rows), self._stride), np.uint8)
        for start, stop in _neighbours(rows):
            offset = self._offset + int(rows[start]) * self._stride
            self._file.seek(offset)
            part = content[start:stop].reshape(-1).data
            while len(part):
                count = self._file.readinto(part)  # type: ignore[attr-defined]
                if not count:
                    break  # the rest counts as zeros, which its checksum does not match
                part = part[count:]
        return content

    def _open_checksums(self, n: int) -> AnyArray:
        """The checksums; those of a folder of an earlier version are computed now.

        That version could count a row as drawn of which a full disk had taken no byte, or not the last ones: it is a
        hole in the file, which reads as zeros. A row that ends in another byte than zero is whole.
        """
        path = self._folder / "checksums.npy"
        if not path.exists():
            from filelock import FileLock  # takes as long to import as numpy

            with FileLock(self._folder.with_name(f".{self._folder.name}.lock")):
                if not path.exists():
                    self._write_checksums(path, n)
        checksums: AnyArray = map_created(path, (n,), np.dtype(np.uint32), "r+")
        return checksums

    def _write_checksums(self, path: Path, n: int) -> None:
        with replacing(path) as work:
            checksums = create_array(work, (n,), np.uint32)
            for block in self._blocks(self.marked()):
                content = self._read(block)
                checksums[block] = self._checksums_of(block, content)
                self._shared[block[content[:, -1] == 0]] = 0
            checksums.flush()

    def _blocks(self, rows: IntArray) -> Iterator[IntArray]:
        """Rows, as many at a time as are read at once."""
        size = max(1, _COMPARE_BYTES // self._stride)
        return (rows[start : start + size] for start in range(0, len(rows), size))


def _neighbours(rows: IntArray) -> list[tuple[int, int]]:
    """(start, stop) of each run of neighbouring rows."""
    starts = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
    return list(pairwise(starts)) if len(rows) else []


def _is_sound(folder: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Whether the files are there and of their full size; if not, all are created anew. Links are an error."""
    try:
        map_created(folder / "images.npy", shape, dtype, "r")
        map_created(folder / "done.npy", shape[:1], np.dtype(np.uint8), "r")
        if (folder / "checksums.npy").exists():
            map_created(folder / "checksums.npy", shape[:1], np.dtype(np.uint32), "r")
    except (FileNotFoundError, ValueError):
        return False
    return True


def _publish(file: Any, checksums: Any, shared: AnyArray, fresh: list[IntArray], done: BoolArray) -> None:
    """Mark rows as drawn, after their bytes have reached the disk."""
    if fresh:
        rows = np.concatenate(fresh)
        fresh.clear()
        try:
            os.fsync(file.fileno())
            checksums.flush()
        except OSError:
            done[rows] = False  # some file systems say only now that there was no space
            raise
        shared[rows] = 1


def _close(
    file: Any, checksums: Any, shared: AnyArray, fresh: list[IntArray], done: BoolArray, process: int
) -> None:
    try:
        if process == os.getpid():
            with suppress(OSError):  # the rows stay unmarked, and are drawn again when they are asked for
                _publish(file, checksums, shared, fresh, done)
    finally:
        file.close()
