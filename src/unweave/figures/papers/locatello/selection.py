"""Figures 9 to 11, Table 1: whether a good setting can be chosen without labels, by another data set, by a seed."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from unweave.analyses.selection import (
    outperforming_random,
    setting_medians,
    transfer_correlations,
    unsupervised_correlations,
)
from unweave.analyses.variants import method_variants
from unweave.figures.papers.locatello.agreement import HEAT_MAP, correlation_panels, main_data
from unweave.figures.papers.panels import counted, panels_by_name
from unweave.figures.papers.paper import Exhibit
from unweave.figures.papers.plots import method_keys
from unweave.figures.style import data_name, method_styles, metric_name, paper_style
from unweave.study import NotInStudyError, Results


def _unsupervised(results: Results) -> Figure:
    return correlation_panels(unsupervised_correlations(results.table))


def _between_data(results: Results) -> Figure:
    return correlation_panels(transfer_correlations(results.table), by="metric", columns=3)


def _main_against_others(results: Results) -> Figure:
    medians = setting_medians(results.table)
    main = main_data(medians)
    others = [name for name in medians["data"].unique() if name != main]
    metrics = list(medians["metric"].unique())
    pairs = medians[medians["data"] == main].merge(
        medians[medians["data"] != main],
        on=["metric", "method", "variant", "setting"],
        suffixes=("_main", "_other"),
    )
    if pairs.empty:
        raise NotInStudyError(f"no setting was run on {data_name(main)} and on another data set")
    styles = method_styles(method_variants(pairs))
    runs = counted(pd.concat([pairs["n_main"], pairs["n_other"]]), "runs")
    with paper_style():
        figure, axes = panels_by_name(
            [data_name(name) for name in others],
            [metric_name(name) for name in metrics],
            gaps=(0.34, 0.26),
            methods=list(styles),
            note=f"each point: one setting, the medians of {runs}",
            xlabel=f"score on {data_name(main)}",
            handle="marker",
        )
        for row, name in zip(axes, others, strict=True):
            for panel, metric in zip(row, metrics, strict=True):
                points = pairs[(pairs["data_other"] == name) & (pairs["metric"] == metric)]
                x, y = points["value_main"], points["value_other"]
                bars = {
                    "color": [styles[pair]["color"] for pair in method_keys(points)],
                    "linewidth": 0.4,
                    "alpha": 0.6,
                }
                panel.hlines(y, points["low_main"], points["high_main"], **bars)
                panel.vlines(x, points["low_other"], points["high_other"], **bars)
                for (method, variant), style in styles.items():
                    its = (points["method"] == method) & (points["variant"] == variant)
                    panel.plot(x[its], y[its], **style, linestyle="", markersize=2.2, markeredgewidth=0)
    return figure


def _selection(results: Results) -> pd.DataFrame:
    shares = outperforming_random(results.table)
    chosen_by = {"metric": "a metric", "chance": "chance"}
    return pd.DataFrame(
        {
            "setting chosen by": [chosen_by.get(name, metric_name(name)) for name in shares["chosen_by"]],
            "compared on metric": shares["metric"],
            "on data set": shares["data"],
            "probability": shares["probability"],
            "standard error": shares["standard_error"],
            "95% low": shares["low"],
            "95% high": shares["high"],
            "draws": shares["draws"],
        }
    )


EXHIBITS = (
    Exhibit(
        "locatello-fig09-unsupervised-scores",
        "Rank correlation of unsupervised scores with metrics",
        "Locatello et al., Figure 9",
        HEAT_MAP
        + " Reconstruction is the error −log p(x|z), the KL that of posterior from prior, the total correlation "
        "that of the sampled codes.",
        _unsupervised,
    ),
    Exhibit(
        "locatello-fig10-transfer-rank-correlation",
        "Rank correlation of each metric across data sets",
        "Locatello et al., Figure 10",
        "Spearman's rank correlation, times 100, over the hyperparameter settings (a method with its strength) that "
        "two data sets share; a setting's score is the median over its seeds. Bold: the 95% bootstrap interval over "
        "settings leaves out 0.",
        _between_data,
    ),
    Exhibit(
        "locatello-fig11-transfer-scores",
        "Scores on dSprites against scores on the other data sets",
        "Locatello et al., Figure 11",
        "Each point is a hyperparameter setting: its median score over seeds on dSprites (or else on the study's first "
        "data set) and on another data set. Bars: 95% bootstrap intervals of the medians over seeds.",
        _main_against_others,
    ),
    Exhibit(
        "locatello-table1-model-selection",
        "Probability of outperforming random model selection on a different random seed",
        "Locatello et al., Table 1",
        "A setting (method and strength) is chosen by its score with one random seed, on a random data set; it is then "
        "compared with a random setting on another random seed, on the same or on another random data set, by the same "
        "or by another random metric, and wins if its score is at least as high. By chance this happens in somewhat "
        "more than half of the cases, as the random setting may be the chosen one and ties count. The standard error "
        "is that of the simulation, the 95% interval the bootstrap's over seeds. Beyond the paper: settings chosen "
        "by UDR and by the ELBO, which need no labels, and compared by any metric. Locatello et al. report 0.773 (same "
        "metric, same data set), 0.550 (same, different), 0.518 (different, same) and 0.519 (different, different).",
        _selection,
    ),
)
