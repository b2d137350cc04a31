"""Pictures of models at paper width: rows of tiles in blocks, with text that can be read in print."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from unweave.figures.sheet import Row
from unweave.figures.style import WIDTH, paper_style

_TITLE, _TEXT = 8.0, 6.5  # points
_LETTER = 0.62 / 72  # inches per point: the width of a letter, on the safe side
_LINE = 1.3 / 72  # inches per point: the height of a line
_MARGIN, _BETWEEN, _GAP = 0.05, 0.2, 0.03  # inches: around all, between blocks, between tiles
_LARGEST = 0.75  # inches: a tile
_LONGEST = 26  # letters of a row's label in a line


@dataclass(frozen=True)
class Block:
    """Labelled rows of tiles below a heading; ``detail`` is a line below it, in small letters."""

    heading: str
    detail: str
    rows: Sequence[Row]


def plate(blocks: Sequence[Block], across: int = 1, note: str = "") -> Figure:
    """Blocks as a figure at paper width, ``across`` of them side by side; ``note`` stands below them."""
    across = min(across, len(blocks))
    width = (WIDTH - 2 * _MARGIN - (across - 1) * _BETWEEN) / across
    lines = [blocks[start : start + across] for start in range(0, len(blocks), across)]
    heights = [max(_height(block, width) for block in line) for line in lines]
    told = _wrapped(note, WIDTH - 2 * _MARGIN, _TEXT)
    foot = len(told) * _TEXT * _LINE
    total = 2 * _MARGIN + sum(heights) + _BETWEEN * (len(lines) - 1) + (foot + _BETWEEN if told else 0)
    with paper_style():
        figure = Figure(figsize=(WIDTH, total))
        figure.set_layout_engine("none")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        top = _MARGIN
        for line, height in zip(lines, heights, strict=True):
            for place, block in enumerate(line):
                _draw(axes, block, _MARGIN + place * (width + _BETWEEN), top, width)
            top += height + _BETWEEN
        axes.text(_MARGIN, top, "\n".join(told), fontsize=_TEXT, color="0.35", va="top")
        axes.set(xlim=(0, WIDTH), ylim=(total, 0))  # in inches, from the top
        axes.set_axis_off()
    return figure


def _draw(axes: Axes, block: Block, left: float, top: float, width: float) -> None:
    for text, size, weight in _head(block, width):
        axes.text(left, top, text, fontsize=size, fontweight=weight, va="top")
        top += size * _LINE
    room, side = _label_room(block.rows), _side(block.rows, width)
    for row in block.rows:
        height = _row_height(row, side)
        label = [(line, "bold") for line in _label(row.label)] + [
            (line, "normal") for line in _label(row.detail)
        ]
        first = top + (height - len(label) * _TEXT * _LINE) / 2
        for place, (text, weight) in enumerate(label):
            axes.text(left, first + place * _TEXT * _LINE, text, fontsize=_TEXT, fontweight=weight, va="top")
        strip = _strip(row.tiles, side)
        start = left + room
        end = start + len(row.tiles) * (side + _GAP) - _GAP
        middle = top + height / 2
        tall = side * row.tiles[0].height / row.tiles[0].width
        axes.imshow(strip, extent=(start, end, middle + tall / 2, middle - tall / 2), aspect="auto")
        top += height + _GAP
        for place, caption in enumerate(row.captions):
            centre = start + place * (side + _GAP) + side / 2
            axes.text(centre, top, caption, fontsize=_TEXT - 0.5, color="0.35", ha="center", va="top")
        top += _TEXT * _LINE if row.captions else 0.0


def _strip(tiles: Sequence[Image.Image], side: float) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Tiles side by side, with white between them."""
    across, down = tiles[0].size
    gap = round(_GAP / side * across)
    strip = Image.new("RGB", (len(tiles) * (across + gap) - gap, down), "white")
    for place, tile in enumerate(tiles):
        strip.paste(tile.resize((across, down)), (place * (across + gap), 0))
    return np.asarray(strip)


def _height(block: Block, width: float) -> float:
    head = sum(size * _LINE for _, size, _ in _head(block, width))
    side = _side(block.rows, width)
    rows = sum(_row_height(row, side) + _GAP for row in block.rows)
    return head + rows + _TEXT * _LINE * sum(bool(row.captions) for row in block.rows)


def _head(block: Block, width: float) -> list[tuple[str, float, str]]:
    heading = [(line, _TITLE, "bold") for line in _wrapped(block.heading, width, _TITLE)]
    return heading + [(line, _TEXT, "normal") for line in _wrapped(block.detail, width, _TEXT)]


def _row_height(row: Row, side: float) -> float:
    tile = side * row.tiles[0].height / row.tiles[0].width
    return max(tile, (len(_label(row.label)) + len(_label(row.detail))) * _TEXT * _LINE)


def _side(rows: Sequence[Row], width: float) -> float:
    """How wide a tile is."""
    columns = max(len(row.tiles) for row in rows)
    return min(_LARGEST, (width - _label_room(rows) + _GAP) / columns - _GAP)


def _label_room(rows: Sequence[Row]) -> float:
    lines = [line for row in rows for line in _label(row.label) + _label(row.detail)]
    return max(map(len, lines), default=0) * _TEXT * _LETTER + (0.06 if lines else 0.0)


def _label(text: str) -> list[str]:
    return textwrap.wrap(text, _LONGEST)


def _wrapped(text: str, width: float, size: float) -> list[str]:
    return textwrap.wrap(text, int(width / (size * _LETTER)))
