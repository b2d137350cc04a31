"""Labelled rows of tiles: as one image for the screen, or as a figure at paper width."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image, ImageDraw, ImageFont

from unweave.arrays import AnyArray
from unweave.figures.style import WIDTH, paper_style


@dataclass(frozen=True)
class Row:
    """A labelled row of tiles.

    Parameters
    ----------
    label, detail
        to the left of the row; ``detail`` in small letters below ``label``.
    tiles
        from left to right.
    captions
        one below each tile, or none.
    gap_above
        whether more space separates it from the row above.
    """

    label: str
    detail: str
    tiles: Sequence[Image.Image]
    captions: Sequence[str] = ()
    gap_above: bool = False


@dataclass(frozen=True)
class Block:
    """Labelled rows of tiles below a heading; ``detail`` is a line below it, in small letters."""

    heading: str
    detail: str
    rows: Sequence[Row]


# --- for the screen: an image, measured in pixels ------------------------------------------------

_GAP, _SECTION, _MARGIN = 4, 14, 20
_LABEL_WIDTH = 260  # longer labels end in …
_DARK, _GREY = (32, 32, 32), (110, 110, 110)
_TITLE, _LABEL, _SMALL = 22, 17, 13  # font sizes


def image_grid(title: str | None, rows: Sequence[Row]) -> Image.Image:
    """The rows below each other, their tiles in common columns, labels to the left.

    Examples
    --------
    >>> from PIL import Image
    >>> tiles = [Image.new("RGB", (96, 96), color) for color in ("red", "green", "blue")]
    >>> image_grid("Colours", [Row("primary", "of light", tiles)]).size
    (427, 176)
    """
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
        heights[i - 1] += _SECTION if rows[i].gap_above else 0
    image = Image.new("RGB", (width, top + sum(heights) - _GAP + _MARGIN), "white")
    draw = ImageDraw.Draw(image)
    if title:
        draw.text((_MARGIN, _MARGIN + _TITLE // 2), title, _DARK, _font(_TITLE, True), anchor="lm")
    for row, height in zip(rows, heights, strict=True):
        _draw_row(image, draw, row, top, left, tile_width)
        top += height
    return image


def _draw_row(
    image: Image.Image, draw: ImageDraw.ImageDraw, row: Row, top: int, left: int, tile_width: int
) -> None:
    height = max(tile.height for tile in row.tiles)
    middle = top + height // 2
    label = _shorten(row.label, _font(_LABEL, True))
    if row.detail:
        draw.text((_MARGIN, middle - 2), label, _DARK, _font(_LABEL, True), anchor="ld")
        draw.text(
            (_MARGIN, middle + 3), _shorten(row.detail, _font(_SMALL)), _GREY, _font(_SMALL), anchor="la"
        )
    else:
        draw.text((_MARGIN, middle), label, _DARK, _font(_LABEL, True), anchor="lm")
    for column, tile in enumerate(row.tiles):
        x = left + column * (tile_width + _GAP) + (tile_width - tile.width) // 2
        image.paste(tile, (x, top + (height - tile.height) // 2))
    for column, caption in enumerate(row.captions):
        centre = left + column * (tile_width + _GAP) + tile_width // 2
        text = _shorten(caption, _font(_SMALL), tile_width)
        draw.text((centre, top + height + 2), text, _GREY, _font(_SMALL), anchor="ma")


def _height_of(row: Row) -> int:
    return max(tile.height for tile in row.tiles) + (_SMALL + 9 if row.captions else 0)


def stack(pictures: Sequence[Image.Image]) -> Image.Image:
    """Pictures below each other, as one.

    Examples
    --------
    >>> from PIL import Image
    >>> stack([Image.new("RGB", (30, 20)), Image.new("RGB", (40, 10))]).size
    (40, 30)
    """
    width, height = max(one.width for one in pictures), sum(one.height for one in pictures)
    whole = Image.new("RGB", (width, height), "white")
    top = 0
    for one in pictures:
        whole.paste(one, (0, top))
        top += one.height
    return whole


def _width_of(row: Row) -> int:
    return round(max(_font(_LABEL, True).getlength(row.label), _font(_SMALL).getlength(row.detail)))


def _shorten(text: str, font: ImageFont.FreeTypeFont, width: int = _LABEL_WIDTH) -> str:
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


@cache
def _font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    # DejaVu Sans comes with matplotlib, so that pictures are the same on every machine.
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


# --- in print: a figure, measured in inches from the top ------------------------------------------

_PAPER_TITLE, _PAPER_TEXT = 8.0, 6.5  # font sizes in points
_LETTER_WIDTH = 0.62 / 72  # inches per point, on the safe side
_LINE_HEIGHT = 1.3 / 72  # inches per point
_PAPER_MARGIN, _BLOCK_GAP, _PAPER_GAP = 0.05, 0.2, 0.03
_PAPER_SECTION = 0.09  # above a row that is apart from the one before
_LARGEST_TILE = 0.75
_LONGEST_LABEL = 26  # letters in a line


def paper_grid(blocks: Sequence[Block], across: int = 1, note: str = "") -> Figure:
    """Blocks as a figure at paper width, ``across`` of them side by side, with a ``note`` below them.

    Examples
    --------
    >>> from PIL import Image
    >>> tiles = [Image.new("RGB", (96, 96), color) for color in ("red", "green", "blue")]
    >>> figure = paper_grid([Block("Colours", "", [Row("primary", "of light", tiles)])])
    >>> figure.get_size_inches().round(2)
    array([6.75, 1.02])
    """
    across = min(across, len(blocks))
    width = (WIDTH - 2 * _PAPER_MARGIN - (across - 1) * _BLOCK_GAP) / across
    lines = [blocks[start : start + across] for start in range(0, len(blocks), across)]
    heights = [max(_block_height(block, width) for block in line) for line in lines]
    note_lines = _wrap(note, WIDTH - 2 * _PAPER_MARGIN, _PAPER_TEXT)
    foot = len(note_lines) * _PAPER_TEXT * _LINE_HEIGHT
    total = (
        2 * _PAPER_MARGIN
        + sum(heights)
        + _BLOCK_GAP * (len(lines) - 1)
        + (foot + _BLOCK_GAP if note_lines else 0)
    )
    with paper_style():
        figure = Figure(figsize=(WIDTH, total))
        figure.set_layout_engine("none")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        top = _PAPER_MARGIN
        for line, height in zip(lines, heights, strict=True):
            for column, block in enumerate(line):
                _draw_block(axes, block, _PAPER_MARGIN + column * (width + _BLOCK_GAP), top, width)
            top += height + _BLOCK_GAP
        axes.text(_PAPER_MARGIN, top, "\n".join(note_lines), fontsize=_PAPER_TEXT, color="0.35", va="top")
        axes.set(xlim=(0, WIDTH), ylim=(total, 0))
        axes.set_axis_off()
    return figure


def _draw_block(axes: Axes, block: Block, left: float, top: float, width: float) -> None:
    for text, size, weight in _head(block, width):
        axes.text(left, top, text, fontsize=size, fontweight=weight, va="top")
        top += size * _LINE_HEIGHT
    label_width, side = _label_width(block.rows), _tile_width(block.rows, width)
    for row in block.rows:
        top += _PAPER_SECTION if row.gap_above else 0.0
        height = _row_height(row, side)
        label = [(text, "bold") for text in _label_lines(row.label)] + [
            (text, "normal") for text in _label_lines(row.detail)
        ]
        first = top + (height - len(label) * _PAPER_TEXT * _LINE_HEIGHT) / 2
        for line, (text, weight) in enumerate(label):
            axes.text(
                left,
                first + line * _PAPER_TEXT * _LINE_HEIGHT,
                text,
                fontsize=_PAPER_TEXT,
                fontweight=weight,
                va="top",
            )
        strip = _strip(row.tiles, side)
        start = left + label_width
        end = start + len(row.tiles) * (side + _PAPER_GAP) - _PAPER_GAP
        middle = top + height / 2
        tall = side * row.tiles[0].height / row.tiles[0].width
        axes.imshow(strip, extent=(start, end, middle + tall / 2, middle - tall / 2), aspect="auto")
        top += height + _PAPER_GAP
        for column, caption in enumerate(row.captions):
            centre = start + column * (side + _PAPER_GAP) + side / 2
            axes.text(centre, top, caption, fontsize=_PAPER_TEXT - 0.5, color="0.35", ha="center", va="top")
        top += _PAPER_TEXT * _LINE_HEIGHT if row.captions else 0.0


def _strip(tiles: Sequence[Image.Image], side: float) -> AnyArray:
    """Tiles side by side, with white between them."""
    across, down = tiles[0].size
    gap = round(_PAPER_GAP / side * across)
    strip = Image.new("RGB", (len(tiles) * (across + gap) - gap, down), "white")
    for column, tile in enumerate(tiles):
        strip.paste(tile.resize((across, down)), (column * (across + gap), 0))
    return np.asarray(strip)


def _block_height(block: Block, width: float) -> float:
    head = sum(size * _LINE_HEIGHT for _, size, _ in _head(block, width))
    side = _tile_width(block.rows, width)
    rows = sum(_row_height(row, side) + _PAPER_GAP + _PAPER_SECTION * row.gap_above for row in block.rows)
    return head + rows + _PAPER_TEXT * _LINE_HEIGHT * sum(bool(row.captions) for row in block.rows)


def _head(block: Block, width: float) -> list[tuple[str, float, str]]:
    heading = [(line, _PAPER_TITLE, "bold") for line in _wrap(block.heading, width, _PAPER_TITLE)]
    return heading + [(line, _PAPER_TEXT, "normal") for line in _wrap(block.detail, width, _PAPER_TEXT)]


def _row_height(row: Row, side: float) -> float:
    tile = side * row.tiles[0].height / row.tiles[0].width
    return max(
        tile, (len(_label_lines(row.label)) + len(_label_lines(row.detail))) * _PAPER_TEXT * _LINE_HEIGHT
    )


def _tile_width(rows: Sequence[Row], width: float) -> float:
    """How wide a tile is."""
    columns = max(len(row.tiles) for row in rows)
    return min(_LARGEST_TILE, (width - _label_width(rows) + _PAPER_GAP) / columns - _PAPER_GAP)


def _label_width(rows: Sequence[Row]) -> float:
    lines = [line for row in rows for line in _label_lines(row.label) + _label_lines(row.detail)]
    return max(map(len, lines), default=0) * _PAPER_TEXT * _LETTER_WIDTH + (0.06 if lines else 0.0)


def _label_lines(text: str) -> list[str]:
    return textwrap.wrap(text, _LONGEST_LABEL)


def _wrap(text: str, width: float, size: float) -> list[str]:
    return textwrap.wrap(text, int(width / (size * _LETTER_WIDTH)))
