"""Figures 4-8, 34 and 35, Table 1 and the ablations in numbers: scores of each model, and of each pair of stages.

Dots are runs, and lines join medians: the studies have a few seeds, of which a bootstrap interval would say too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from unweave.analyses.stages import (
    CONDITIONING,
    PAIRED,
    pair_summary,
    part_accuracy,
    stage_pairs,
    stage_scores,
)
from unweave.figures.papers.multistage.models import (
    ModelKey,
    model_keys,
    model_name,
    model_styles,
    of_model,
    strength_label,
)
from unweave.figures.papers.paper import Exhibit
from unweave.figures.style import WIDTH, data_name, legend_columns, metric_name, new_figure, paper_style
from unweave.study import NotInStudyError, Results

_FEW = 5  # runs: of fewer the values themselves are shown
_ROW = 1.75  # inches: the height of a row of panels
_FID, _L1, _L2 = "fid_reconstruction", "reconstruction_error.l1", "reconstruction_error.l2"
_RANDOM_Z = "fid_random_z"
_MAIN = ("", "L", "big")  # ablations are in a table of their own
_LOWER = (_FID, _L1, _L2, _RANDOM_Z)
_TERMS = {
    "conditioning.m1": ("M1: y", "#0072B2"),
    "conditioning.m2": ("M2: x", "#D55E00"),
    "conditioning.m3": ("M3: x, z random", "#009E73"),
    "conditioning.m4": ("M4: x, y random", "#9467BD"),
}
_PARTS = {"c": ("C", "#0072B2"), "z": ("Z", "#E69F00"), "": ("C + Z", "#404040")}


def strength_curves(results: Results, metrics: Sequence[str]) -> Figure:
    """A row per data set, a column per metric: runs and medians of each model against the first stage's strength.

    Models without a strength are horizontal lines at their median.
    """
    scores = stage_scores(results.table, metrics)
    scores = scores[scores["model"].isin(_MAIN)]
    _needs_stages(scores)
    if scores["strength"].nunique() < 2:
        raise NotInStudyError(
            "the first stages have a single strength: the table of pairs and the table of models show the scores"
        )
    data, shown = _order(scores, results), [name for name in metrics if name in set(scores["metric"])]
    styles = model_styles(model_keys(scores))
    with paper_style():
        figure, grid = new_figure(
            min(WIDTH, 0.8 + 2.9 * len(shown)),
            0.55 + _ROW * len(data),
            nrows=len(data),
            ncols=len(shown),
            sharex=True,
        )
        for row, name in zip(grid, data, strict=True):
            for axes, metric in zip(row, shown, strict=True):
                some = scores[(scores["data"] == name) & (scores["metric"] == metric)]
                for key, style in styles.items():
                    _curve(axes, of_model(some, key), "strength", style)
                _finish(axes, metric, sorted(scores["strength"].dropna().unique()))
                axes.set_title(data_name(name))
        for axes in grid[-1]:
            axes.set_xlabel(strength_label(scores))
        _model_legend(figure, styles)
    return figure


def size_curves(results: Results, size: str, metrics: Sequence[str], staged: bool) -> Figure:
    """A row per data set, a column per metric: runs and medians against the number of latents |C| or |Z|.

    ``size`` is "c_size", of first stages alone, or "z_size", of second stages.
    """
    scores = stage_scores(results.table, metrics)
    scores = scores[(scores["staged"] == staged) & scores["model"].isin(["", "L"])].dropna(subset=size)
    # Sizes are compared at one strength: that which has most of them.
    counts = scores.groupby(["data", "method", "strength"], dropna=False)[size].nunique()
    if counts.empty or counts.max() < 2:
        raise NotInStudyError(f"the study has no two values of |{size[0].upper()}| at one strength")
    chosen = counts[counts > 1].reset_index().sort_values(size, ascending=False, kind="stable")
    chosen = chosen.drop_duplicates(["data", "method"])[["data", "method", "strength"]]
    scores = scores.merge(chosen, on=["data", "method", "strength"], how="inner").assign(model="")
    data, shown = _order(scores, results), [name for name in metrics if name in set(scores["metric"])]
    styles = model_styles(model_keys(scores))
    with paper_style():
        width = min(WIDTH, 0.8 + 2.2 * len(shown))
        figure, grid = new_figure(
            width, 0.6 + _ROW * len(data), nrows=len(data), ncols=len(shown), sharex=True
        )
        for row, name in zip(grid, data, strict=True):
            strengths = chosen.loc[chosen["data"] == name, "strength"].dropna().unique()
            about = f", {strength_label(scores)} = {strengths[0]:g}" if len(strengths) == 1 else ""
            for axes, metric in zip(row, shown, strict=True):
                some = scores[(scores["data"] == name) & (scores["metric"] == metric)]
                for key, style in styles.items():
                    _curve(axes, of_model(some, key), size, style)
                _finish(axes, metric, sorted(scores[size].unique()))
                axes.set_title(data_name(name) + about)
        for axes in grid[-1]:
            axes.set_xlabel(f"|{size[0].upper()}|")
        _model_legend(figure, styles)
    return figure


def pair_scatter(results: Results) -> Figure:
    """A row per data set, a column per metric: a second stage against its own first stage, a point per pair."""
    pairs = stage_pairs(results.table)
    data, shown = _order(pairs, results), [name for name in PAIRED if name in set(pairs["metric"])]
    styles = model_styles(model_keys(pairs))
    with paper_style():
        width = min(WIDTH, 0.6 + 2.1 * len(shown))
        side = (width - 0.4) / len(shown)
        figure, grid = new_figure(width, 0.5 + 1.05 * side * len(data), nrows=len(data), ncols=len(shown))
        for row, name in zip(grid, data, strict=True):
            for axes, metric in zip(row, shown, strict=True):
                some = pairs[(pairs["data"] == name) & (pairs["metric"] == metric)]
                for key, style in styles.items():
                    points = of_model(some, key)
                    axes.scatter(
                        points["first_value"],
                        points["value"],
                        color=style["color"],
                        marker=style["marker"],
                        s=18,
                        alpha=0.8,
                        linewidths=0,
                    )
                _diagonal(axes, some)
                axes.set_title(f"{data_name(name)}: {_axis_name(metric)}")
                axes.set(xlabel="first stage", ylabel="second stage")
        _model_legend(figure, {key: {**style, "linestyle": ""} for key, style in styles.items()})
    return figure


def conditioning_bars(results: Results) -> Figure:
    """A panel per data set: M1 to M4 at each strength of the first stage."""
    scores = stage_scores(results.table, CONDITIONING, part="")
    scores = scores[scores["staged"] & (scores["model"] == "")]
    _needs_stages(scores)
    data = _order(scores, results)
    columns = min(2, len(data))
    lines = -(-len(data) // columns)
    with paper_style():
        figure, grid = new_figure(
            WIDTH * (columns / 2 if columns > 1 else 0.6),
            0.5 + _ROW * lines,
            nrows=lines,
            ncols=columns,
            sharey=True,
        )
        for axes in grid.ravel()[len(data) :]:
            axes.set_visible(False)
        for axes, name in zip(grid.ravel(), data, strict=False):
            some = scores[scores["data"] == name].rename(columns={"metric": "series"})
            _grouped_bars(axes, some, _TERMS)
            axes.set(
                title=data_name(name),
                xlabel=strength_label(scores),
                ylabel="mutual information",
            )
            axes.label_outer()
        _patch_legend(figure, _TERMS)
    return figure


def downstream_bars(results: Results) -> dict[str, Figure]:
    """Per data set a panel per factor: the accuracy from C, from Z and from both at each strength."""
    accuracy = part_accuracy(results.table)
    accuracy = accuracy[accuracy["model"] == ""]
    _needs_stages(accuracy)
    figures = {}
    for name in _order(accuracy, results):
        some = accuracy[accuracy["data"] == name].rename(columns={"part": "series"})
        factors = some["factor"].unique().tolist()
        columns = min(3, len(factors))
        lines = -(-len(factors) // columns)
        with paper_style():
            figure, grid = new_figure(
                min(WIDTH, 0.4 + 2.2 * columns), 0.5 + _ROW * lines, nrows=lines, ncols=columns, sharey=True
            )
            for axes in grid.ravel()[len(factors) :]:
                axes.set_visible(False)
            for axes, factor in zip(grid.ravel(), factors, strict=False):
                _grouped_bars(axes, some[some["factor"] == factor], _PARTS)
                axes.set_title(factor.replace("_", " "))
                axes.set_ylim(0, 1.02)
            for axes in grid[:, 0]:
                axes.set_ylabel("accuracy")
            for axes in grid.ravel()[max(0, len(factors) - columns) : len(factors)]:
                axes.set_xlabel(strength_label(some))
            _patch_legend(figure, _PARTS)
        figures[name] = figure
    return figures


def pair_table(results: Results) -> pd.DataFrame:
    """In how many pairs the second stage is better than its own first."""
    pairs = stage_pairs(results.table, (*PAIRED, _L1))
    rows = pair_summary(pairs, _LOWER)
    return pd.DataFrame(
        {
            "Data set": rows["data"].map(data_name),
            "Model": [model_name(*pair) for pair in rows[["method", "model"]].to_numpy().tolist()],
            "Score": rows["metric"].map(metric_name),
            "Better is": rows["metric"].isin(_LOWER).map({True: "less", False: "more"}),
            "First stage": rows["first_value"].map(_number),
            "Second stage": rows["value"].map(_number),
            "Difference": rows["difference"].map(_number),
            "Better in": [
                "none: equal" if equal == n else f"{better} of {n}"
                for better, equal, n in zip(rows["better"], rows["equal"], rows["n"], strict=True)
            ],
        }
    )


def model_table(results: Results, models: Sequence[str] | None = None) -> pd.DataFrame:
    """The scores of each model and strength of the first stage: the values of few runs, else mean and deviation.

    ``models`` are those of ``stage_runs``; strengths that not all of them have are left out then.
    """
    metrics = (_FID, _L2, "mig", "conditioning.m3")
    scores = stage_scores(results.table, metrics)
    _needs_stages(scores)
    if models is not None:
        scores = _comparable(scores, models)
    strength = strength_label(scores)
    keys, present = model_keys(scores), [name for name in metrics if name in set(scores["metric"])]
    table = []
    for name in _order(scores, results):
        of_data = scores[scores["data"] == name]
        for key in keys:
            for value, some in _by_strength(of_model(of_data, key)):
                cells = {
                    metric_name(metric): _score_cell(some.loc[some["metric"] == metric, "value"])
                    for metric in present
                }
                row = {"Data set": data_name(name), "Model": model_name(*key)}
                row |= {strength: "–" if pd.isna(value) else f"{value:g}", **cells}
                table.append({**row, "Runs": some["run"].nunique()})
    return pd.DataFrame(table)


def _by_strength(scores: pd.DataFrame) -> list[tuple[float, pd.DataFrame]]:
    """Scores by the strength of the first stage, in order; NaN where there is none."""
    groups = scores.groupby("strength", dropna=False)
    return [(float(rows["strength"].iloc[0]), rows) for _, rows in groups]


def _comparable(scores: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """The scores of some models, at the strengths that all of them have on a data set."""
    scores = scores[scores["model"].isin(models)].dropna(subset="strength")
    kinds = scores.groupby(["data", "strength"])["model"].transform("nunique")
    shared = scores[kinds == len(models)]
    if shared.empty:
        raise NotInStudyError("the study has no first stage with as many weights as both stages of a model")
    return shared


# --- what is drawn in a panel ---------------------------------------------------------------------------


def _curve(axes: Axes, rows: pd.DataFrame, x: str, style: dict[str, Any]) -> None:
    """Runs as dots, medians joined by a line; runs without x are a horizontal line at their median."""
    if rows.empty:
        return
    medians = rows.dropna(subset=x).groupby(x)["value"].median()
    if medians.empty:
        axes.axhline(rows["value"].median(), color=style["color"], linestyle=style["linestyle"], linewidth=1)
        return
    axes.plot(
        medians.index.to_numpy(np.float64),
        medians.to_numpy(),
        color=style["color"],
        linestyle=style["linestyle"],
        linewidth=1,
    )
    axes.plot(
        rows[x].to_numpy(np.float64),
        rows["value"].to_numpy(),
        color=style["color"],
        marker=style["marker"],
        linestyle="",
        markersize=3.5,
        markeredgewidth=0,
        alpha=0.75,
    )


def _finish(axes: Axes, metric: str, values: Sequence[float]) -> None:
    """The metric's name, from 0 on where it has no negative values, and ticks at the values of x."""
    axes.set_ylabel(_axis_name(metric))
    axes.set_xticks(values, [f"{value:g}" for value in values])
    if axes.dataLim.y0 >= 0:
        axes.set_ylim(0, 1.08 * axes.dataLim.y1)


