"""Arrays by name in one safetensors file, with notes and a hash of the whole content.

The same arrays and notes give the same bytes: names and notes are sorted, which other writers of the format leave to
chance. Any reader of safetensors files reads them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from unweave.arrays import AnyArray
from unweave.errors import DamagedFileError, DataError
from unweave.files import open_regular, read_bytes, replacing

HASH = "sha256"
_NOTES = "__metadata__"
_HEADER_LIMIT, _FILE_LIMIT = 1 << 26, 1 << 30
_DTYPES = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "<i8": "I64", "<i4": "I32", "<i2": "I16", "|i1": "I8"}
_DTYPES |= {"|u1": "U8", "|b1": "BOOL", "<u8": "U64", "<u4": "U32", "<u2": "U16"}
_NUMPY = {name: np.dtype(code) for code, name in _DTYPES.items()}


@dataclass(frozen=True)
class Entry:
    """An array as the file holds it: its type, as the format calls it, its shape and its bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: Any

    @staticmethod
    def of(array: AnyArray) -> Entry:
        """An array of NumPy's."""
        kept = np.ascontiguousarray(array).reshape(array.shape)
        return Entry(
            _DTYPES[kept.dtype.newbyteorder("<").str], kept.shape, kept.reshape(-1).view(np.uint8).data
        )

    def array(self) -> AnyArray:
        """As an array of NumPy's, read-only."""
        return np.frombuffer(self.data, _NUMPY[self.dtype]).reshape(self.shape)


def write_tensors(path: Path, entries: Mapping[str, Entry], notes: Mapping[str, str]) -> None:
    """Write arrays and notes, whole or not at all.

    Parameters
    ----------
    path
        of the file.
    entries
        arrays by name.
    notes
        texts by name. ``sha256`` is added: the hash of all names, shapes, notes and bytes.

    Examples
    --------
    >>> write_tensors(Path("codes.safetensors"), {"codes": Entry.of(np.zeros((2, 3), np.float32))}, {"seed": "0"})
    >>> entries, notes = read_tensors(Path("codes.safetensors"))
    >>> entries["codes"].array().shape, notes["seed"]
    ((2, 3), '0')
    """
    header: dict[str, Any] = {_NOTES: dict(sorted(notes.items()))}
    position = 0
    # Larger numbers first: every array begins at a multiple of its own size.
    names = sorted(entries, key=lambda name: (-_item_size(entries[name].dtype), name))
    for name in names:
        size = memoryview(entries[name].data).nbytes
        offsets = [position, position + size]
        header[name] = {
            "dtype": entries[name].dtype,
            "shape": list(entries[name].shape),
            "data_offsets": offsets,
        }
        position += size
    digest = _digest(header)
    for name in names:
        digest.update(entries[name].data)
    header[_NOTES][HASH] = digest.hexdigest()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            file.write(entries[name].data)


def read_tensors(path: Path, limit: int = _FILE_LIMIT) -> tuple[dict[str, Entry], dict[str, str]]:
    """The arrays and notes of a file, checked against its hash; a file of an earlier version has none.

    Parameters
    ----------
    path
        of the file.
    limit
        the bytes that it may have: it is read as a whole, and a file of holes can be larger than any memory.

    Raises
    ------
    DamagedFileError
        for a file that is not what was written.

    Examples
    --------
    >>> write_tensors(Path("a.safetensors"), {"a": Entry.of(np.zeros(3))}, {})
    >>> content = bytearray(Path("a.safetensors").read_bytes())
    >>> content[-1] ^= 1
    >>> _ = Path("a.safetensors").write_bytes(content)
    >>> read_tensors(Path("a.safetensors"))
    Traceback (most recent call last):
    unweave.errors.DamagedFileError: a.safetensors: truncated or damaged (its content has not the hash ...
    """
    from safetensors import SafetensorError, deserialize

    content = read_bytes(path, limit)
    try:
        size = int.from_bytes(content[:8], "little")
        parts = {name: Entry(e["dtype"], tuple(e["shape"]), e["data"]) for name, e in deserialize(content)}  # type: ignore[no-untyped-call]
        header = json.loads(content[8 : 8 + size])
        notes = _notes(path, header)
    except (SafetensorError, ValueError, RecursionError, KeyError, TypeError) as error:
        raise DamagedFileError(path, error) from error
    if HASH in notes:
        expected = header[_NOTES].pop(HASH)
        digest = _digest(header)
        digest.update(memoryview(content)[8 + size :])
        if digest.hexdigest() != expected:
            raise DamagedFileError(path, "its content has not the hash that was written with it")
    return parts, notes


def read_notes(path: Path) -> dict[str, str]:
    """The notes in a file's header, without reading its arrays.

    Examples
    --------
    >>> write_tensors(Path("a.safetensors"), {"a": Entry.of(np.zeros(3))}, {"step": "7"})
    >>> read_notes(Path("a.safetensors"))["step"]
    '7'
    """
    try:
        with open_regular(path) as file:
            size = int.from_bytes(file.read(8), "little")
            if size > min(_HEADER_LIMIT, os.fstat(file.fileno()).st_size):
                raise DamagedFileError(path, "ends early")
            header = json.loads(_read_all(file, size))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(path, error) from error
    return _notes(path, header)


def _notes(path: Path, header: Any) -> dict[str, str]:
    notes = header.get(_NOTES, {}) if isinstance(header, dict) else None
    if not isinstance(notes, dict) or not all(isinstance(text, str) for text in notes.values()):
        raise DamagedFileError(path, "its notes are not texts")
    return notes | {}


def _digest(header: Mapping[str, Any]) -> Any:
    return hashlib.sha256(json.dumps(header, sort_keys=True).encode())


def _read_all(file: IO[bytes], size: int) -> bytes:
    content = b""
    while len(content) < size and (part := file.read(size - len(content))):
        content += part
    return content


def _item_size(dtype: str) -> int:
    digits = "".join(filter(str.isdigit, dtype))
    return int(digits or 8) // 8
