"""The options of commands that take a trained run, and which rows of its data are meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from unweave.errors import ArgumentError

if TYPE_CHECKING:
    from unweave.data.dataset import Dataset

RunFolder = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run directory, or a model: zoo:NAME, https://…, hf://USER/NAME."),
]
OtherData = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="NAME|FOLDER", help="Another data set than the run's.", show_default=False
    ),
]


def parse_rows(text: str | None, data: Dataset) -> Any:
    """``"0, 7, 20:25, cat.png"`` -> the rows (n,), by number, range or file name; None: all of them."""
    import numpy as np

    if not data.finite:
        raise ArgumentError("data", data.name, "is endless: it has no rows")
    if text is None:
        return np.arange(len(data))
    row_of = {name: row for row, name in enumerate(data.files or ())}
    rows: list[int] = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        first, colon, last = part.partition(":")
        if part in row_of:
            rows.append(row_of[part])
        elif colon and first.isdecimal() and last.isdecimal() and int(first) < int(last):
            rows += range(int(first), min(int(last), len(data) + 1))
        elif part.isdecimal():
            rows.append(int(part))
        else:
            names = " or file names" if data.files else ""
            raise ArgumentError("--rows", part, f"needs numbers{names}, as in 0,7,20:25")
    if not rows:
        raise ArgumentError("--rows", text, "names no row")
    for row in rows:
        if row >= len(data):
            raise ArgumentError("--rows", row, f"{data.name} has the rows 0 to {len(data) - 1:,}")
    return np.array(rows, np.int64)
