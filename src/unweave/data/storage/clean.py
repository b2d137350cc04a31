"""What of the data folder can go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from unweave.cleaning import Removable, leftovers
from unweave.data.recipe import Recipe
from unweave.data.storage.elsewhere import kept_elsewhere
from unweave.data.storage.status import PARTIAL_SUFFIX, status


def removable_data(
    recipe: Recipe, folder: Path, *, sources: bool = False, drawn: bool = False, elsewhere: bool = False
) -> list[Removable]:
    """What of a data set's ``folder`` is not needed any more.

    Parameters
    ----------
    recipe
        of the data set.
    folder
        where its files are.
    sources
        also its official files, where its arrays are prepared: to prepare them again they are downloaded again.
    drawn
        also rendered images: they are drawn again when they are asked for.
    elsewhere
        also what is prepared from originals elsewhere (``load(…, folder=…)``): it is prepared again when it is loaded.
        What is of originals that are gone or have changed is listed in any case.

    Examples
    --------
    >>> removable_data(uw.data.find("mnist"), Path("mnist"))
    []
    """
    return [*_removable(recipe, folder, sources, drawn), *_elsewhere(recipe, folder.parent, elsewhere)]


def _removable(recipe: Recipe, folder: Path, sources: bool, drawn: bool) -> Iterator[Removable]:
    if not folder.is_dir():
        return
    for path in (folder, folder / "sizes"):
        yield from leftovers(path)
    for path in sorted(folder.glob(f"*{PARTIAL_SUFFIX}*")):
        yield Removable(path, "a download that was cut: the next one begins anew")
    rendered = sorted(folder.rglob("rendered-v*"), key=_version)
    for path in rendered:
        newest = max(_version(other) for other in rendered if other.parent == path.parent)
        if _version(path) < newest:
            yield Removable(path, "images of an older version")
        elif drawn:
            yield Removable(path, "rendered images")
    if sources:
        present = status(recipe, folder)
        for file in present.files if present.prepared else ():
            if file.present:
                yield Removable(file.path, "an official file, whose arrays are prepared")


def _elsewhere(recipe: Recipe, data_folder: Path, current: bool) -> Iterator[Removable]:
    for kept, originals, unchanged in kept_elsewhere(recipe.name, data_folder):
        if not unchanged:
            yield Removable(kept, f"prepared from {originals}, where the files are gone or have changed")
        elif current:
            yield Removable(kept, f"prepared from {originals}")


def _version(path: Path) -> int:
    digits = re.fullmatch(r"rendered-v(\d{1,9})", path.name)
    return int(digits[1]) if digits else -1
