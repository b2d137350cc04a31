"""Binary files, gzipped or not, read piece by piece: a damaged one is one clear error."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from unweave.errors import DataError
from unweave.files import check_regular

_CHUNK = 1 << 24


@contextmanager
def open_binary(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading; one whose name ends in ``.gz`` is unpacked on the way."""
    check_regular(path)
    try:
        raw = path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    with raw, gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else nullcontext(raw) as stream:
        yield cast(IO[bytes], stream)


def read_exactly(path: Path, stream: IO[bytes], size: int) -> bytes:
    """The next ``size`` bytes, all of them."""
    data = _read(path, stream, size)
    if len(data) != size:
        raise DataError(f"{path}: ends {size - len(data)} bytes early: the file is not complete")
    return data


def read_blocks(
    path: Path, stream: IO[bytes], dtype: npt.DTypeLike, shape: tuple[int, ...]
) -> Iterator[npt.NDArray[Any]]:
    """The rest of the file as an array of this shape, in blocks along its first axis."""
    dtype = np.dtype(dtype)
    row = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
    step = max(1, _CHUNK // row)
    for start in range(0, shape[0], step):
        n = min(step, shape[0] - start)
        yield np.frombuffer(read_exactly(path, stream, n * row), dtype).reshape(n, *shape[1:])
    # Reading to the end also makes gzip compare the checksum of the whole file.
    if _read(path, stream, 1):
        raise DataError(f"{path}: is longer than its header says; expected an array of shape {shape}")


def _read(path: Path, stream: IO[bytes], size: int) -> bytes:
    try:
        return stream.read(size)
    except (OSError, EOFError, zlib.error, MemoryError, OverflowError) as error:
        raise DataError(f"{path}: damaged or not complete ({error})") from error
