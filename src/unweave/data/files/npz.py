"""Arrays in .npz files, streamed: the array may be larger than memory. Pickles are never read."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from unweave.arrays import AnyArray
from unweave.data.files.npy import read_npy_header
from unweave.errors import DataError
from unweave.files import check_regular
from unweave.progress import progress

_CHUNK = 1 << 24


def read_npz(path: Path, key: str, shape: tuple[int, ...], kind: str) -> AnyArray:
    """Read a small array of an .npz file.

    Parameters
    ----------
    path
        the file.
    key
        of the array in the file.
    shape, kind
        what the file must hold; ``kind`` are kinds of NumPy dtypes, "u" for unsigned integers.

    Returns
    -------
    array
        of this shape.

    Examples
    --------
    >>> np.savez("labels.npz", labels=np.array([3, 1]))
    >>> read_npz(Path("labels.npz"), "labels", (2,), "i")
    array([3, 1])
    """
    with _open_member(path, key, shape, kind) as (stream, dtype, full_shape):
        count = int(np.prod(full_shape, dtype=np.int64))
        out = np.frombuffer(_read_exactly(path, key, stream, count * dtype.itemsize), dtype)
        _check_end(path, key, stream)
        return out.reshape(full_shape)


def stream_npz(
    path: Path,
    key: str,
    shape: tuple[int, ...],
    kind: str,
    out: AnyArray,
    convert: Callable[[AnyArray], AnyArray] | None = None,
) -> None:
    """Copy the array ``key`` of an .npz file into ``out``, block by block along its first axis.

    Parameters
    ----------
    path, key, shape, kind
        as in :func:`read_npz`.
    out
        an array of this shape, possibly on disk.
    convert
        applied to each block.

    Examples
    --------
    >>> np.savez("images.npz", images=np.ones((4, 2, 2), np.uint8))
    >>> out = np.zeros((4, 2, 2), np.uint8)
    >>> stream_npz(Path("images.npz"), "images", (4, 2, 2), "u", out, lambda block: 255 * block)
    >>> int(out.max())
    255
    """
    with _open_member(path, key, shape, kind) as (stream, dtype, full_shape):
        if not np.can_cast(dtype, out.dtype):
            raise DataError(f"{path}: array {key!r} is {dtype}; expected {out.dtype}")
        row = int(np.prod(full_shape[1:], dtype=np.int64)) * dtype.itemsize
        step = max(1, _CHUNK // row)
        with progress(f"Reading {path.name}", full_shape[0], "images") as advance:
            for start in range(0, full_shape[0], step):
                n = min(step, full_shape[0] - start)
                block = np.frombuffer(_read_exactly(path, key, stream, n * row), dtype)
                block = block.reshape(n, *full_shape[1:])
                out[start : start + n] = convert(block) if convert else block
                advance(n)
        _check_end(path, key, stream)


@contextmanager
def _open_member(
    path: Path, key: str, shape: tuple[int, ...], kind: str
) -> Iterator[tuple[IO[bytes], np.dtype[Any], tuple[int, ...]]]:
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            name = f"{key}.npy"
            if name not in archive.namelist():
                names = [member.removesuffix(".npy") for member in archive.namelist()]
                raise DataError(f"{path}: has no array {key!r}, only {names}")
            with archive.open(name) as stream:
                yield stream, *_check_header(path, key, stream, shape, kind)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        LookupError,
    ) as error:
        raise DataError(f"{path}: not a complete .npz file ({error})") from error


def _check_header(
    path: Path, key: str, stream: IO[bytes], shape: tuple[int, ...], kind: str
) -> tuple[np.dtype[Any], tuple[int, ...]]:
    try:
        actual, fortran, dtype = read_npy_header(stream)
    except ValueError as error:
        raise DataError(f"{path}: array {key!r} has a damaged header ({error})") from error
    if dtype.hasobject:
        raise DataError(
            f"{path}: array {key!r} holds pickled objects, which are never loaded; expected numbers"
        )
    if actual != shape or dtype.kind not in kind or fortran:
        order = " in Fortran order" if fortran else ""
        raise DataError(
            f"{path}: array {key!r} is {dtype} {actual}{order}; expected shape {shape}, kind {kind!r}"
        )
    return dtype, actual


def _read_exactly(path: Path, key: str, stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise DataError(f"{path}: array {key!r} ends early")
    return data


def _check_end(path: Path, key: str, stream: IO[bytes]) -> None:
    # Reading to the end also makes zipfile compare the checksum of the whole member.
    if stream.read(1):
        raise DataError(f"{path}: array {key!r} is longer than its header says")
