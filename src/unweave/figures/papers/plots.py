"""What is drawn in a panel: lines over strengths, a cloud of runs, a heat map of rank correlations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.ticker import LogLocator, NullFormatter

from unweave.figures.style import look, order

_MANY = 400  # from this many points on they are drawn small and pale
_DODGE = 0.09  # how far apart the methods stand at one strength
_DIVERGING = "coolwarm"  # even steps in lightness to both sides (Moreland, 2009)
_DARK = 0.7  # correlations beyond this have a dark background


def strength_lines(
    axes: Axes, medians: pd.DataFrame, methods: Sequence[str], markersize: float = 3.5
) -> None:
    """Per method the median against the strength's index, with its interval as a bar.

    If there are quartiles of the runs, they are a wider, paler bar.
    """
    looks = look(methods)
    names = sorted(looks, key=order)
    shift = {method: _DODGE * (place - (len(names) - 1) / 2) for place, method in enumerate(names)}
    x = (medians["strength_index"] + medians["method"].map(shift)).to_numpy()
    colors = [looks[method]["color"] for method in medians["method"]]
    if "lower_quartile" in medians:
        low, high = medians["lower_quartile"], medians["upper_quartile"]
        axes.vlines(x, low, high, color=colors, linewidth=2.5, alpha=0.25)
    axes.vlines(x, medians["low"], medians["high"], color=colors, linewidth=0.7)
    for method in names:
        own = (medians["method"] == method).to_numpy()
        axes.plot(
            x[own],
            medians["value"].to_numpy()[own],
            **looks[method],
            linewidth=0.8,
            markersize=markersize,
            markeredgewidth=0,
        )


def cloud(axes: Axes, x: pd.Series, y: pd.Series, methods: pd.Series, shown: Iterable[str]) -> None:
    """One point per run in its method's colour, in mixed order, so that no method hides the others.

    ``methods`` are those of the runs, ``shown`` all of the figure; markers are those of ``cloud_markers``.
    """
    looks = look(shown)
    markers = np.array(list(cloud_markers(looks).values()))
    colors = np.array([to_rgb(found["color"]) for found in looks.values()])
    codes = pd.Categorical(methods, categories=list(looks)).codes
    mixed = np.random.default_rng(0).permutation(len(x))
    many = len(x) >= _MANY
    for marker in dict.fromkeys(markers.tolist()):
        some = mixed[markers[codes[mixed]] == marker]
        axes.scatter(
            x.to_numpy()[some],
            y.to_numpy()[some],
            c=colors[codes[some]],
            marker=marker,
            s=2.5 if many else 12,
            alpha=0.5 if many else 0.8,
            linewidths=0,
            rasterized=True,
        )


def cloud_markers(methods: Iterable[str]) -> dict[str, str]:
    """What a run of each method is in a cloud: a dot, or the method's own marker if two methods share a colour."""
    looks = look(methods)
    dots = len({found["color"] for found in looks.values()}) == len(looks)
    return {method: "o" if dots else found["marker"] for method, found in looks.items()}


def log_axis(axes: Axes, which: Literal["x", "y"]) -> None:
    """A logarithmic axis with plain numbers at powers of ten; if it spans few of these, at 2 and 5 times them, too."""
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