def _grouped_bars(axes: Axes, rows: pd.DataFrame, series: dict[str, tuple[str, str]]) -> None:
    """A group of bars per strength, a bar per series: medians, with each run as a dot."""
    strengths = sorted(rows["strength"].dropna().unique())
    present = [name for name in series if name in set(rows["series"])]
    width = 0.8 / len(present)
    groups = [rows[rows["strength"] == strength] for strength in strengths] or [rows]
    for position, group in enumerate(groups):
        for index, name in enumerate(present):
            values = group.loc[group["series"] == name, "value"].to_numpy()
            if not len(values):
                continue
            x = position + (index - (len(present) - 1) / 2) * width
            axes.bar(x, np.median(values), width * 0.92, color=series[name][1], alpha=0.75, linewidth=0)
            axes.plot([x] * len(values), values, ".", color="black", markersize=2.5, markeredgewidth=0)
    axes.set_xticks(range(len(groups)), [f"{strength:g}" for strength in strengths] or [""])
    axes.set_xlim(-0.6, len(groups) - 0.4)


def _diagonal(axes: Axes, pairs: pd.DataFrame) -> None:
    """The line of equal scores, across both axes, which get the same limits."""
    values = pairs[["first_value", "value"]].to_numpy()
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    limits = (low - margin, high + margin)
    axes.plot(limits, limits, color="0.6", linewidth=0.8, zorder=0)
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    axes.locator_params(nbins=4)


