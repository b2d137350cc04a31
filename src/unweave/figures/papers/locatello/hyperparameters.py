"""Figures 7 to 9: what method, strength and unsupervised scores say about disentanglement."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from unweave.analyses import agreement as analysis
from unweave.analyses.settings import DISENTANGLEMENT_METRICS
from unweave.figures.papers.locatello.agreement import HEAT_MAP, correlation_panels
from unweave.figures.papers.panels import counted, panels_by_name
from unweave.figures.papers.paper import Exhibit
from unweave.figures.papers.plots import strength_lines
from unweave.figures.style import data_name, look, metric_name, order, paper_style
from unweave.study import Results


def _distributions(results: Results) -> Figure:
    spread, medians = analysis.distributions(results.table), results.analysed(analysis.against_strength)
    data = [name for name in results.table["data"].unique() if name in set(spread["data"])]
    metrics = [name for name in DISENTANGLEMENT_METRICS if name in set(spread["metric"])]
    methods = sorted(spread["method"].unique(), key=order)
    places = {method: place for place, method in enumerate(methods)}
    colors = {method: found["color"] for method, found in look(methods).items()}
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
                own, points = (
                    part[(part["data"] == name) & (part["metric"] == metric)] for part in (spread, medians)
                )
                color, x = own["method"].map(colors).tolist(), own["method"].map(places)
                panel.vlines(x, own["q05"], own["q95"], color=color, linewidth=0.8)
                panel.bar(x, own["q75"] - own["q25"], 0.7, own["q25"], color=color, alpha=0.4, linewidth=0)
                panel.hlines(own["q50"], x - 0.35, x + 0.35, color=color, linewidth=1.2)
                panel.scatter(
                    points["method"].map(places), points["value"], s=3, c="black", linewidths=0, zorder=3
                )
    return figure


def _against_strength(results: Results) -> Figure:
    medians = results.analysed(analysis.against_strength)
    data = [name for name in results.table["data"].unique() if name in set(medians["data"])]
    metrics = [name for name in DISENTANGLEMENT_METRICS if name in set(medians["metric"])]
    methods = medians["method"].unique().tolist()
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
                own = medians[(medians["data"] == name) & (medians["metric"] == metric)]
                strength_lines(panel, own, methods, markersize=2)
    return figure


def _unsupervised(results: Results) -> Figure:
    return correlation_panels(analysis.with_unsupervised_scores(results.table))


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
        "numbered from the smallest, as their scales differ. Bars: 95% bootstrap interval of the median over seeds.",
        _against_strength,
    ),
    Exhibit(
        "locatello-fig09-unsupervised-scores",
        "Rank correlation of unsupervised scores with metrics",
        "Locatello et al., Figure 9",
        HEAT_MAP
        + " Reconstruction is the error −log p(x|z), the KL that of posterior from prior, the total correlation "
        "that of the sampled codes.",
        _unsupervised,
    ),
)
