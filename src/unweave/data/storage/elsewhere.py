"""Official files in a folder of the user's own choice: they are only read.

``load(name, folder=…)`` may name originals that belong to somebody else. What is prepared from them is kept in the
data folder, under ``elsewhere/``, by the path of the originals; sizes and times of these say whether it is of them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from unweave.data.recipe import SourceFile
from unweave.errors import DataError
from unweave.files import read_json, write_text

ELSEWHERE = "elsewhere"
_NOTE = "originals.json"
_OURS = re.compile(
    r"\..*|prepared|masks|sizes|train|test|rendered-v[0-9]+"
)  # what unweave writes beside originals

Stamps = dict[str, list[int]]


@dataclass(frozen=True)
class Originals:
    """Files of a data set in a folder that is not unweave's.

    Parameters
    ----------
    folder
        of the files.
    kept
        the folder of what is prepared from them.
    stamps
        size and time of change of each, by name.
    """

    folder: Path
    kept: Path
    stamps: Stamps


_reading: ContextVar[Originals | None] = ContextVar("originals", default=None)


@contextmanager
def only_read(name: str, folder: Path, files: Sequence[SourceFile], data_folder: Path) -> Iterator[None]:
    """Within it, what is prepared from the files of ``folder``, or of one beside it, is kept in ``data_folder``.

    A folder below ``data_folder`` is unweave's, and so is one that holds nothing but what unweave wrote: there
    everything is kept as before.

    Parameters
    ----------
    name
        of the data set.
    folder
        of its files.
    files
        the official ones.
    data_folder
        of all data.

    Examples
    --------
    >>> _ = Path("theirs").mkdir(), Path("theirs/set.bin").touch()
    >>> with only_read("set", Path("theirs"), [], Path("ours")):
    ...     folder_to_write(Path("theirs/sizes")).parts[:2]
    ('ours', 'elsewhere')
    """
    folder = folder.absolute()
    originals = None
    if not folder.is_relative_to(data_folder.absolute()):
        digest = hashlib.sha256(str(folder.resolve()).encode(errors="surrogateescape")).hexdigest()[:16]
        kept = data_folder / ELSEWHERE / f"{name}-{digest}"
        originals = Originals(folder, kept, _stamps(folder, [file.name for file in files]))
    token = _reading.set(originals)  # None within others: a data set may load another one
    try:
        yield
    finally:
        _reading.reset(token)
        if originals is not None:
            _write_note(originals, files)


def folder_to_write(folder: Path) -> Path:
    """Where what is prepared from files in ``folder`` is kept: there, or apart from originals that are only read.

    Examples
    --------
    >>> folder_to_write(Path("mnist")) == Path("mnist")
    True
    """
    originals = _reading.get()
    if originals is None:
        return folder
    root = originals.folder.parent
    try:
        path = folder.absolute().relative_to(root)
    except ValueError:
        return folder
    kept = originals.kept / path
    first = path.parts[0] if path.parts else ""
    return kept if _holds_originals(root / first) or (originals.kept / first).is_dir() else folder


def original_stamps() -> Stamps | None:
    """Sizes and times of the originals that are only read; None where there are none such.

    Examples
    --------
    >>> original_stamps() is None
    True
    """
    originals = _reading.get()
    return None if originals is None else originals.stamps


def kept_elsewhere(name: str, data_folder: Path) -> list[tuple[Path, Path, bool]]:
    """What is prepared from originals of a data set elsewhere.

    Returns
    -------
    list
        of each its folder, that of the originals, and whether these are still as they were.

    Examples
    --------
    >>> kept_elsewhere("mnist", Path("ours"))
    []
    """
    result = []
    for kept in sorted((data_folder / ELSEWHERE).glob(f"{name}-*")):
        try:
            note = read_json(kept / _NOTE)
            folder, files = Path(str(note["folder"])), list(map(str, note["files"]))
        except (OSError, DataError, KeyError, TypeError):
            folder, files = Path(), []
        result.append((kept, folder, folder != Path() and _is_of(kept, folder, files)))
    return result


def _write_note(originals: Originals, files: Sequence[SourceFile]) -> None:
    path = originals.kept / _NOTE
    if originals.kept.is_dir() and not path.exists():
        names = [file.name for file in files]
        with suppress(OSError):  # it only tells people what the folder is of
            write_text(path, json.dumps({"folder": str(originals.folder), "files": names}))


def _is_of(kept: Path, folder: Path, files: list[str]) -> bool:
    """Whether everything that is kept is of the originals as they are now."""
    if not folder.is_dir():
        return False
    now = _stamps(folder, files)
    for meta in kept.rglob("meta.json"):
        try:
            stamps = read_json(meta).get("originals")
        except (OSError, DataError):
            return False
        if stamps != now:
            return False
    return True


def _holds_originals(folder: Path) -> bool:
    return folder.is_dir() and any(not _OURS.fullmatch(path.name) for path in folder.iterdir())


def _stamps(folder: Path, files: list[str]) -> Stamps:
    """Of official files, and of the same ones in another packing, which have the same name up to its first dot."""
    stems = {name.partition(".")[0] for name in files}
    if not folder.is_dir():
        return {}
    related = (path for path in sorted(folder.iterdir()) if path.name.partition(".")[0] in stems)
    return {path.name: [path.stat().st_size, path.stat().st_mtime_ns] for path in related if path.exists()}