def _model_legend(figure: Figure, styles: dict[ModelKey, dict[str, Any]]) -> None:
    handles = [Line2D([], [], label=model_name(*key), markersize=4, **style) for key, style in styles.items()]
    _legend(figure, handles)


def _patch_legend(figure: Figure, series: dict[str, tuple[str, str]]) -> None:
    _legend(figure, [Patch(color=color, alpha=0.75, label=name) for name, color in series.values()])


def _legend(figure: Figure, handles: Sequence[Any]) -> None:
    names = [str(handle.get_label()) for handle in handles]
    columns = min(len(names), legend_columns(names, figure.get_figwidth()))
    figure.legend(handles=list(handles), loc="outside upper center", ncols=columns, handlelength=2.2)


def _axis_name(metric: str) -> str:
    """A metric's name, with an arrow to where it is better."""
    return f"{metric_name(metric)} {'↓' if metric in _LOWER else '↑'}"


def _order(rows: pd.DataFrame, results: Results) -> list[str]:
    present = set(rows["data"])
    return [name for name in results.table["data"].unique() if name in present]


def _needs_stages(rows: pd.DataFrame) -> None:
    if not rows["staged"].any():
        raise NotInStudyError("the study has no second stages")


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def _score_cell(values: pd.Series) -> str:
    """The values of up to four runs; of more, mean ± standard deviation."""
    if values.empty:
        return "–"
    digits = 3 if values.abs().max() < 10 else 1
    if len(values) < _FEW:
        return ", ".join(f"{value:.{digits}f}" for value in sorted(values))
    return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"


