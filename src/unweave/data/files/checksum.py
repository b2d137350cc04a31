"""sha256 of files."""

from __future__ import annotations

import hashlib
from pathlib import Path

from unweave.errors import DataError


def sha256_of(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sha256(path: Path, expected: str | None) -> None:
    """Refuse a file whose sha256 is not the expected one (None: not known, not checked)."""
    if expected is not None and (found := sha256_of(path)) != expected:
        raise DataError(
            f"{path}: sha256 is {found}, expected {expected}: the file is damaged or not the official one"
        )
