"""Downloads of official files: checked, and there whole or not at all."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from unweave.data.dataset import Dataset
from unweave.data.files.checksum import sha256_of
from unweave.data.recipe import Recipe, SourceFile
from unweave.data.storage.status import find_files
from unweave.data.storage.transfer import Part, TransferError, transfer
from unweave.errors import DataError, MissingDataError, NetworkError


def get(recipe: Recipe, folder: Path) -> list[Path]:
    """Download the files of a data set into ``folder``, and return their paths.

    Files that are there, with the official size where it is known, are left alone. A data set that
    has no files, or whose files come with a Python package, needs nothing: the answer is [].
    Raises NetworkError, which says what to put where by hand, or DataError for a wrong file. An
    interrupted download is kept in ``NAME.part``, from where the next call goes on.
    """
    if recipe.offline:
        return []
    with _disk_errors(folder):
        for file in _missing(recipe, folder):
            _get_locked(recipe, folder, file)
    return [folder / file.name for file in recipe.files]


def obtain(recipe: Recipe, folder: Path) -> Dataset:
    """The data set, downloaded and prepared where it is not yet.

    Loading comes first, and a download only if that fails: prepared arrays do not need their files
    any more, and some data sets also take files in another form (unpacked, packed anew).
    """
    try:
        return recipe.load(folder)
    except DataError as error:
        if recipe.offline or not _missing(recipe, folder):
            raise
        if not isinstance(error, MissingDataError):
            print(f"{error}\nDownloading the official files.", file=sys.stderr, flush=True)
    get(recipe, folder)
    return recipe.load(folder)


def _missing(recipe: Recipe, folder: Path) -> list[SourceFile]:
    return [entry.source for entry in find_files(recipe, folder) if not entry.usable]


def _get_locked(recipe: Recipe, folder: Path, file: SourceFile) -> None:
    """Of several processes one downloads; the others wait, then find the file there."""
    target = folder / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target):
        missing = _missing(recipe, folder)
        if file in missing:
            _get_file(file, target, _by_hand(folder, missing))


def _get_file(file: SourceFile, target: Path, by_hand: str) -> None:
    part = Part(target)
    try:
        resumed = transfer(file, part)
        try:
            _check(file, part)
        except DataError:
            if not resumed:
                raise
            # What lay there may have been the beginning of another file: the second try is whole.
            transfer(file, part)
            _check(file, part)
    except TransferError as error:
        kept = f" ({part.size:,} bytes are kept: run again to resume)" if part.size else ""
        raise NetworkError(f"{file.url}: {error}{kept}\n{by_hand}") from error
    part.path.replace(target)
    part.remove()


def _check(file: SourceFile, part: Part) -> None:
    """Refuse, and remove, a download that is not the official file."""
    if file.size not in (None, part.size):
        wrong = f"size is {part.size} bytes, expected {file.size}"
    elif file.sha256 is not None and (found := sha256_of(part.path)) != file.sha256:
        wrong = f"sha256 is {found}, expected {file.sha256}"
    else:
        return
    part.remove()
    raise DataError(f"{file.url}: {wrong}: damaged on its way, or not the official file. It was removed.")


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[None]:
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"{target.name}: waiting for another process that downloads it", file=sys.stderr, flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    # Errors of the network are NetworkError by now: what is left comes from the disk.
    try:
        yield
    except OSError as error:
        raise DataError(f"{folder}: cannot store the download here ({error.strerror or error})") from error


def _by_hand(folder: Path, files: Sequence[SourceFile]) -> str:
    lines = [f"  {file.url}\n    -> {folder / file.name}" for file in files]
    return "You can also put by hand, from a browser or another machine:\n" + "\n".join(lines)
