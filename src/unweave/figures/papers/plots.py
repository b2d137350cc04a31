"""What is drawn in a panel: lines over strengths, a cloud of runs, a heat map of rank correlations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.ticker import LogLocator, NullFormatter

from unweave.figures.style import method_styles
from unweave.study import NotInStudyError

LEAST_SCORE_SPAN = 0.1  # of an axis of scores that are between 0 and 1
LEAST_NATS = 0.5  # of an axis of total correlations
LEAST_ERROR_SPAN = 0.05  # of an axis of reconstruction errors, as a part of its middle
_MANY = 400  # from this many points on they are drawn small and pale
_DODGE = 0.09  # the distance between methods at one strength
_DIVERGING = "coolwarm"  # even steps in lightness to both sides (Moreland, 2009)
_DARK = 0.7  # correlations beyond this have a dark background


def check_several(values: pd.Series[Any], what: str) -> None:
    """Refuse a figure whose axis would have a single value: it could show nothing."""
    if values.nunique() < 2:
        raise NotInStudyError(f"the study has a single {what}: a figure against it would have one column")


def widen(axes: Axes, span: float, which: Literal["x", "y"] = "y") -> None:
    """Let an axis span so much at least: a narrower one would make an effect of noise."""
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    if high - low < span:
        limits = (low + high - span) / 2, (low + high + span) / 2
        axes.set_xlim(*limits) if which == "x" else axes.set_ylim(*limits)


def widen_errors(axes: Axes) -> None:
    """The same of an x axis of reconstruction errors, whose size is known by the errors themselves."""
    widen(axes, LEAST_ERROR_SPAN * abs(sum(axes.get_xlim())) / 2, "x")


def strength_lines(
    axes: Axes, medians: pd.DataFrame, methods: Sequence[tuple[str, str]], markersize: float = 3.5
) -> None:
    """Per method the median against the strength's index, with its interval as a bar.

    If there are quartiles of the runs, they are a wider, paler bar.
    """
    styles = method_styles(methods)
    shift = {pair: _DODGE * (index - (len(styles) - 1) / 2) for index, pair in enumerate(styles)}
    pairs = method_keys(medians)
    x = medians["strength_index"].to_numpy() + np.array([shift[pair] for pair in pairs])
    colors = [styles[pair]["color"] for pair in pairs]
    if "lower_quartile" in medians:
        low, high = medians["lower_quartile"], medians["upper_quartile"]
        axes.vlines(x, low, high, color=colors, linewidth=2.5, alpha=0.25)
    axes.vlines(x, medians["low"], medians["high"], color=colors, linewidth=0.7)
    for pair, style in styles.items():
        rows = [index for index, key in enumerate(pairs) if key == pair]
        axes.plot(
            x[rows],
            medians["value"].to_numpy()[rows],
            **style,
            linewidth=0.8,
            markersize=markersize,
            markeredgewidth=0,
        )


def cloud(axes: Axes, runs: pd.DataFrame, x: str, y: str, methods: Iterable[tuple[str, str]]) -> None:
    """One point per run in its method's colour, in mixed order, so that no method hides the others.

    ``methods`` are all of the figure; markers are those of ``cloud_markers``.
    """
    styles = method_styles(methods)
    markers = np.array(list(cloud_markers(styles).values()))
    colors = np.array([to_rgb(style["color"]) for style in styles.values()])
    index = {pair: number for number, pair in enumerate(styles)}
    codes = np.array([index[pair] for pair in method_keys(runs)])
    mixed = np.random.default_rng(0).permutation(len(runs))
    many = len(runs) >= _MANY
    for marker in dict.fromkeys(markers.tolist()):
        some = mixed[markers[codes[mixed]] == marker]
        axes.scatter(
            runs[x].to_numpy()[some],
            runs[y].to_numpy()[some],
            c=colors[codes[some]],
            marker=marker,
            s=2.5 if many else 12,
            alpha=0.5 if many else 0.8,
            linewidths=0,
            rasterized=True,
        )


def cloud_markers(methods: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The marker of a method's runs in a cloud: a dot, or the method's marker if two methods share a colour."""
    styles = method_styles(methods)
    dots = len({style["color"] for style in styles.values()}) == len(styles)
    return {pair: "o" if dots else style["marker"] for pair, style in styles.items()}


def log_axis(axes: Axes, which: Literal["x", "y"]) -> None:
    """A logarithmic axis with decimal numbers at powers of ten; if it spans few, also at 2 and 5 times them."""
    getattr(axes, f"set_{which}scale")("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1,) if high > 50 * low else (1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def heat_map(axes: Axes, correlations: pd.DataFrame) -> None:
    """Rank correlations times 100; bold where the interval leaves out 0."""
    shape = (correlations["row"].nunique(), correlations["column"].nunique())
    value, low, high = (correlations[part].to_numpy().reshape(shape) for part in ("value", "low", "high"))
    axes.imshow(value, cmap=_DIVERGING, vmin=-1, vmax=1, aspect="auto")
    for (i, j), number in np.ndenumerate(value):
        text = "–" if np.isnan(number) else str(round(100 * number)).replace("-", "−")
        weight = "bold" if low[i, j] > 0 or high[i, j] < 0 else "normal"
        color = "white" if abs(number) > _DARK else "black"
        axes.text(j, i, text, ha="center", va="center", fontsize=6, fontweight=weight, color=color)
    axes.spines[:].set_visible(False)


def method_keys(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Method and variant of each row: the keys of ``method_styles``."""
    return list(zip(rows["method"], rows["variant"], strict=True))
