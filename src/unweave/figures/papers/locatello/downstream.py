"""Figures 12 to 14: metrics against the accuracy and statistical efficiency of downstream tasks."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from unweave.analyses.downstream import downstream_correlations, statistical_efficiency
from unweave.analyses.variants import method_variants
from unweave.figures.papers.locatello.agreement import HEAT_MAP, correlation_panels
from unweave.figures.papers.panels import counted, panels_by_name
from unweave.figures.papers.paper import Exhibit
from unweave.figures.papers.plots import cloud
from unweave.figures.style import data_name, metric_name, paper_style
from unweave.study import Results


def _with_downstream(results: Results) -> Figure:
    return correlation_panels(downstream_correlations(results.table), columns=3, cell=0.18)


def _efficiency(learner: str) -> Callable[[Results], Figure]:
    def make(results: Results) -> Figure:
        runs, metrics = statistical_efficiency(results.table, learner)
        data, methods = runs["data"].unique().tolist(), method_variants(runs)
        with paper_style():
            figure, axes = panels_by_name(
                [data_name(name) for name in data],
                [metric_name(name) for name in metrics],
                gaps=(0.12, 0.14),
                left=0.68,
                methods=methods,
                note=f"each point: one run; {counted(runs.groupby('data').size(), 'runs')} per panel",
                xlabel="score",
                ylabel=f"statistical efficiency, {metric_name(learner)}",
                handle="dot",
                sharex="col",
                sharey="row",
            )
            for row, name in zip(axes, data, strict=True):
                of_data = runs[runs["data"] == name]
                for panel, metric in zip(row, metrics, strict=True):
                    cloud(panel, of_data, metric, "efficiency", methods)
        return figure

    return make


_CLOUDS = (
    "Each point is a run, coloured by method. Statistical efficiency is the mean accuracy of {} over the factors from "
    "100 labels, divided by that from 10,000."
)
EXHIBITS = (
    Exhibit(
        "locatello-fig12-downstream-rank-correlation",
        "Rank correlation of metrics with downstream performance",
        "Locatello et al., Figure 12",
        HEAT_MAP
        + " LR: logistic regression, GBT: gradient boosted trees, each with its accuracy from 10 to 10,000 "
        "labels and its statistical efficiency (accuracy from 100 over that from 10,000).",
        _with_downstream,
    ),
    Exhibit(
        "locatello-fig13-efficiency-logistic",
        "Statistical efficiency of logistic regression against metrics",
        "Locatello et al., Figure 13",
        _CLOUDS.format("logistic regression"),
        _efficiency("downstream_logistic"),
    ),
    Exhibit(
        "locatello-fig14-efficiency-gbt",
        "Statistical efficiency of gradient boosted trees against metrics",
        "Locatello et al., Figure 14",
        _CLOUDS.format("gradient boosted trees"),
        _efficiency("downstream_gbt"),
    ),
)
