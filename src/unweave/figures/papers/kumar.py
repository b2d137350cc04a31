"""The figures and tables of Kumar et al. (2018), from any study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unweave.analyses.downstream import attribute_accuracy
from unweave.analyses.reconstruction import SCORES, reconstruction_trade_off
from unweave.analyses.runs import best_runs
from unweave.analyses.variants import method_variants, with_variant
from unweave.errors import UnweaveError, unknown_name
from unweave.figures.grids import Block, paper_grid
from unweave.figures.model_pictures import traversal_rows
from unweave.figures.papers.models import load_autoencoder
from unweave.figures.papers.paper import Exhibit, Paper, Protocol
from unweave.figures.papers.plots import LEAST_SCORE_SPAN, check_several, widen, widen_errors
from unweave.figures.papers.tables import format_interval, interval_column, setting_column, sort_rows
from unweave.figures.point_labels import LabelledLine, label_points
from unweave.figures.style import (
    WIDTH,
    data_name,
    legend_columns,
    method_name,
    method_styles,
    metric_name,
    new_figure,
    paper_style,
)  # fmt: skip
from unweave.figures.traversal import traversal_units
from unweave.study import NotInStudyError, Results, select
from unweave.training.run import SPEC
from unweave.training.spec import RunSpec

_SHOWN = 12  # attributes in the paper's table 2
# The settings of the paper's traversals: Figures 3 and 4 (2D Shapes), 5 (CelebA) and 6 (Chairs). A strength that the
# paper does not state is that of the best run.
_IN_THE_PAPER: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "dsprites": (
        {"method": "beta_vae", "strength": 1},
        {"method": "beta_vae", "strength": 4},
        {"method": "dip_vae_ii", "strength": 5},
        {"method": "beta_vae", "strength": 60},
        {"method": "dip_vae_ii", "strength": 500},
        {"method": "dip_vae_i", "strength": 10},
    ),
    "celeba": (
        {"method": "beta_vae", "strength": 1},
        {"method": "beta_vae", "strength": 4},
        {"method": "dip_vae_i"},
    ),
    "chairs3d_masks": (
        {"method": "beta_vae", "strength": 1},
        {"method": "beta_vae", "strength": 4},
        {"method": "dip_vae_i"},
    ),
}
_PANEL = 2.1  # inches: the height of a panel, with its axis


def trade_off(results: Results) -> Figure:
    """Scores against the reconstruction error: a line per method, a point per strength, labelled if there is room."""
    sizes = values_per_image(results)
    medians = results.analysed(reconstruction_trade_off, values_per_image=sizes)
    scores = [score for score in SCORES if score in medians]
    check_several(medians["error"], "reconstruction error")
    data = [name for name in results.table["data"].unique() if name in set(medians["data"])]
    styles = method_styles(method_variants(medians))
    with paper_style():
        figure, grid = new_figure(
            WIDTH, 0.45 + _PANEL * len(data), nrows=len(data), ncols=len(scores), sharex="row"
        )
        for line, name in enumerate(data):
            for axes, score in zip(grid[line], scores, strict=True):
                for pair, style in styles.items():
                    _draw_line(axes, _points(medians, name, pair), score, style)
                axes.set(title=data_name(name), ylabel=metric_name(score))
                axes.set_xlabel(
                    "reconstruction error, " + ("per pixel" if name in sizes else "sum over pixels")
                )
                axes.margins(0.08)
                widen(axes, LEAST_SCORE_SPAN)
            widen_errors(grid[line][0])
            for axes, score in zip(grid[line], scores, strict=True):  # now that all have the same limits
                inches = WIDTH / len(scores) - 0.6, _PANEL - 0.6
                label_points(axes, _lines(medians, name, score, styles), inches)
        handles = [axes.plot([], [], **style)[0] for style in styles.values()]
        names = [method_name(*pair) for pair in styles]
        columns = min(len(names), 6, legend_columns(names))
        figure.legend(handles, names, loc="outside upper center", ncols=columns)
    return figure


def score_table(results: Results) -> pd.DataFrame:
    """Scores and reconstruction error of each method and strength."""
    sizes = values_per_image(results)
    medians = results.analysed(reconstruction_trade_off, values_per_image=sizes)
    medians = sort_rows(medians, results.table["data"].unique().tolist())
    rows = pd.DataFrame({"Data set": medians["data"].map(data_name), "Method": setting_column(medians)})
    for score in (name for name in reversed(SCORES) if name in medians):
        rows[metric_name(score)] = interval_column(
            medians, score, f"{score}_low", f"{score}_high", f"{score}_values"
        )
    errors = medians[["error", "error_low", "error_high"]].to_numpy()
    digits = [5 if name in sizes else 2 for name in medians["data"]]
    rows["Reconstruction error"] = [
        format_interval(value, low, high, n) for (value, low, high), n in zip(errors, digits, strict=True)
    ]
    first = next(score for score in SCORES if score in medians)
    rows[f"Best {metric_name(first)}"] = medians["chosen"].map({True: "✓", False: ""})
    return rows.assign(Runs=medians["n"])


def attribute_table(results: Results) -> pd.DataFrame:
    """Accuracy in per cent of each method and strength, for the attributes on which they differ most."""
    medians = attribute_accuracy(results.table)
    setting = ["data", "method", "variant", "strength_name", "strength"]
    rows = medians.groupby(setting, dropna=False)["n"].max().reset_index()
    rows = sort_rows(rows, results.table["data"].unique().tolist())
    table = pd.DataFrame({"Data set": rows["data"].map(data_name), "Method": setting_column(rows)})
    for attribute in medians["attribute"].unique()[:_SHOWN]:
        estimates = rows[setting].merge(medians[medians["attribute"] == attribute], how="left")
        per_cent = 100 * estimates[["value", "low", "high"]].to_numpy(np.float64)
        few = [some if isinstance(some, tuple) else () for some in estimates["values"]]
        table[attribute.replace("_", " ")] = [
            format_interval(three[0], three[1], three[2], 1, [100 * value for value in some])
            for three, some in zip(per_cent, few, strict=True)
        ]
    return table.assign(Runs=rows["n"])


def best_traversals(
    results: Results,
    metric: str = "sap",
    columns: int = 9,
    settings: Sequence[Mapping[str, Any]] | None = None,
    latents: Sequence[int] | None = None,
    note: str = "",
) -> dict[str, Figure]:
    """Per data set the traversals of the best run of each method, two methods side by side.

    With ``settings`` the best run at each of them is shown instead, [{"method": "dip_vae_i", "strength": 10}] by the
    columns of the results ({"run": "…"} is a single run); with ``latents`` these latents only, in this order. ``note``
    stands below each figure.
    """
    if results.runs is None:
        raise NotInStudyError("traversals need the trained models; the study has scores only")
    table = results.table
    best = best_runs(table, metric) if settings is None else _best_at(table, metric, settings)
    best = sort_rows(best, table["data"].unique().tolist())
    blocks: dict[str, list[Block]] = {}
    problems = []
    for name, run, setting, value in zip(
        best["data"], best["run"], setting_column(best), best["value"], strict=True
    ):
        heading = f"{data_name(name)}, {setting}"
        try:
            model, images = load_autoencoder(results.runs / run, name)
        except UnweaveError as error:  # no weights or no data files
            problems.append(f"{heading}: {error}")
            continue
        rows = traversal_rows(model, images, columns=columns, latents=latents)
        about = f"{metric_name(metric)} {value:.3f}{traversal_units(model)}"
        blocks.setdefault(name, []).append(Block(heading, about, rows))
    if not blocks:
        raise NotInStudyError(f"the best runs cannot be shown: {'; '.join(problems)}")
    note = " ".join(filter(None, [note, f"Not shown: {'; '.join(problems)}" if problems else ""]))
    return {name: paper_grid(of_data, across=2, note=note) for name, of_data in blocks.items()}


def paper_traversals(results: Results, metric: str = "sap", columns: int = 9) -> dict[str, Figure]:
    """Per data set of the paper the traversals of the best run at each of the settings that it shows.

    Settings that the study does not have are left out, and said below the figure.
    """
    figures: dict[str, Figure] = {}
    for name, settings in _IN_THE_PAPER.items():
        of_data = results.table[results.table["data"] == name]
        known = [setting for setting in settings if _has(of_data, setting)]
        if known:
            part = Results(results.name, of_data, results.runs)
            left_out = [_words(setting) for setting in settings if setting not in known]
            note = f"Of the paper's settings the study lacks {', '.join(left_out)}." if left_out else ""
            figures |= best_traversals(part, metric, columns, known, note=note)
    if not figures:
        raise NotInStudyError("the study has none of the settings of the paper's traversals")
    return figures


def _has(table: pd.DataFrame, setting: Mapping[str, Any]) -> bool:
    chosen = table
    for column, value in setting.items():
        chosen = chosen[chosen[column] == value]
    return not chosen.empty


def _words(setting: Mapping[str, Any]) -> str:
    """A setting as a text: "β-VAE 4"."""
    strength = f" {setting['strength']:g}" if "strength" in setting else ""
    return f"{method_name(setting['method'], '')}{strength}"


def _best_at(table: pd.DataFrame, metric: str, settings: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The run with the largest score at each of some settings, for each data set."""
    best = []
    for setting in settings:
        rows = with_variant(select(table, metric).dropna(subset="value"))
        for column, value in setting.items():
            if column not in rows:
                raise unknown_name("settings", column, rows.columns)
            rows = rows[rows[column] == value]
        if rows.empty:
            raise NotInStudyError(f"the study has no run with {dict(setting)}")
        best.append(rows.loc[rows.groupby("data", sort=False)["value"].idxmax()])
    return pd.concat(best, ignore_index=True)


