"""What takes disk space and is not needed any more."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from unweave.files import is_leftover

_HOUR = 3600.0  # what is younger may be somebody's work right now


@dataclass(frozen=True)
class Removable:
    """A file or folder that can go, and why.

    Examples
    --------
    >>> Path("old.json.damaged").write_text("{")
    1
    >>> Removable(Path("old.json.damaged"), "a damaged file").size > 0
    True
    """

    path: Path
    why: str

    @property
    def size(self) -> int:
        """The bytes that it takes on disk."""
        return sum(map(_size, [self.path, *(self.path.rglob("*") if _is_folder(self.path) else ())]))

    def remove(self) -> None:
        """Delete it; what is gone already is fine."""
        if _is_folder(self.path):
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)


def leftovers(folder: Path) -> Iterator[Removable]:
    """What killed processes have left directly in a folder, and damaged files that were set aside.

    Examples
    --------
    >>> Path("scores.json.damaged").touch()
    >>> [each.why for each in leftovers(Path("."))]
    ['a damaged file that was set aside']
    """
    for path in sorted(folder.iterdir()) if _is_folder(folder) else ():  # not of a link's target
        if path.name.endswith(".damaged"):
            yield Removable(path, "a damaged file that was set aside")
        elif _is_unfinished(path) and _age(path) > _HOUR:
            yield Removable(path, "unfinished work of a process that is gone")


def total_size(removables: Iterable[Removable]) -> int:
    """The bytes that they take together.

    Examples
    --------
    >>> total_size([])
    0
    """
    return sum(each.size for each in removables)


def _is_unfinished(path: Path) -> bool:
    is_work = re.fullmatch(r"\..*-[0-9a-f]{32}(-old)?|\.arriving-.*", path.name) is not None
    return is_leftover(path) or is_work


def _age(path: Path) -> float:
    try:
        return time.time() - path.lstat().st_mtime
    except OSError:
        return 0.0


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _size(path: Path) -> int:
    try:
        entry = os.lstat(path)
    except OSError:  # gone since it was listed
        return 0
    blocks = getattr(entry, "st_blocks", None)  # a sparse file takes what was written; Windows does not count
    return entry.st_size if blocks is None else blocks * 512
