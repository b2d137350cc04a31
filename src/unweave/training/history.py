"""The course of a run: one JSON object per logged step, in a file that survives any crash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from unweave.files import write_text

Record = dict[str, float]


class History:
    """Logged values by step. With a path, each record is appended to a JSONL file at once.

    On resuming after ``step`` steps, records of later steps (of the part that is trained again) are dropped.
    """

    def __init__(self, path: Path | None = None, step: int = 0) -> None:
        self.path = path
        self.records = [record for record in read_history(path) if record["step"] <= step] if path else []
        if path is not None:
            write_text(path, "".join(_line(record) for record in self.records))

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Append the values of one step."""
        record: Record = {"step": step, **values}
        self.records.append(record)
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(_line(record))


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


def _line(record: Mapping[str, float]) -> str:
    return json.dumps(record) + "\n"
