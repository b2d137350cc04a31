"""The records of a run: one JSON object per logged step, in a file that survives any crash."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path

from unweave.errors import DataError
from unweave.files import append_text, read_bytes, write_text

Record = dict[str, float]
_LIMIT = 1 << 30


def read_history(path: Path) -> list[Record]:
    """The records of a history file. A last line that a crash has cut is left out; so are others, with a warning."""
    try:
        lines = read_bytes(path, _LIMIT).splitlines()
    except FileNotFoundError:
        return []
    records = [_record(line) for line in lines]
    damaged = [number for number, record in enumerate(records, 1) if record is None and number < len(lines)]
    if damaged:
        message = f"{path}: line {damaged[0]:,} is no record; {len(damaged):,} such lines are left out"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    return [record for record in records if record is not None]


def restart_history(path: Path, step: int) -> list[Record]:
    """The records up to ``step``, where a run goes on; those of later steps, which are trained again, are dropped."""
    records = [record for record in read_history(path) if record["step"] <= step]
    write_text(path, "".join(map(_line, records)))
    return records


def append_record(path: Path, record: Mapping[str, float]) -> None:
    """Append a record to a history file."""
    try:
        append_text(path, _line(record))
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error})") from error


def _line(record: Mapping[str, float]) -> str:
    return json.dumps(record) + "\n"


def _record(line: bytes) -> Record | None:
    """The record in a line, or None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # bytes that are no UTF-8 are a ValueError, too
        return None
    if not isinstance(record, dict) or type(record.get("step")) is not int or not 0 <= record["step"] < 2**63:
        return None
    return record if all(isinstance(value, int | float) for value in record.values()) else None
