"""Small plots in rows and columns, with what they share below: axis name, what a point is, the methods' colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from unweave.figures.papers.plots import cloud_markers
from unweave.figures.style import WIDTH, legend_columns, method_name, method_styles, new_figure

# Inches. Distances are fixed here: a layout engine measures every label twice, which takes longer than drawing.
_RIGHT, _TOP, _LINE = 0.1, 0.25, 0.165
_WIDEST = 2.4
_LETTER = 0.06  # of an axis name


def panels(
    rows: int,
    columns: int,
    *,
    height: float,
    gaps: tuple[float, float],
    left: float = 0.5,
    ticks: float = 0.2,
    methods: Sequence[tuple[str, str]] = (),
    note: str = "",
    xlabel: str = "",
    ylabel: str = "",
    handle: Literal["line", "marker", "dot"] = "line",
    **shared: Any,
) -> tuple[Figure, Any]:
    """A figure of rows x columns panels and these as a 2-D array; call within ``paper_style``.

    The least ``height`` of a panel, ``gaps`` between panels (across, down), the margin to the ``left`` and the room for
    ``ticks`` below are in inches. ``xlabel``, ``note`` and a legend of ``methods`` are below each other at the foot;
    the legend shows methods and variants as a ``handle``: their line, their marker, or a dot (``cloud``'s) where
    colours suffice.
    """
    room = WIDTH - left - _RIGHT - (columns - 1) * gaps[0]
    across = min(room / columns, _WIDEST)
    width = max(left + columns * across + (columns - 1) * gaps[0] + _RIGHT, min(WIDTH, 3.4))
    lines = -(-len(methods) // legend_columns([method_name(*pair) for pair in methods], width - 0.1))
    entries = -(-len(methods) // max(lines, 1))
    height = max(height, (_LETTER * len(ylabel) - 2 * _TOP - (rows - 1) * gaps[1]) / rows)
    foot = _LINE * (lines + bool(note) + bool(xlabel)) + 0.08
    total = _TOP + rows * height + (rows - 1) * gaps[1] + ticks + foot
    across = (width - left - _RIGHT - (columns - 1) * gaps[0]) / columns
    grid = {
        "left": left / width,
        "right": 1 - _RIGHT / width,
        "bottom": (ticks + foot) / total,
        "top": 1 - _TOP / total,
        "wspace": gaps[0] / across,
        "hspace": gaps[1] / height,
    }
    figure, axes = new_figure(width, total, nrows=rows, ncols=columns, gridspec_kw=grid, **shared)
    figure.set_layout_engine("none")
    middle = (left + width - _RIGHT) / 2 / width
    height_left = foot
    for text, size in ((xlabel, 8), (note, 7)):
        if text:
            figure.text(middle, height_left / total, text, fontsize=size, ha="center", va="top")
            height_left -= _LINE
    if ylabel:
        figure.text(0.04 / width, (total + ticks + foot - _TOP) / 2 / total, ylabel, rotation=90, va="center")
    if methods:
        _legend(figure, methods, entries, middle, height_left / total, handle)
    return figure, axes


def panels_in_turn(titles: Sequence[str], columns: int, **layout: Any) -> tuple[Figure, list[Axes]]:
    """One panel per title, row by row."""
    columns = min(columns, len(titles))
    figure, axes = panels(-(-len(titles) // columns), columns, **layout)
    for panel, title in zip(axes.flat, titles, strict=False):
        panel.set_title(title)
    for panel in axes.flat[len(titles) :]:
        panel.set_axis_off()
    return figure, list(axes.flat[: len(titles)])


def panels_by_name(rows: Sequence[str], columns: Sequence[str], **layout: Any) -> tuple[Figure, Any]:
    """A panel per row and column, with the columns' names above and the rows' names to the left."""
    layout = {"height": 0.78, "gaps": (0.3, 0.14), "left": 0.52, **layout}
    figure, axes = panels(len(rows), len(columns), **layout)
    for panel in axes.flat:
        panel.tick_params(labelsize=6, length=2, pad=1.5)
        panel.locator_params("x", nbins=2)
        panel.locator_params("y", nbins=3)
    for panel, name in zip(axes[0], columns, strict=True):
        panel.set_title(name)
    for panel, name in zip(axes[:, 0], rows, strict=True):
        panel.set_ylabel(name, fontsize=7)
    figure.align_ylabels(axes[:, 0])
    return figure, axes


def counted(numbers: pd.Series, what: str) -> str:
    """How many: "50 runs", or "48 to 50 runs" if it differs; ``what`` is plural."""
    low, high = int(numbers.min()), int(numbers.max())
    if low == high:
        return f"{low:,} {what if low != 1 else what.removesuffix('s')}"
    return f"{low:,} to {high:,} {what}"


def _legend(
    figure: Figure, methods: Sequence[tuple[str, str]], entries: int, x: float, y: float, handle: str
) -> None:
    handles = [
        Line2D([], [], label=method_name(*pair), linestyle="-" if handle == "line" else "", **style)
        for pair, style in method_styles(methods).items()
    ]
    if handle == "dot":
        for entry, marker in zip(handles, cloud_markers(methods).values(), strict=True):
            entry.set_marker(marker)
    figure.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(x, y),
        ncols=entries,
        borderpad=0,
        borderaxespad=0,
        handlelength=1.6,
        columnspacing=1.5,
    )
