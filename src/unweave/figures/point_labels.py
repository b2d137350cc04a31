"""Labels beside the points of lines, where they hide neither a line nor each other.

Eight positions around each point are tried in a fixed order, and a label for which there is no room is left out: so the
same lines get the same labels on every machine, without drawing the figure first.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from unweave.arrays import FloatArray

_FONT = 6.0  # points, as are all lengths below
_LETTER = 0.62 * _FONT  # the width of a letter
_OFFSET = 3.0  # from a point to its label
_LINE_MARGIN = 1.0  # from the middle of a line to its edge, and some air
_LABEL_GAP = 2.0  # between labels
_STEP = 1.5  # between the positions of a line that are tested
_DIRECTIONS = [(1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)]


@dataclass(frozen=True)
class LabelledLine:
    """Points (n, 2) that are joined in order, the text of each, and a colour; a text may be empty."""

    points: FloatArray
    texts: Sequence[str]
    color: str


def label_points(axes: Axes, lines: Sequence[LabelledLine], inches: tuple[float, float]) -> None:
    """Write the texts beside their points; those for which there is no room are left out.

    The ends of lines come first.

    Parameters
    ----------
    axes
        whose limits are final.
    lines
        as they are drawn.
    inches
        about how large the axes will be.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> axes = Figure().subplots()
    >>> line = LabelledLine(np.array([[0.2, 0.2], [0.8, 0.8]]), ["β = 1", "β = 4"], "black")
    >>> label_points(axes, [line], (3, 2))
    >>> [text.get_text() for text in axes.texts]
    ['β = 4', 'β = 1']
    """
    scale = 72 * np.array(inches) / np.ptp([axes.get_xlim(), axes.get_ylim()], axis=1)
    origin = np.array([axes.get_xlim()[0], axes.get_ylim()[0]])
    lines = [line for line in lines if len(line.points)]
    positions = [(line.points - origin) * scale for line in lines]
    drawn = np.concatenate([_along(line) for line in positions]) if positions else np.empty((0, 2))
    taken: list[tuple[FloatArray, FloatArray]] = []
    for which, point in _ends_first([len(line) for line in positions]):
        text = lines[which].texts[point]
        size = np.array([_LETTER * len(text), _FONT])
        for direction in _DIRECTIONS if text else ():
            offset = np.array(direction) * (_OFFSET + size / 2)
            low, high = (positions[which][point] + offset + side * size / 2 for side in (-1, 1))
            hides = ((drawn > low - _LINE_MARGIN) & (drawn < high + _LINE_MARGIN)).all(axis=1).any()
            outside = (low < 0).any() or (high > 72 * np.array(inches)).any()
            if not (hides or outside or any(_overlap(low, high, *other) for other in taken)):
                taken.append((low, high))
                _write(axes, lines[which], point, offset)
                break


def _along(line: FloatArray) -> FloatArray:
    """Positions on a line so close to each other that no label fits between them."""
    parts = [line]
    for start, end in itertools.pairwise(line):
        count = int(np.hypot(*(end - start)) / _STEP) + 2
        parts.append(start + np.linspace(0, 1, count)[:, None] * (end - start))
    return np.concatenate(parts)


def _ends_first(sizes: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Every point of every line, as (line, point): last and first points, then those between."""
    inner = [(line, point) for line, size in enumerate(sizes) for point in range(1, size - 1)]
    ends = [(line, point) for line, size in enumerate(sizes) for point in dict.fromkeys((size - 1, 0))]
    return ends + inner


def _overlap(low: FloatArray, high: FloatArray, other_low: FloatArray, other_high: FloatArray) -> bool:
    """Whether two boxes are nearer to each other than labels may be."""
    return bool((low - _LABEL_GAP < other_high).all() and (other_low - _LABEL_GAP < high).all())


def _write(axes: Axes, line: LabelledLine, point: int, offset: FloatArray) -> None:
    """Write the text of one point."""
    x, y = line.points[point]
    across, up = offset
    text = axes.annotate(
        line.texts[point],
        xy=(x, y),
        xytext=(across, up),
        textcoords="offset points",
        color=line.color,
        fontsize=_FONT,
        ha="center",
        va="center_baseline",
    )
    text.set_in_layout(False)  # hundreds of them would slow the layout down
