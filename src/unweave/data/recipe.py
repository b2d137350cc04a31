"""A recipe: everything that is known about a data set before it is loaded, and how to load it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from unweave.data.factors import FactorSpace

if TYPE_CHECKING:
    from unweave.data.dataset import Dataset

_LISTED = 12  # factors that are described one by one; CelebA has 40


@dataclass(frozen=True)
class SourceFile:
    """An official file of a data set.

    Parameters
    ----------
    name
        its name in the data set's folder.
    url
        its address.
    size
        its number of bytes, where that is known.
    sha256
        its checksum, where that is known.
    at_most
        the bytes after which a download of unknown size is given up.
    unpacked_size
        of a .gz file whose content is checked when it is read: the bytes of that content. One that was gzipped again
        is as good as the official one.
    alternatives
        names of files or folders that serve where this one is not there: unpacked, or a copy in common use.

    Examples
    --------
    >>> file = SourceFile("sprites.tar", "https://example.org/sprites.tar", size=19_318_135, alternatives=("sprites",))
    >>> file.name_in(Path("nowhere"))
    'sprites.tar'
    """

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None
    at_most: int = 10 << 30
    unpacked_size: int | None = None
    alternatives: tuple[str, ...] = ()

    def name_in(self, folder: Path) -> str:
        """Its name in a folder, or that of the first alternative, where only that is there."""
        names = (self.name, *self.alternatives)
        return next((name for name in names if (folder / name).exists()), self.name)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One data set of the registry: its facts, its files and its loader.

    Parameters
    ----------
    name
        what :func:`unweave.data.load` takes.
    load
        ``load(folder)`` builds the data set from its ``files`` in ``folder``.
    title
        the name that its authors gave it; by default ``name``.
    label
        a short name for figures, as papers write it; by default ``title``.
    summary
        one sentence.
    num_images
        the number of rows. None: endless, or known only once the data set is loaded.
    image_shape
        of one observation: (H, W, C) for images. None: known only once the data set is loaded.
    space
        its factors. None: their values are known only once the data set is loaded.
    factor_names
        the names of the factors, for a data set without ``space``.
    licence, homepage, citation
        whose it is, and how to cite it.
    files
        the official files.
    splits
        its own parts by name, such as train and test: each as ``load``.
    package
        an installed Python package that brings the files along.
    beside
        another data set of the same files, whose folder is used where this one has none.

    Examples
    --------
    >>> recipe = uw.data.find("dsprites")
    >>> recipe.label, recipe.num_images, recipe.image_shape
    ('dSprites', 737280, (64, 64, 1))
    >>> recipe.factors
    'shape 3, scale 6, orientation 40, x 32, y 32'
    """

    name: str
    load: Callable[[Path], Dataset]
    title: str = ""
    label: str = ""
    summary: str = ""
    num_images: int | None = None
    image_shape: tuple[int, ...] | None = None
    space: FactorSpace | None = None
    factor_names: tuple[str, ...] = ()
    licence: str = "none stated"
    homepage: str = ""
    citation: str = ""
    files: tuple[SourceFile, ...] = ()
    splits: Mapping[str, Callable[[Path], Dataset]] = field(default_factory=dict)
    package: str | None = None
    beside: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)
        object.__setattr__(self, "label", self.label or self.title)
        if self.space is not None:
            object.__setattr__(self, "factor_names", self.space.names)

    def folder_of_files(self, folder: Path) -> Path:
        """Where its files are: ``folder``, or if that is not there the one of ``beside``, next to it."""
        other = None if self.beside is None else folder.parent / self.beside
        return other if other is not None and other.is_dir() and not folder.is_dir() else folder

    @property
    def offline(self) -> bool:
        """Whether nothing has to be downloaded."""
        return not self.files or self.package is not None

    @property
    def images(self) -> str:
        """The number and the shape of the observations, in words; empty where they are not known."""
        if self.image_shape is None:
            return "" if self.num_images is None else f"{self.num_images:,}"
        count = "images" if self.files else "endless"  # files hold some number of them
        count = count if self.num_images is None else f"{self.num_images:,}"
        if len(self.image_shape) == 3:
            height, width, channels = self.image_shape
            return f"{count} of {height}x{width}, {'grey' if channels == 1 else 'colour'}"
        return f"{count} vectors of {'x'.join(map(str, self.image_shape))} numbers"

    @property
    def factors(self) -> str:
        """The factors and the number (or the range) of their values, in words."""
        if self.space is None:
            return ", ".join(map(_words, self.factor_names))
        if self.space.num_factors > _LISTED and len(set(self.space.sizes)) == 1:
            return f"{self.space.num_factors} factors, {self.space.sizes[0]} values each"
        return ", ".join(
            f"{_words(name)} {size[0]:g} to {size[1]:g}"
            if isinstance(size, tuple)
            else f"{_words(name)} {size}"
            for name, size in zip(self.space.names, self.space.sizes, strict=True)
        )


def _words(name: str) -> str:
    return name.replace("_", " ")
