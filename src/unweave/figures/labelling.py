"""Labels beside the points of lines, where they hide neither a line nor each other."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]

_FONT = 6.0  # points, as are all lengths below
_LETTER = 0.62 * _FONT
_AWAY = 3.0  # from a point to its label
_THICK = 1.0  # from the middle of a line to its edge, and some air
_APART = 2.0  # between labels
_STEP = 1.5  # between the places of a line that are looked at
_DIRECTIONS = [(1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)]


@dataclass(frozen=True)
class Line:
    """Points (n, 2) that are joined in order, the text of each, and a colour; a text may be empty."""

    points: Array
    texts: Sequence[str]
    color: str


def label_points(axes: Axes, lines: Sequence[Line], inches: tuple[float, float]) -> None:
    """Write the texts beside their points; those for which there is no room are left out.

    ``inches`` is about how large the axes will be; its limits have to be final. The ends of lines come first.
    """
    scale = 72 * np.array(inches) / np.ptp([axes.get_xlim(), axes.get_ylim()], axis=1)
    origin = np.array([axes.get_xlim()[0], axes.get_ylim()[0]])
    lines = [line for line in lines if len(line.points)]
    places = [(line.points - origin) * scale for line in lines]
    drawn = np.concatenate([_along(line) for line in places]) if places else np.empty((0, 2))
    taken: list[tuple[Array, Array]] = []
    for which, point in _ends_first([len(line) for line in places]):
        text = lines[which].texts[point]
        size = np.array([_LETTER * len(text), _FONT])
        for direction in _DIRECTIONS if text else ():
            offset = np.array(direction) * (_AWAY + size / 2)
            low, high = (places[which][point] + offset + side * size / 2 for side in (-1, 1))
            hides = ((drawn > low - _THICK) & (drawn < high + _THICK)).all(axis=1).any()
            outside = (low < 0).any() or (high > 72 * np.array(inches)).any()
            if not (hides or outside or any(_overlap(low, high, *other) for other in taken)):
                taken.append((low, high))
                _write(axes, lines[which], point, offset)
                break


def _along(line: Array) -> Array:
    """Places on a line so close to each other that no label fits between them."""
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


def _overlap(low: Array, high: Array, other_low: Array, other_high: Array) -> bool:
    return bool((low - _APART < other_high).all() and (other_low - _APART < high).all())


def _write(axes: Axes, line: Line, point: int, offset: Array) -> None:
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
