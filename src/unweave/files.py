"""Files that appear whole or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file under a temporary name, and rename it to ``path`` when all went well.

    What is written has reached the disk before the rename, so a crash leaves the old file or the new one.

    Examples
    --------
    >>> with replacing(Path("notes.txt")) as temporary:
    ...     _ = temporary.write_text("whole")
    >>> Path("notes.txt").read_text()
    'whole'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}-{uuid.uuid4().hex}{path.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())  # some writers make files that only their owner can read
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def is_leftover(path: Path) -> bool:
    """Whether a file has the temporary name under which :func:`replacing` writes.

    Examples
    --------
    >>> is_leftover(Path("notes.txt"))
    False
    """
    return re.fullmatch(r"\..*-[0-9a-f]{32}", path.stem) is not None


def remove_leftovers(folder: Path) -> None:
    """Remove what writers that were killed have left in a folder. Nobody else may be writing there."""
    for path in folder.glob(".*"):
        if is_leftover(path):
            path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all.

    Examples
    --------
    >>> write_text(Path("notes.txt"), "whole")
    >>> Path("notes.txt").read_text()
    'whole'
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
