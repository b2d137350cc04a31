"""Rows of tiles with labels, laid out as one picture, and pictures written to disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont

from unweave.errors import ArgumentError, UnweaveError
from unweave.files import replacing

_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
_GAP, _SECTION, _MARGIN = 4, 14, 20
_LABEL_WIDTH = 260  # pixels: longer labels end in …
_DARK, _GREY = (32, 32, 32), (110, 110, 110)
_TITLE, _LABEL, _SMALL = 22, 17, 13  # font sizes


@dataclass(frozen=True)
class Row:
    """A labelled row of tiles. ``captions``, one below each tile, may be left out; ``apart``: with a gap above."""

    label: str
    detail: str
    tiles: Sequence[Image.Image]
    captions: Sequence[str] = ()
    apart: bool = False


def compose(title: str | None, rows: Sequence[Row]) -> Image.Image:
    """The rows below each other, their tiles in common columns, labels to the left."""
    tile_width = max(tile.width for row in rows for tile in row.tiles)
    label_width = max(min(_LABEL_WIDTH, _width_of(row)) for row in rows)
    left = _MARGIN + (label_width + 16 if label_width else 0)
    columns = max(len(row.tiles) for row in rows)
    width = left + columns * (tile_width + _GAP) - _GAP + _MARGIN
    if title:
        width = max(width, round(_font(_TITLE, True).getlength(title)) + 2 * _MARGIN)
    top = _MARGIN + (_TITLE + 18 if title else 0)
    heights = [_height_of(row) + _GAP for row in rows]
    for i in range(1, len(rows)):
        heights[i - 1] += _SECTION if rows[i].apart else 0
    sheet = Image.new("RGB", (width, top + sum(heights) - _GAP + _MARGIN), "white")
    draw = ImageDraw.Draw(sheet)
    if title:
        draw.text((_MARGIN, _MARGIN + _TITLE // 2), title, _DARK, _font(_TITLE, True), anchor="lm")
    for row, height in zip(rows, heights, strict=True):
        _draw_row(sheet, draw, row, top, left, tile_width)
        top += height
    return sheet


def save_picture(image: Image.Image, path: Path | str) -> Path:
    """Write a picture, whole or not at all; its folder is made if need be. Returns the path."""
    target = check_picture_path(path)
    try:
        with replacing(target) as work:
            image.save(work)
    except OSError as error:
        raise UnweaveError(f"{target}: cannot write the picture ({error.strerror or error})") from error
    return target


def check_picture_path(path: Path | str) -> Path:
    """The path, or an error if no picture can be written there. To be called before long work."""
    target = Path(path)
    if target.suffix.lower() not in _SUFFIXES:
        raise ArgumentError("path", str(path), f"a picture's name ends in {', '.join(_SUFFIXES)}")
    if target.is_dir():
        raise ArgumentError("path", str(path), "is a folder")
    return target


# --- inside --------------------------------------------------------------------------------------


def _draw_row(
    sheet: Image.Image, draw: ImageDraw.ImageDraw, row: Row, top: int, left: int, tile_width: int
) -> None:
    height = max(tile.height for tile in row.tiles)
    middle = top + height // 2
    label = _shortened(row.label, _font(_LABEL, True))
    if row.detail:
        draw.text((_MARGIN, middle - 2), label, _DARK, _font(_LABEL, True), anchor="ld")
        draw.text(
            (_MARGIN, middle + 3), _shortened(row.detail, _font(_SMALL)), _GREY, _font(_SMALL), anchor="la"
        )
    else:
        draw.text((_MARGIN, middle), label, _DARK, _font(_LABEL, True), anchor="lm")
    for column, tile in enumerate(row.tiles):
        x = left + column * (tile_width + _GAP) + (tile_width - tile.width) // 2
        sheet.paste(tile, (x, top + (height - tile.height) // 2))
    for column, caption in enumerate(row.captions):
        centre = left + column * (tile_width + _GAP) + tile_width // 2
        text = _shortened(caption, _font(_SMALL), tile_width)
        draw.text((centre, top + height + 2), text, _GREY, _font(_SMALL), anchor="ma")


def _height_of(row: Row) -> int:
    return max(tile.height for tile in row.tiles) + (_SMALL + 9 if row.captions else 0)


def _width_of(row: Row) -> int:
    return round(max(_font(_LABEL, True).getlength(row.label), _font(_SMALL).getlength(row.detail)))


def _shortened(text: str, font: ImageFont.FreeTypeFont, width: int = _LABEL_WIDTH) -> str:
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


@cache
def _font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    # DejaVu Sans comes with matplotlib, so the sheet looks the same on every machine.
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)
