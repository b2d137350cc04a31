"""Files inside a zip, a tar or a folder, all read alike and one at a time. Nothing is ever extracted."""

from __future__ import annotations

import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from unweave.data.files.binary import open_binary
from unweave.errors import DataError
from unweave.files import check_regular

Wanted = Callable[[str], object]

_LARGEST = 1 << 28
_BLOCK = 512  # of a tar file


@dataclass(frozen=True)
class _Entry:
    name: str
    size: int
    link: bool
    read: Callable[[], bytes]


def member_names(source: Path, wanted: Wanted) -> list[str]:
    """The names of the files for which ``wanted(name)`` is true, sorted.

    ``source`` is a .zip, a .tar, a .tar.gz or a folder (whose files are named from its parent on,
    as they would be in an archive of it). Reads an archive to its end, so that damage is noticed.

    Examples
    --------
    >>> with zipfile.ZipFile("faces.zip", "w") as archive:
    ...     archive.writestr("faces/1.png", b"...")
    ...     archive.writestr("faces/readme.txt", b"...")
    >>> member_names(Path("faces.zip"), lambda name: name.endswith(".png"))
    ['faces/1.png']
    """
    with _clear_errors(source):
        return sorted(entry.name for entry in _wanted_entries(source, wanted))


def read_members(source: Path, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the wanted files, in the order in which they are stored. See :func:`member_names`.

    Examples
    --------
    >>> with zipfile.ZipFile("faces.zip", "w") as archive:
    ...     archive.writestr("faces/1.png", b"pixels")
    >>> list(read_members(Path("faces.zip"), lambda name: True))
    [('faces/1.png', b'pixels')]
    """
    with _clear_errors(source):
        for entry in _wanted_entries(source, wanted):
            yield entry.name, entry.read()


def _wanted_entries(source: Path, wanted: Wanted) -> Iterator[_Entry]:
    """The wanted files; an archive with a file that would leave the folder it is extracted to is refused."""
    entries = _folder if source.is_dir() else _zip if source.suffix == ".zip" else _tar
    seen = set()
    for entry in entries(source):
        if _escapes(entry.name):
            raise DataError(f"{source}: entry {entry.name!r} points outside of the archive")
        if not wanted(entry.name):
            continue
        if entry.link:
            raise DataError(f"{source}: entry {entry.name!r} is a link; expected a file")
        if entry.size > _LARGEST:
            raise DataError(f"{source}: entry {entry.name!r} is too large ({entry.size:,} bytes)")
        if entry.name in seen:
            raise DataError(f"{source}: entry {entry.name!r} is there twice")
        seen.add(entry.name)
        yield entry


def _escapes(name: str) -> bool:
    parts = re.split(r"[/\\]", name)
    return not parts[0] or bool(re.match(r"[A-Za-z]:", name)) or ".." in parts


def _folder(folder: Path) -> Iterator[_Entry]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            relative = path.relative_to(folder.parent).as_posix()
            yield _Entry(relative, path.stat().st_size, False, path.read_bytes)


def _zip(path: Path) -> Iterator[_Entry]:
    check_regular(path)
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                link = stat.S_ISLNK(info.external_attr >> 16)
                yield _Entry(info.filename, info.file_size, link, lambda info=info: archive.read(info))  # type: ignore[misc]


def _tar(path: Path) -> Iterator[_Entry]:
    with open_binary(path) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
        for info in archive:
            if not info.isdir():
                name = info.name.removeprefix("./")
                yield _Entry(name, info.size, not info.isfile(), lambda info=info: _extract(archive, info))  # type: ignore[misc]
        _check_tar_end(path, stream, archive.offset)


def _extract(archive: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(info)
    return file.read() if file else b""


def _check_tar_end(path: Path, stream: IO[bytes], end: int) -> None:
    # tarfile takes a damaged header for the end of the archive, which a block of zeros must mark.
    if stream.tell() < end + _BLOCK:
        raise DataError(f"{path}: ends early: the archive is not complete")
    while chunk := stream.read(1 << 20):
        if chunk.strip(b"\0"):
            raise DataError(f"{path}: damaged at byte {end:,}")


@contextmanager
def _clear_errors(source: Path) -> Iterator[None]:
    try:
        yield
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        LookupError,
    ) as error:
        raise DataError(f"{source}: damaged or not complete ({error})") from error
