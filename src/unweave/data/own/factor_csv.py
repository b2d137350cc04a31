"""The table of factors of a folder of images."""

from __future__ import annotations

import csv
import io
import math
import posixpath
from collections.abc import Sequence
from pathlib import Path

from unweave.arrays import AnyArray
from unweave.data.own.columns import parse_cells
from unweave.errors import DataError, MissingDataError, show
from unweave.files import check_regular


def read_factor_csv(folder: Path, path: Path, images: Sequence[str]) -> dict[str, AnyArray]:
    """The columns of factors of a CSV file, by name, each (n,) in the order of ``images``.

    Its first line is a header; its first column an image's path relative to ``folder``, with one
    line for each image. Errors name the file and the line.

    Parameters
    ----------
    folder
        of the images.
    path
        of the CSV file.
    images
        the paths of all images relative to ``folder``.

    Examples
    --------
    >>> path = Path("factors.csv")
    >>> _ = path.write_text("file,angle\\na.png,3\\nb.png,5\\n")
    >>> read_factor_csv(Path(), path, ["a.png", "b.png"])
    {'angle': array([3, 5])}
    """
    header, lines = _read(path)
    if _normal(header[0]) in set(images):
        raise DataError(f"{path}, line 1: is an image, not a header; put the names of the columns there")
    names = [cell.strip() for cell in header]
    for column, name in enumerate(names[1:], 1):
        if not name or name in names[1:column]:
            raise DataError(f"{path}, line 1: column {column + 1} is called {show(name)}; needs another name")
    row_of = {image: row for row, image in enumerate(images)}
    cells: list[list[str] | None] = [None] * len(images)
    line_of = [0] * len(images)
    for line, row in lines:
        if len(row) != len(names):
            raise DataError(f"{path}, line {line}: has {len(row)} cells, the header has {len(names)}")
        at = row_of[_image(folder, path, line, row[0], row_of)]
        if cells[at] is not None:
            raise DataError(f"{path}, line {line}: {show(row[0])} is already on line {line_of[at]}")
        cells[at] = [_value(path, line, n, cell) for n, cell in zip(names[1:], row[1:], strict=True)]
        line_of[at] = line
    complete = _complete(path, images, cells)
    return {name: parse_cells([row[column] for row in complete]) for column, name in enumerate(names[1:])}


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
    name = _normal(cell)
    if name.startswith(("/", "../")) or name == ".." or name[1:3] == ":/":
        raise DataError(f"{path}, line {line}: {show(cell)} is not a path inside the folder {folder}")
    if name not in known:
        raise DataError(f"{path}, line {line}: there is no image {show(cell)} in {folder}")
    return name


def _normal(cell: str) -> str:
    """``.\\sub\\image.png``, as Windows writes it, is ``sub/image.png``."""
    return posixpath.normpath(cell.strip().replace("\\", "/"))


def _value(path: Path, line: int, name: str, cell: str) -> str:
    text = cell.strip()
    if not text:
        raise DataError(f"{path}, line {line}: column {show(name)} is empty: a value is missing")
    try:
        finite = math.isfinite(float(text))
    except ValueError:  # a text
        return text
    if not finite:
        raise DataError(f"{path}, line {line}: column {show(name)} is {show(text)}: needs a finite number")
    return text


def _complete(path: Path, images: Sequence[str], cells: Sequence[list[str] | None]) -> list[list[str]]:
    missing = [image for image, row in zip(images, cells, strict=True) if row is None]
    if missing:
        hint = "add them, move them out of the folder, or pass factors=None for images without labels"
        raise DataError(
            f"{path}: {len(missing)} of {len(images)} images have no line, first {missing[0]!r}: {hint}"
        )
    return [row for row in cells if row is not None]
