"""Figures 7 and 8: how much method and strength decide the score."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unweave.analyses.explained_variance import explained_variance
from unweave.analyses.hyperparameters import score_distributions, scores_by_strength
from unweave.analyses.runs import DISENTANGLEMENT_METRICS, available_metrics
from unweave.analyses.variants import method_variants
from unweave.figures.papers.panels import counted, panels_by_name
from unweave.figures.papers.paper import Exhibit
from unweave.figures.papers.plots import LEAST_SCORE_SPAN, check_several, method_keys, strength_lines, widen
from unweave.figures.style import data_name, method_styles, metric_name, paper_style
from unweave.study import Results


def _distributions(results: Results) -> Figure:
    spread, medians = score_distributions(results.table), results.analysed(scores_by_strength)
    data = [name for name in results.table["data"].unique() if name in set(spread["data"])]
    metrics = available_metrics(spread, DISENTANGLEMENT_METRICS)
    styles = method_styles(method_variants(spread))
    methods = list(styles)
    with paper_style():
        figure, axes = panels_by_name(
            [data_name(name) for name in data],
            [metric_name(name) for name in metrics],
            methods=methods,
            note=f"each box: {counted(spread['n'], 'runs')}; each dot: {counted(medians['n'], 'runs')}",
            ticks=0.1,
            sharex=True,
            sharey="col",
        )
        axes[0, 0].set(xticks=[], xlim=(-0.7, len(methods) - 0.3))
        for row, name in zip(axes, data, strict=True):
            for panel, metric in zip(row, metrics, strict=True):
                panel.use_sticky_edges = False  # bars would end the axis at 0, and cut through points there
                boxes, points = (
                    part[(part["data"] == name) & (part["metric"] == metric)] for part in (spread, medians)
                )
                color = [styles[pair]["color"] for pair in method_keys(boxes)]
                x, dots = (
                    np.array([methods.index(pair) for pair in method_keys(part)]) for part in (boxes, points)
                )
                panel.vlines(x, boxes["q05"], boxes["q95"], color=color, linewidth=0.8)
                panel.bar(
                    x, boxes["q75"] - boxes["q25"], 0.7, boxes["q25"], color=color, alpha=0.4, linewidth=0
                )
                panel.hlines(boxes["q50"], x - 0.35, x + 0.35, color=color, linewidth=1.2)
                panel.scatter(dots, points["value"], s=3, c="black", linewidths=0, zorder=3)
    return figure


def _explained(results: Results) -> pd.DataFrame:
    shares = results.analysed(explained_variance)
    return pd.DataFrame(
        {
            "Data set": shares["data"].map(data_name),
            "Metric": shares["metric"].map(metric_name),
            "By the method": _per_cent(shares["method"]),
            "By method and strength": _per_cent(shares["method_and_strength"]),
            "Not adjusted: method": _per_cent(shares["plain_method"]),
            "Not adjusted: both": _per_cent(shares["plain_method_and_strength"]),
            "Groups": shares["groups"],
            "Runs": shares["n"],
        }
    )


def _per_cent(shares: pd.Series[float]) -> list[str]:
    return ["" if np.isnan(share) else f"{100 * share:.0f} %" for share in shares]


def _against_strength(results: Results) -> Figure:
    medians = results.analysed(scores_by_strength)
    check_several(medians["strength_index"], "strength of any method")
    data = [name for name in results.table["data"].unique() if name in set(medians["data"])]
    metrics = available_metrics(medians, DISENTANGLEMENT_METRICS)
    methods = method_variants(medians)
    with paper_style():
        figure, axes = panels_by_name(
            [data_name(name) for name in data],
            [metric_name(name) for name in metrics],
            methods=methods,
            note=f"each point: the median of {counted(medians['n'], 'runs')}",
            xlabel="regularisation strength (1 = smallest)",
            sharex=True,
            sharey="col",
        )
        axes[0, 0].set_xticks(np.arange(1, medians["strength_index"].max() + 1))
        for row, name in zip(axes, data, strict=True):
            for panel, metric in zip(row, metrics, strict=True):
                points = medians[(medians["data"] == name) & (medians["metric"] == metric)]
                strength_lines(panel, points, methods, markersize=2)
        for column in range(len(metrics)):
            widen(axes[0, column], LEAST_SCORE_SPAN)
    return figure


EXHIBITS = (
    Exhibit(
        "locatello-fig07-scores-by-method",
        "Scores of each method",
        "Locatello et al., Figure 7",
        "Boxes are the middle half of all runs of a method (all strengths and seeds), with the median; lines reach "
        "from the 5% to the 95% quantile. Black dots are the medians over seeds at each strength: their range is what "
        "choosing the strength can change.",
        _distributions,
    ),
    Exhibit(
        "locatello-fig08-scores-by-strength",
        "Scores against regularisation strength",
        "Locatello et al., Figure 8",
        "Each point is the median over the runs (seeds) of a method at one strength; the strengths of each method are "
        "numbered from the smallest, as their scales differ. Bars: 95% bootstrap interval of the median over seeds, "
        "where there are five or more. An axis spans 0.1 at least.",
        _against_strength,
    ),
    Exhibit(
        "locatello-explained-variance",
        "How much of the spread of scores method and strength explain",
        "Locatello et al., section 5.4",
        "The share of the variance of a score over all runs of a data set that its method explains, and the method "
        "with its strength: adjusted for the number of groups, so that pure noise gives 0 % on average (and sometimes "
        "less). Not adjusted, as in the paper, many groups of few runs explain much of any noise. The rest is the "
        "seed's.",
        _explained,
    ),
)
