"""The manifest of a published model: which files it has, with their sizes and checksums."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unweave.data.files.checksum import sha256_of
from unweave.errors import ArgumentError, DataError, UnweaveError, show
from unweave.files import MEGABYTE, read_json, write_text
from unweave.parameters import Natural, check_value

MANIFEST = "manifest.json"
NEEDED = ("spec.yaml", "weights.safetensors")
# Besides those: text and pictures that say what the model is. Nothing here is ever executed.
_FURTHER = re.compile(r"card\.json|history\.jsonl|[A-Za-z0-9_]{1,60}\.(png|gif)")
_FORMAT = 1
_LARGEST, _LARGEST_WEIGHTS, _MOST_FILES = 64 * MEGABYTE, 1 << 34, 20


@dataclass(frozen=True)
class ListedFile:
    """The size of a file in bytes, and its sha256 in hexadecimal."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The files of a published model: its spec and weights, and perhaps its card, history and pictures.

    Parameters
    ----------
    files
        sizes and checksums by file name. There are no other names than those of a run's files, and no folders.

    Examples
    --------
    >>> for name in ("spec.yaml", "weights.safetensors"):
    ...     Path(name).touch()
    >>> Manifest.of(Path(".")).write(Path("."))
    >>> sorted(Manifest.read(Path("manifest.json")).files)
    ['spec.yaml', 'weights.safetensors']
    """

    files: Mapping[str, ListedFile]

    @staticmethod
    def of(folder: Path) -> Manifest:
        """The manifest of the files in a folder that a published model may have."""
        paths = [path for path in sorted(folder.iterdir()) if _is_known(path.name) and path.is_file()]
        missing = set(NEEDED) - {path.name for path in paths}
        if missing:
            raise DataError(f"{folder}: has no {', '.join(sorted(missing))}")
        return Manifest({path.name: ListedFile(path.stat().st_size, sha256_of(path)) for path in paths})

    def write(self, folder: Path) -> None:
        """Write manifest.json into a folder."""
        content = {
            "format": _FORMAT,
            "files": {name: asdict(file) for name, file in sorted(self.files.items())},
        }
        write_text(folder / MANIFEST, json.dumps(content, indent=1) + "\n")

    @staticmethod
    def read(path: Path) -> Manifest:
        """Read a manifest, which may be a stranger's: names, sizes and checksums are checked."""
        try:
            content = read_json(path, MEGABYTE)
            if content.get("format") != _FORMAT:
                raise DataError(f"{path}: its format is {show(content.get('format'))}, not {_FORMAT}")
            files = _mapping("files", content.get("files"))
            if len(files) > _MOST_FILES:
                raise DataError(f"{path}: lists {len(files)} files; a model has at most {_MOST_FILES}")
            missing = [name for name in NEEDED if name not in files]
            if missing:
                raise DataError(f"{path}: lists no {', '.join(missing)}")
            return Manifest({name: _listed(path, name, entry) for name, entry in files.items()})
        except FileNotFoundError as error:
            raise DataError(f"{path}: not found") from error
        except DataError:
            raise
        except UnweaveError as error:
            raise DataError(f"{path}: not a manifest of a model ({error})") from error

    def check(self, folder: Path) -> None:
        """Refuse files that are not those of the manifest."""
        for name, file in self.files.items():
            path = folder / name
            if not path.is_file():
                raise DataError(f"{path}: not found; {folder / MANIFEST} lists it")
            if path.stat().st_size != file.size or sha256_of(path) != file.sha256:
                raise DataError(f"{path}: is not the file that {folder / MANIFEST} lists: damaged or changed")


def _is_known(name: str) -> bool:
    return name in NEEDED or _FURTHER.fullmatch(name) is not None


def _listed(path: Path, name: str, entry: Any) -> ListedFile:
    if not _is_known(name):
        raise DataError(f"{path}: lists {show(name)}, which is no file of a model")
    values = _mapping(name, entry)
    size = check_value(f"{name}: size", values.get("size"), Natural)
    sha256 = check_value(f"{name}: sha256", values.get("sha256"), str)
    largest = _LARGEST_WEIGHTS if name.endswith(".safetensors") else _LARGEST
    if size > largest:
        raise DataError(f"{path}: {name} has {size:,} bytes, more than the {largest:,} that it may have")
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise DataError(f"{path}: the sha256 of {name} is {show(sha256)}, not 64 hexadecimal digits")
    return ListedFile(size, sha256)


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ArgumentError(name, value, "needs a mapping")
    return value
