"""The records of a run: one JSON object per logged step, in a file that survives any crash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from unweave.files import write_text

Record = dict[str, float]


def read_history(path: Path) -> list[Record]:
    """The records of a history file; a last line that was cut by a crash is left out."""
    if not path.exists():
        return []
    records: list[Record] = []
    for line in path.read_text().splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records


def restart_history(path: Path, step: int) -> list[Record]:
    """The records up to ``step``, where a run goes on; those of later steps, which are trained again, are dropped."""
    records = [record for record in read_history(path) if record["step"] <= step]
    write_text(path, "".join(map(_line, records)))
    return records


def append_record(path: Path, record: Mapping[str, float]) -> None:
    """Append a record to a history file."""
    with path.open("a") as file:
        file.write(_line(record))


def _line(record: Mapping[str, float]) -> str:
    return json.dumps(record) + "\n"
