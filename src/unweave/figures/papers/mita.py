"""The figures of Mita et al. (2021), from any study."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from unweave.analyses.hyperparameters import method_scores, strength_medians
from unweave.analyses.variants import method_variants
from unweave.figures.papers.paper import Exhibit, Paper, Protocol
from unweave.figures.papers.plots import LEAST_SCORE_SPAN, widen
from unweave.figures.style import (
    WIDTH,
    data_name,
    legend_columns,
    method_name,
    method_order,
    method_styles,
    metric_name,
    new_figure,
    paper_style,
    representation_name,
)  # fmt: skip
from unweave.study import NotInStudyError, Results

METRICS = ("beta_vae", "mig", "sap", "modularity", "explicitness")  # Figures 5 and 6
MAIN_METRICS = ("beta_vae", "explicitness")  # Figures 3 and 4
_NUMBERED = ("beta_vae", "idvae", "ivae", "full_vae")
_FEW = 5  # up to so many runs are shown as points on their box


def boxes(
    results: Results,
    metrics: Sequence[str] = METRICS,
    representation: str | None = None,
    protocol: str | None = None,
    labels: str | None = None,
) -> Figure:
    """A row per metric, a column per data set, a box per method: the runs of all strengths and seeds."""
    _check_labels(results.table, labels)
    rows = method_scores(results.table, metrics, representation, protocol, labels).dropna(subset="value")
    styles = _in_the_papers_order(method_styles(method_variants(rows)))
    groups = rows.groupby(["metric", "data", "method", "variant"])["value"]
    values = {key: group.to_numpy() for key, group in groups}
    numbers = list(range(1, len(styles) + 1))
    with paper_style():
        figure, grid = _grid(rows)
        for (metric, name), axes in grid.items():
            runs = [values.get((metric, name, *pair), np.empty(0)) for pair in styles]
            parts = axes.boxplot(
                runs,
                positions=numbers,
                widths=0.6,
                patch_artist=True,
                boxprops={"alpha": 0.6, "linewidth": 0.6},
                medianprops={"color": "black"},
                whiskerprops={"linewidth": 0.6},
                capprops={"linewidth": 0.6},
                flierprops={"marker": ".", "markersize": 2, "markeredgewidth": 0, "markerfacecolor": "black"},
            )
            for box, style in zip(parts["boxes"], styles.values(), strict=True):
                box.set_facecolor(style["color"])
            for number, few in zip(numbers, runs, strict=True):
                if len(few) <= _FEW:
                    axes.plot([number] * len(few), few, ".", color="black", markersize=3)
            axes.set_xticks(numbers, [str(number) for number in numbers])
            axes.set_xlim(0.4, len(numbers) + 0.6)
        names = [f"{number} = {method_name(*pair)}" for number, pair in zip(numbers, styles, strict=True)]
        handles: list[Any] = [Patch(color=style["color"], alpha=0.6) for style in styles.values()]
        _legend(figure, handles, names, _which(rows, results.table))
    return figure


def strength_curves(
    results: Results,
    metrics: Sequence[str] = METRICS,
    representation: str | None = None,
    protocol: str | None = None,
    labels: str | None = None,
) -> Figure:
    """A row per metric, a column per data set: medians over seeds against the regularisation strength.

    Strengths are evenly spaced. If the methods have different ones, their numbers in the method's list are shown.
    """
    _check_labels(results.table, labels)
    rows = method_scores(results.table, metrics, representation, protocol, labels).dropna(subset="value")
    medians = strength_medians(rows)
    styles = method_styles(method_variants(medians))
    strengths: dict[Any, list[float]] = {
        pair: sorted(group["strength"].dropna().unique())
        for pair, group in medians.groupby(["method", "variant"])
    }
    longest = max(strengths.values(), key=len)
    if len(longest) < 2:
        raise NotInStudyError(
            "the study has a single strength of any method: a figure against it has one column"
        )
    shared = all(values in ([], longest) for values in strengths.values())
    ticks = [f"{strength:g}" if shared else f"{number}" for number, strength in enumerate(longest, 1)]
    with paper_style():
        figure, grid = _grid(rows)
        for key, points in medians.groupby(["metric", "data", "method", "variant"]):
            metric, name, *pair = cast("tuple[str, str, str, str]", key)
            _draw_curve(grid[metric, name], points, strengths[*pair], styles[pair[0], pair[1]])
        for axes in grid.values():
            axes.set_xticks(range(len(ticks)), ticks)
            axes.set_xlim(-0.3, len(ticks) - 0.7)
            widen(axes, LEAST_SCORE_SPAN)
        figure.supxlabel(
            "regularisation strength" if shared else "regularisation strength: index in the method's list",
            fontsize=8,
        )
        handles = [axes.plot([], [], **style)[0] for style in styles.values()]
        _legend(figure, handles, [method_name(*pair) for pair in styles], _which(rows, results.table))
    return figure


def _in_the_papers_order(styles: dict[tuple[str, str], Any]) -> dict[tuple[str, str], Any]:
    """Boxes are numbered as in Figures 3 and 5: 1 = beta-VAE, 2 = IDVAE, 3 = iVAE, 4 = FullVAE; others after them."""
    order = sorted(
        styles, key=lambda pair: _NUMBERED.index(pair[0]) if pair[0] in _NUMBERED else len(_NUMBERED)
    )
    return {pair: styles[pair] for pair in order}


def _draw_curve(axes: Any, points: pd.DataFrame, strengths: list[float], style: dict[str, Any]) -> None:
    for level in points.loc[points["strength"].isna(), "value"]:  # a method that has no strength
        axes.axhline(level, color=style["color"], linestyle=":", linewidth=0.9)
    points = points.dropna(subset="strength").sort_values("strength")
    x = [strengths.index(strength) for strength in points["strength"]]
    axes.plot(x, points["value"], **style, markersize=3, linewidth=0.9)
    axes.fill_between(x, points["low"], points["high"], color=style["color"], alpha=0.1, linewidth=0)


def _grid(rows: pd.DataFrame) -> tuple[Figure, dict[tuple[str, str], Any]]:
    """Axes by metric and data set; scores of one metric share their scale. One data set has them side by side."""
    metrics, data = rows["metric"].unique().tolist(), rows["data"].unique().tolist()
    if len(data) == 1:
        figure, grid = new_figure(min(WIDTH, 0.3 + 1.6 * len(metrics)), 2.1, ncols=len(metrics))
        for axes, metric in zip(grid[0], metrics, strict=True):
            axes.set_title(metric_name(metric))
        return figure, {(metric, data[0]): axes for metric, axes in zip(metrics, grid[0], strict=True)}
    width, height = min(WIDTH, 0.6 + 1.6 * len(data)), 0.8 + 1.25 * len(metrics)
    # Not sharex: matplotlib would visit all panels again for every curve.
    figure, grid = new_figure(width, height, nrows=len(metrics), ncols=len(data), sharey="row")
    for axes in grid.ravel():
        axes.label_outer()
    for axes, metric in zip(grid[:, 0], metrics, strict=True):
        axes.set_ylabel(metric_name(metric))
    for axes, name in zip(grid[0], data, strict=True):
        axes.set_title(data_name(name), fontsize=8 if len(data) < 6 else 6.5)
    panels = itertools.product(metrics, data)
    return figure, dict(zip(panels, grid.ravel(), strict=True))


def _which(rows: pd.DataFrame, table: pd.DataFrame) -> str:
    """The only data set, of which codes and by which protocol the scores are, and which methods have none."""
    kinds = rows[["representation", "labels", "protocol"]].drop_duplicates().itertuples(index=False)
    codes = "; ".join(
        f"{representation_name(representation, labels)} codes, protocol {protocol}"
        for representation, labels, protocol in kinds
    )
    data = rows["data"].unique()
    absent = sorted(set(table["method"].unique()) - set(rows["method"].unique()), key=method_order)
    return (
        (f"{data_name(data[0])}: " if len(data) == 1 else "")
        + codes
        + (f" (no such scores: {', '.join(map(method_name, absent))})" if absent else "")
    )


def _check_labels(table: pd.DataFrame, labels: str | None) -> None:
    """Refuse to draw a figure of codes computed with labels where there are none: it would be the other one again."""
    if labels and not (table["labels"] == labels).any():
        raise NotInStudyError(f"the study has no scores with labels {labels}")


def _legend(figure: Figure, handles: list[Any], labels: list[str], title: str) -> None:
    width = figure.get_figwidth()
    figure.legend(
        handles,
        labels,
        title="\n".join(textwrap.wrap(title, int(15 * width))),
        title_fontsize=8,
        loc="outside upper center",
        ncols=min(len(labels), 6, legend_columns(labels, width)),
        handlelength=1.3,
        columnspacing=1.2,
    )


_BOXES = (
    "A box holds the middle half of a method's runs, over strengths and seeds, the line is their median, whiskers "
    "reach to the last run within 1.5 box heights."
)
_CURVES = "Medians over seeds; bands are 95 % bootstrap intervals."
_BLIND = " Encoders that take labels u got predicted or unknown ones: all methods know the images only."
_GIVEN = (
    " As in the paper, encoders that take labels u got the true ones: their codes know the factors that they are "
    "scored against, those of the other methods do not."
)


def _exhibits(labels: str | None) -> tuple[Exhibit, ...]:
    ending, note = ("", _BLIND) if labels is None else (f"-u-{labels}", _GIVEN)
    title = "" if labels is None else f", u {labels}"
    return (
        Exhibit(
            f"mita-fig03-scores{ending}",
            f"Beta score and explicitness of each method{title}",
            "Mita et al., Figure 3",
            _BOXES + note,
            partial(boxes, metrics=MAIN_METRICS, labels=labels),
            explains_labels=True,
        ),
        Exhibit(
            f"mita-fig04-strengths{ending}",
            f"Beta score and explicitness against the regularisation strength{title}",
            "Mita et al., Figure 4",
            _CURVES + note,
            partial(strength_curves, metrics=MAIN_METRICS, labels=labels),
            explains_labels=True,
        ),
        Exhibit(
            f"mita-fig05-all-scores{ending}",
            f"All scores of each method{title}",
            "Mita et al., Figure 5",
            _BOXES + note,
            partial(boxes, labels=labels),
            explains_labels=True,
        ),
        Exhibit(
            f"mita-fig06-all-strengths{ending}",
            f"All scores against the regularisation strength{title}",
            "Mita et al., Figure 6",
            _CURVES + note,
            partial(strength_curves, labels=labels),
            explains_labels=True,
        ),
    )


PAPER = Paper(
    "Mita et al.: Learning Optimal Conditional Priors for Disentangled Representations",
    exhibits=(*_exhibits("given"), *_exhibits(None)),
    protocol=Protocol("Mita et al.", 300_000, 10_000, 10),
)