def values_per_image(results: Results) -> dict[str, int]:
    """Pixels times channels of each data set's images, from the spec of its first run; only if there are runs."""
    if results.runs is None:
        return {}
    first = results.table.drop_duplicates("data").set_index("data")["run"]
    specs = {name: results.runs / run / SPEC for name, run in first.items()}
    return {
        str(name): math.prod(RunSpec.read(spec).data["image_shape"])
        for name, spec in specs.items()
        if spec.exists()
    }


def _draw_line(axes: Any, points: pd.DataFrame, score: str, style: dict[str, Any]) -> None:
    x, y = points["error"], points[score]
    bars = {
        "xerr": [x - points["error_low"], points["error_high"] - x],
        "yerr": [y - points[f"{score}_low"], points[f"{score}_high"] - y],
    }
    axes.errorbar(x, y, **bars, fmt="none", ecolor=style["color"], elinewidth=0.5, alpha=0.35)
    axes.plot(x, y, **style, markersize=3, linewidth=0.9)


def _lines(
    medians: pd.DataFrame, data: str, score: str, styles: dict[tuple[str, str], dict[str, Any]]
) -> list[LabelledLine]:
    """The points of each method with their strengths as labels."""
    lines = []
    for pair, style in styles.items():
        points = _points(medians, data, pair).dropna(subset=["error", score])
        texts = ["" if pd.isna(strength) else f"{strength:g}" for strength in points["strength"]]
        lines.append(LabelledLine(points[["error", score]].to_numpy(np.float64), texts, style["color"]))
    return lines


