"""A table of factors in a CSV file: one line for each image that has any."""

from __future__ import annotations

import csv
import io
import math
import posixpath
from collections.abc import Collection, Sequence
from pathlib import Path

from unweave.arrays import AnyArray
from unweave.data.own.columns import parse_cells
from unweave.errors import DataError, MissingDataError, show
from unweave.files import check_regular


def read_factor_csv(
    folder: Path, path: Path, images: Sequence[str], skipped: Collection[str] = ()
) -> dict[str, AnyArray]:
    """The columns of factors of a CSV file, by name, each (n,) in the order of ``images``.

    Its first line is a header; its first column an image's path relative to ``folder``. An empty cell, or NaN, is a
    value that is not known; an image without a line has none. Errors name the file and the line.

    Parameters
    ----------
    folder
        of the images.
    path
        of the CSV file.
    images
        the paths of all images relative to ``folder``; or what rows are called in the first column.
    skipped
        images that may have a line, and are left out.

    Examples
    --------
    >>> path = Path("factors.csv")
    >>> _ = path.write_text("file,angle,shape\\na.png,3,cube\\nb.png,5,\\n")
    >>> columns = read_factor_csv(Path(), path, ["a.png", "b.png", "c.png"])
    >>> columns["angle"].tolist(), columns["shape"].tolist()
    ([3, 5, None], ['cube', '', ''])
    """
    header, lines = _read(path)
    row_of = {image: row for row, image in enumerate(images)}
    if normal_path(header[0]) in row_of:
        raise DataError(f"{path}, line 1: is an image, not a header; put the names of the columns there")
    names = [cell.strip() for cell in header]
    for column, name in enumerate(names[1:], 1):
        if not name or name in names[1:column]:
            raise DataError(f"{path}, line 1: column {column + 1} is called {show(name)}; needs another name")
    cells = [[""] * (len(names) - 1) for _ in images]
    line_of = [0] * len(images)
    for line, row in lines:
        if len(row) != len(names):
            raise DataError(f"{path}, line {line}: has {len(row)} cells, the header has {len(names)}")
        values = [_value(path, line, n, cell) for n, cell in zip(names[1:], row[1:], strict=True)]
        if normal_path(row[0]) in skipped:
            continue
        at = row_of[_image(folder, path, line, row[0], row_of)]
        if line_of[at]:
            raise DataError(f"{path}, line {line}: {show(row[0])} is already on line {line_of[at]}")
        cells[at], line_of[at] = values, line
    columns = {name: [row[column] for row in cells] for column, name in enumerate(names[1:])}
    for name, texts in columns.items():
        if not any(texts):
            raise DataError(f"{path}: column {show(name)} has no value for any image")
    return {name: parse_cells(texts) for name, texts in columns.items()}


def normal_path(cell: str) -> str:
    """``.\\sub\\image.png``, as Windows writes it, is ``sub/image.png``.

    Examples
    --------
    >>> normal_path(" ./sub/image.png")
    'sub/image.png'
    """
    return posixpath.normpath(cell.strip().replace("\\", "/"))


def _read(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and the other rows with the numbers of their lines; empty lines are passed over."""
    if path.exists():
        check_regular(path)
    else:
        hint = "pass factors=None for images without labels"
        raise MissingDataError(f"{path}: not found. Name the table of factors with factors=…, or {hint}.")
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: not UTF-8 text; save the table as CSV UTF-8") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        for row in reader:
            if row:
                rows.append((reader.line_num, row))
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}") from error
    if not rows:
        raise DataError(f"{path}: is empty; needs a header line and one line for each image")
    header = rows[0][1]
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise DataError(f"{path}, line 1: {show(header[0])} has no comma; columns are separated by commas")
    return header, rows[1:]


def _image(folder: Path, path: Path, line: int, cell: str, known: dict[str, int]) -> str:
    name = normal_path(cell)
    if name.startswith(("/", "../")) or name == ".." or name[1:3] == ":/":
        raise DataError(f"{path}, line {line}: {show(cell)} is not a path inside the folder {folder}")
    if name not in known:
        raise DataError(f"{path}, line {line}: there is no image {show(cell)} in {folder}")
    return name


def _value(path: Path, line: int, name: str, cell: str) -> str:
    """A cell without blanks around it; "" for one that is not known."""
    text = cell.strip()
    try:
        number = float(text)
    except ValueError:  # a text, or nothing
        return text
    if math.isnan(number):
        return ""
    if math.isinf(number):
        raise DataError(f"{path}, line {line}: column {show(name)} is {show(text)}: needs a finite number")
    return text
