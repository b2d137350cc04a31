"""What is known about a published data set: where it comes from and how to load it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unweave.data.dataset import Dataset


@dataclass(frozen=True)
class SourceFile:
    """An official file: its name in the data folder, its address, and what identifies it."""

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Recipe:
    """One data set of the registry: everything that ``unweave data info`` prints, and its loader.

    ``load(folder)`` makes the data set from its ``files`` in ``folder``. One that has no files, or
    whose files come with an installed Python ``package``, works offline.
    """

    name: str
    title: str
    summary: str
    licence: str
    citation: str
    homepage: str
    factors: str
    load: Callable[[Path], Dataset]
    files: tuple[SourceFile, ...] = ()
    package: str | None = None
    images: str = ""

    @property
    def offline(self) -> bool:
        """Whether nothing has to be downloaded."""
        return not self.files or self.package is not None
