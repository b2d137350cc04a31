"""Figures 5 and 6: how much the metrics agree."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unweave.analyses.agreement import metric_correlations
from unweave.analyses.runs import disentanglement_scores
from unweave.analyses.statistics.rank_correlation import rank_correlations
from unweave.analyses.variants import method_variants
from unweave.figures.papers.panels import counted, panels, panels_in_turn
from unweave.figures.papers.paper import Exhibit
from unweave.figures.papers.plots import cloud, heat_map
from unweave.figures.style import data_name, metric_name, paper_style
from unweave.study import NotInStudyError, Results

_MAIN = "dsprites"


def _pairwise(results: Results) -> Figure:
    runs, metrics = disentanglement_scores(results.table, at_least=2)
    data = main_data(runs)
    runs = runs[runs["data"] == data]
    correlations = rank_correlations(runs, metrics, metrics)[["value", "low", "high"]].to_numpy()
    numbers = correlations.reshape(len(metrics), len(metrics), 3)
    methods = method_variants(runs)
    bins = min(30, 4 + round(len(runs) ** 0.5))
    with paper_style():
        figure, axes = panels(
            len(metrics),
            len(metrics),
            height=0.95,
            gaps=(0.1, 0.1),
            ticks=0.38,
            methods=methods,
            note=f"{data_name(data)}; each point: one of {len(runs):,} runs",
            handle="dot",
            sharex="col",
        )
        for i, row in enumerate(metrics):
            for j, column in enumerate(metrics):
                panel = axes[i, j]
                panel.tick_params(labelsize=6, length=2, pad=1.5, labelleft=j == 0 and i > 0)
                if i > j:
                    panel.sharey(axes[i, 0])
                    cloud(panel, runs, column, row, methods)
                elif i == j:
                    panel.hist(runs[column].dropna(), bins=bins, color="0.6")
                    panel.set_yticks([])
                else:
                    panel.axis("off")
                    text = _text(*numbers[i, j])
                    panel.text(
                        0.5, 0.5, text, fontsize=7, ha="center", va="center", transform=panel.transAxes
                    )
                panel.locator_params(nbins=2)
            axes[i, 0].set_ylabel(metric_name(row))
            axes[-1, i].set_xlabel(metric_name(row))
        figure.align_ylabels(axes[:, 0])
    return figure


def _text(value: float, *interval: float) -> str:
    """A correlation, and its interval if it has one."""
    value_text, *ends = (f"{round(number, 2) + 0:.2f}".replace("-", "−") for number in (value, *interval))
    return value_text if np.isnan(interval).any() else f"{value_text}\n[{', '.join(ends)}]"


def _between_metrics(results: Results) -> Figure:
    return correlation_panels(metric_correlations(results.table))


def correlation_panels(
    correlations: pd.DataFrame, by: str = "data", columns: int = 4, cell: float = 0.2
) -> Figure:
    """A heat map per data set, or by ``by`` per metric, all with the same rows and columns."""
    drawn = correlations.groupby(by, sort=False)["value"].transform(lambda value: value.notna().any())
    correlations = correlations[drawn]
    if correlations.empty:
        raise NotInStudyError("a rank correlation needs at least three runs whose scores differ")
    titles, labels, what = (
        (data_name, metric_name, "runs") if by == "data" else (metric_name, data_name, "settings")
    )
    names = list(correlations[by].unique())
    across, down = ([labels(name) for name in correlations[part].unique()] for part in ("column", "row"))
    columns = min(columns, len(names))
    with paper_style():
        figure, axes = panels_in_turn(
            [titles(name) for name in names],
            columns,
            height=cell * len(down),
            gaps=(0.1, 0.26),
            left=_room(down),
            ticks=_room(across),
            note=f"{counted(correlations['n'], what)} per panel",
        )
        for index, (panel, name) in enumerate(zip(axes, names, strict=True)):
            heat_map(panel, correlations[correlations[by] == name])
            below = index + columns >= len(names)
            panel.set_xticks(range(len(across)), across if below else [""] * len(across), rotation=90)
            panel.set_yticks(range(len(down)), [""] * len(down) if index % columns else down)
            panel.tick_params(length=0, labelsize=6.5, pad=2)
    return figure


def _room(labels: list[str]) -> float:
    """Inches for the longest label, at 6.5 points."""
    return 0.052 * max(map(len, labels)) + 0.08


def main_data(runs: pd.DataFrame) -> str:
    """dSprites, as in the paper, or else the study's first data set."""
    names = runs["data"].unique()
    return _MAIN if _MAIN in names else str(names[0])


HEAT_MAP = (
    "Spearman's rank correlation over all runs on a data set, times 100. Bold: the 95% bootstrap interval over seeds "
    "leaves out 0."
)
EXHIBITS = (
    Exhibit(
        "locatello-fig05-metrics-pairwise",
        "Disentanglement metrics against each other",
        "Locatello et al., Figure 5",
        "Below the diagonal, each point is a run, coloured by method; on it, how each metric is distributed over the "
        "runs; above it, Spearman's rank correlation of the two metrics, with its 95% bootstrap interval over seeds. "
        "On dSprites, or else on the study's first data set.",
        _pairwise,
    ),
    Exhibit(
        "locatello-fig06-metrics-rank-correlation",
        "Rank correlation of metrics on each data set",
        "Locatello et al., Figure 6",
        HEAT_MAP,
        _between_metrics,
    ),
)