_DOTS = "A dot is a run, a line joins the medians of a model; ↓ less is better, ↑ more"
_AXIS = (
    "; a model without a strength is a horizontal line. The strength is that of the first stage, also for the "
    "second stages that were trained on it. MIG is that of c."
)
EXHIBITS = (
    Exhibit(
        "multistage-fig04-scores",
        "FID of reconstructions and MIG against the strength of the first stage",
        "Multi-stage modelling, Figure 4",
        _DOTS + _AXIS + " FID is between images and their reconstructions.",
        partial(strength_curves, metrics=(_FID, "mig")),
    ),
    Exhibit(
        "multistage-pairs",
        "Each second stage against its own first stage",
        "of the numbers in Multi-stage modelling, Figures 4 and 35",
        "A point is a second stage and the first stage that it was trained on. On the line both have the same score. "
        "Of FID and of the squared error less is better: points below the line are second stages that improve. MIG is "
        "that of c, which a second stage keeps by construction.",
        pair_scatter,
    ),
    Exhibit(
        "multistage-table-pairs",
        "Second stages that are better than their own first stages",
        "of the numbers in Multi-stage modelling, Figures 4, 34 and 35",
        "Medians over pairs of a second stage and its first stage, the median of their differences, and in how many "
        "pairs the second stage is better.",
        pair_table,
    ),
    Exhibit(
        "multistage-fig05-conditioning",
        "Does x keep the codes? M1 to M4",
        "Multi-stage modelling, Figure 5",
        "Mutual information of the first stage's codes of an image and of what is made of it, normalised: M1 of y, M2 "
        "of the reconstruction, M3 of the reconstruction with z from its prior, M4 with y random. The paper finds "
        "M2 > M1 > M3 >> M4. Bars are medians over seeds, dots are runs.",
        conditioning_bars,
    ),
    Exhibit(
        "multistage-fig06-downstream",
        "Factors predicted from C, from Z and from both",
        "Multi-stage modelling, Figure 6",
        "Test accuracy of a multi-layer perceptron for each factor. Bars are medians over seeds, dots are runs.",
        downstream_bars,
    ),
    Exhibit(
        "multistage-fig07-c-size",
        "MIG and ELBO against the number of latents |C|",
        "Multi-stage modelling, Figure 7",
        _DOTS + ". First stages alone, at the strength with the most sizes.",
        partial(size_curves, size="c_size", metrics=("mig", "unsupervised.elbo"), staged=False),
    ),
    Exhibit(
        "multistage-fig08-z-size",
        "MIG, FID and M3 against the number of latents |Z|",
        "Multi-stage modelling, Figure 8",
        _DOTS
        + ". Second stages at the strength with the most sizes; FID with z of the image, and with z from the "
        "prior.",
        partial(size_curves, size="z_size", metrics=("mig", _FID, _RANDOM_Z, "conditioning.m3"), staged=True),
    ),
    Exhibit(
        "multistage-fig34-errors",
        "Absolute and squared error of reconstructions",
        "Multi-stage modelling, Figures 34 and 35",
        _DOTS + _AXIS + " Errors are sums over pixels.",
        partial(strength_curves, metrics=(_L1, _L2)),
    ),
    Exhibit(
        "multistage-table1-capacity",
        "MS-VAE and first stages with as many weights",
        "Multi-stage modelling, Table 1",
        "The values of each run, or of five and more mean ± standard deviation, at the strengths that all have.",
        partial(model_table, models=("", "big")),
    ),
    Exhibit(
        "multistage-table-models",
        "All models: first stages, second stages and ablations",
        "of the numbers in Multi-stage modelling, Figure 4 and appendix L",
        "The values of each run, or of five and more mean ± standard deviation. M1 learns both "
        "stages at once, M2 joins c and z, M3 reads "
        "c in place of y, M5 learns z first; MS-VAE itself is M4. MIG is that of c.",
        model_table,
    ),
)
