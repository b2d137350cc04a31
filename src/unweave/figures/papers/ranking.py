"""Which method is best on which data set by which metric, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from unweave.analyses.ranking import Strengths, rank_methods
from unweave.analyses.variants import method_variants
from unweave.figures.papers.paper import Exhibit, Paper
from unweave.figures.papers.tables import interval_column, method_column, sort_rows
from unweave.figures.style import (
    WIDTH,
    data_name,
    method_name,
    method_styles,
    metric_name,
    new_figure,
    paper_style,
)  # fmt: skip
from unweave.study import Results

_CELL, _COLUMNS = 0.24, 4  # inches; panels per line


def best_probabilities(results: Results, strengths: Strengths = "best") -> Figure:
    """A panel per data set, a row per metric: the rank of each method, on a colour that says how sure the first is."""
    ranks = results.analysed(rank_methods, strengths=strengths)
    methods = list(method_styles(method_variants(ranks)))
    metrics, data = (ranks[column].unique().tolist() for column in ("metric", "data"))
    columns = min(_COLUMNS, len(data))
    lines = -(-len(data) // columns)
    width = min(WIDTH, max(3.0, 1.0 + columns * (len(methods) * _CELL + 0.25)))
    height = 1.7 + lines * (len(metrics) * _CELL + 0.25)
    with paper_style():
        figure, grid = new_figure(width, height, nrows=lines, ncols=columns, sharey=True)
        for axes in grid.ravel()[len(data) :]:
            axes.set_visible(False)
        for index, (axes, name) in enumerate(zip(grid.ravel(), data, strict=False)):
            cells = ranks[ranks["data"] == name]
            best = cells.pivot(index="metric", columns=["method", "variant"], values="best")
            best = best.reindex(index=metrics, columns=pd.MultiIndex.from_tuples(methods))
            image = axes.imshow(best, cmap="Blues", norm=Normalize(0, 1), aspect="auto")
            _write_ranks(axes, cells, methods, metrics)
            axes.set_title(data_name(name))
            axes.set_yticks(range(len(metrics)), [metric_name(metric) for metric in metrics])
            axes.set_xticks(range(len(methods)), [])
            if index < columns:
                names = [method_name(*pair) for pair in methods]
                axes.set_xticklabels(names, rotation=55, ha="left", rotation_mode="anchor")
            axes.tick_params(length=0, labeltop=index < columns, labelbottom=False)
            axes.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=grid, location="bottom", shrink=0.5, aspect=40, pad=0.02)
        bar.set_label("probability of the best median")
    return figure


def ranking_table(results: Results) -> pd.DataFrame:
    """A row per data set and method, a column per metric: median, interval, letters."""
    ranks = results.analysed(rank_methods, strengths="best")
    metrics, data = (ranks[column].unique().tolist() for column in ("metric", "data"))
    ranks = ranks.assign(cell=interval_column(ranks, "value") + " " + ranks["letters"])
    cells = ranks.pivot(index=["data", "method", "variant"], columns="metric", values="cell").fillna("")
    cells = sort_rows(cells.reset_index(), data)
    columns = {metric_name(metric): cells[metric] for metric in metrics}
    return pd.DataFrame({"Data set": cells["data"].map(data_name), "Method": method_column(cells), **columns})


def rank_table(results: Results) -> pd.DataFrame:
    """All of the ranking: a row per data set, metric and method, best first."""
    ranks = results.analysed(rank_methods, strengths="best")
    return pd.DataFrame(
        {
            "Data set": ranks["data"].map(data_name),
            "Metric": ranks["metric"].map(metric_name),
            "Rank": ranks["rank"],
            "Rank interval": [
                "" if np.isnan(low) else f"{low:.0f}–{high:.0f}"
                for low, high in ranks[["rank_low", "rank_high"]].to_numpy()
            ],
            "Method": method_column(ranks),
            "Strength": ranks["strength"].map(lambda strength: "" if pd.isna(strength) else f"{strength:g}"),
            "Median": interval_column(ranks, "value"),
            "P(best)": ranks["best"].round(3),
            "Letters": ranks["letters"],
            "Runs": ranks["n"],
        }
    )


def _write_ranks(axes: Any, cells: pd.DataFrame, methods: list[tuple[str, str]], metrics: list[str]) -> None:
    for row in cells.to_dict("records"):
        axes.text(
            methods.index((row["method"], row["variant"])),
            metrics.index(row["metric"]),
            str(row["rank"]),
            ha="center",
            va="center",
            fontsize=6.5,
            fontweight="bold" if row["tied"] else "normal",
            color="white" if row["best"] > 0.6 else "black" if row["tied"] else "#8a8a8a",
            in_layout=False,
        )


_HOW = (
    "Each method has the strength with the best median there, which is optimistic. Medians over seeds, with 95 % "
    "bootstrap intervals; of fewer than five seeds the values, and no probabilities. Methods that share a letter "
    "cannot be distinguished (Mann-Whitney tests with Holm's "
    "correction at 5 %)."
)
_EXHIBITS = (
    Exhibit(
        "ranking-best",
        "Which method is best, and how sure that is",
        "beyond the papers",
        "The number is the method's rank by its median score, bold where it cannot be distinguished from the first. "
        "The colour is the bootstrap probability over seeds that its median is the largest; without colour there are "
        "fewer than five seeds. " + _HOW,
        best_probabilities,
    ),
    Exhibit("ranking-medians", "Scores with intervals and groups", "beyond the papers", _HOW, ranking_table),
    Exhibit(
        "ranking-ranks",
        "Ranks with intervals",
        "beyond the papers",
        "P(best): the bootstrap probability of the largest median. " + _HOW,
        rank_table,
    ),
)
PAPER = Paper("Beyond the papers", _EXHIBITS)