def _points(medians: pd.DataFrame, data: str, pair: tuple[str, str]) -> pd.DataFrame:
    """The rows of a method and variant on a data set, from weak to strong."""
    method, variant = pair
    its = (medians["data"] == data) & (medians["method"] == method) & (medians["variant"] == variant)
    return medians[its].sort_values("strength")


_EXHIBITS = (
    Exhibit(
        "kumar-fig01-trade-off",
        "Disentanglement against reconstruction error",
        "Kumar et al., Figures 1 and 2",
        "A point is the median over seeds at one strength of regularisation, the number next to it (where there is "
        "room; the table of scores has all); bars are 95 % bootstrap intervals; lines join a method's strengths in "
        "order. The reconstruction error is the squared error "
        "of images decoded from mean codes; per pixel means divided by the number of pixels times channels. "
        "An axis of scores spans 0.1 at least, that of errors 5 % of its middle.",
        trade_off,
    ),
    Exhibit(
        "kumar-table1-scores",
        "Z-diff score, SAP score and reconstruction error",
        "Kumar et al., Table 1",
        "Medians over seeds with 95 % bootstrap intervals. The mark is at a method's strength with the best median.",
        score_table,
    ),
    Exhibit(
        "kumar-fig03-traversals",
        "Latent traversals at the settings of the paper",
        "Kumar et al., Figures 3 to 6",
        "A picture per data set: the run with the highest SAP score at each of the paper's settings that the study "
        "has. Rows are as in the next picture.",
        paper_traversals,
    ),
    Exhibit(
        "kumar-traversals-best",
        "Latent traversals of the best run of each method",
        "as Kumar et al., Figures 3 to 6",
        "A picture per data set. Each row moves one latent, by the values below the last row, and leaves the others at "
        "the code of one image; latents with the largest KL first. The values are the latent's own; where a heading "
        "says so, they count standard deviations of its codes from their mean, and the KL is to a Gaussian with the "
        "codes' own moments.",
        best_traversals,
    ),
    Exhibit(
        "kumar-table2-attributes",
        "Attribute classification",
        "Kumar et al., Table 2",
        "Median accuracy over seeds in per cent with 95 % bootstrap intervals, for the attributes on which the medians "
        "differ most.",
        attribute_table,
    ),
)
PAPER = Paper(
    "Kumar et al.: Variational Inference of Disentangled Latent Concepts from Unlabeled Observations",
    _EXHIBITS,
    Protocol("Kumar et al."),
)
