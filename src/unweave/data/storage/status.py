"""What of a data set is on this machine: its files, its prepared arrays, and what a download would cost."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from unweave.data.recipe import Recipe, SourceFile

State = Literal["ready", "offline", "files present", "needs download"]
PARTIAL_SUFFIX = ".part"


@dataclass(frozen=True)
class Status:
    """What of a data set is on this machine.

    Parameters
    ----------
    state
        "ready": prepared, the next load is immediate; "offline": works without a download;
        "files present": will be prepared from its files at the next load; else "needs download".
    folder
        of the data set.
    files
        its official files.
    prepared
        whether prepared (or rendered) arrays are in ``folder``.
    disk_bytes
        what all of ``folder`` takes on disk.
    download_bytes
        what is left to download, or None where a size is not known.
    """

    state: State
    folder: Path
    files: tuple[FileStatus, ...]
    prepared: bool
    disk_bytes: int
    download_bytes: int | None


@dataclass(frozen=True)
class FileStatus:
    """One official file of a data set on this machine.

    Parameters
    ----------
    source
        what the file should be.
    path
        where it should be.
    size
        the bytes of the file there; None if there is none.
    partial
        the bytes of a download that was interrupted.
    repacked
        whether it is of another size because it was gzipped again.
    alternative
        the name of what serves in its absence, if that is there.
    """

    source: SourceFile
    path: Path
    size: int | None
    partial: int
    repacked: bool = False
    alternative: str | None = None

    @property
    def present(self) -> bool:
        """Whether there is a file, right or not."""
        return self.size is not None

    @property
    def size_differs(self) -> bool:
        """Whether the file there does not have the official size, and not the official content in another packing."""
        if self.size is None or self.source.size is None or self.repacked:
            return False
        return self.size != self.source.size

    @property
    def usable(self) -> bool:
        """Whether nothing has to be downloaded for this file."""
        return not self.size_differs if self.present else self.alternative is not None


def status(recipe: Recipe, folder: Path) -> Status:
    """What of a data set is in its ``folder``. Reads names and sizes only, so it is quick.

    Examples
    --------
    >>> status(uw.data.find("mnist"), uw.data.data_folder() / "mnist").state
    'needs download'
    """
    folder = recipe.folder_of_files(folder)
    files = find_files(recipe, folder)
    is_prepared = _is_prepared(folder)
    return Status(
        state=_state(recipe, files, is_prepared),
        folder=folder,
        files=files,
        prepared=is_prepared,
        disk_bytes=_disk_bytes(folder),
        download_bytes=0 if recipe.offline or is_prepared else _download_bytes(files),
    )


def find_files(recipe: Recipe, folder: Path) -> tuple[FileStatus, ...]:
    """The status of each of the data set's official files.

    Examples
    --------
    >>> [file.present for file in find_files(uw.data.find("celeba"), Path("nowhere"))]
    [False, False]
    """
    return tuple(_file_status(file, folder / file.name) for file in recipe.files)


def describe(recipe: Recipe, status: Status) -> dict[str, Any]:
    """Everything that is known about a data set, as values that JSON can hold.

    Examples
    --------
    >>> recipe = uw.data.find("pendulum")
    >>> describe(recipe, status(recipe, Path("pendulum")))["state"]
    'offline'
    """
    return {
        "name": recipe.name,
        "title": recipe.title,
        "label": recipe.label,
        "summary": recipe.summary,
        "images": recipe.images,
        "factors": recipe.factors,
        "num_images": recipe.num_images,
        "image_shape": recipe.image_shape,
        "factor_names": recipe.factor_names,
        "licence": recipe.licence,
        "citation": recipe.citation,
        "homepage": recipe.homepage,
        "package": recipe.package,
        "offline": recipe.offline,
        "state": status.state,
        "prepared": status.prepared,
        "disk_bytes": status.disk_bytes,
        "download_bytes": status.download_bytes,
        "folder": str(status.folder),
        "files": [
            {
                **asdict(file.source),
                "path": str(file.path),
                "present": file.present,
                "found_size": file.size,
                "size_differs": file.size_differs,
                "partial_size": file.partial,
            }
            for file in status.files
        ],
    }


def _state(recipe: Recipe, files: tuple[FileStatus, ...], is_prepared: bool) -> State:
    if is_prepared:
        return "ready"
    if recipe.offline:
        return "offline"
    return "files present" if all(file.usable for file in files) else "needs download"


def _file_status(source: SourceFile, path: Path) -> FileStatus:
    partial = path.with_name(path.name + PARTIAL_SUFFIX)
    size = _size(path)
    repacked = size is not None and size != source.size and _unpacks_to(path, source.unpacked_size)
    name = source.name_in(path.parent)
    return FileStatus(
        source, path, size, _size(partial) or 0, repacked, name if name != source.name else None
    )


def _unpacks_to(path: Path, size: int | None) -> bool:
    """Whether a file is a gzip that says so at its end; a cut one says something else there."""
    if size is None:
        return False
    try:
        with open(path, "rb") as file:  # a regular one, or a link to one
            begins = file.read(2)
            file.seek(-4, os.SEEK_END)
            return begins == b"\x1f\x8b" and int.from_bytes(file.read(4), "little") == size % (1 << 32)
    except OSError:
        return False


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _download_bytes(files: tuple[FileStatus, ...]) -> int | None:
    total = 0
    for file in files:
        if not file.usable:
            if file.source.size is None:
                return None
            total += max(file.source.size - file.partial, 0)
    return total


def _is_prepared(folder: Path) -> bool:
    """Whether a subfolder holds arrays. Names that start with a dot are unfinished work."""
    return any(not array.parent.name.startswith(".") for array in folder.glob("*/*.npy"))


def _disk_bytes(folder: Path) -> int:
    return sum(map(_blocks, folder.rglob("*")))


def _blocks(path: Path) -> int:
    # Files of rendered images are sparse: what counts is the blocks that they take, which Windows does not count.
    try:
        entry = path.stat()
    except OSError:  # gone since it was listed
        return 0
    if not path.is_file():
        return 0
    return entry.st_size if sys.platform == "win32" else entry.st_blocks * 512 or entry.st_size
