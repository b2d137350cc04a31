"""sha256 of files."""

from __future__ import annotations

import hashlib
from pathlib import Path

from unweave.errors import DataError


def sha256_of(path: Path) -> str:
    """The sha256 of a file, in hexadecimal.

    Examples
    --------
    >>> Path("empty").touch()
    >>> sha256_of(Path("empty"))[:8]
    'e3b0c442'
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sha256(path: Path, expected: str | None) -> None:
    """Refuse a file whose sha256 is not the expected one (None: not known, not checked).

    Examples
    --------
    >>> Path("empty").touch()
    >>> check_sha256(Path("empty"), "0123")
    Traceback (most recent call last):
    unweave.errors.DataError: empty: sha256 is e3b0..., expected 0123: the file is damaged or not the official one
    """
    if expected is not None and (actual := sha256_of(path)) != expected:
        raise DataError(
            f"{path}: sha256 is {actual}, expected {expected}: the file is damaged or not the official one"
        )
