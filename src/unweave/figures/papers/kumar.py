"""The figures and tables of Kumar et al. (2018), from any study."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unweave.analyses import kumar
from unweave.analyses.summaries import arranged, spelled, spelled_column
from unweave.errors import UnweaveError
from unweave.figures.labelling import Line, label_points
from unweave.figures.latent import traversal_rows, units
from unweave.figures.models import load_model
from unweave.figures.papers.paper import Exhibit, Paper
from unweave.figures.plate import Block, plate
from unweave.figures.style import (
    WIDTH,
    data_name,
    legend_columns,
    look,
    method_name,
    metric_name,
    new_figure,
    order,
    paper_style,
)  # fmt: skip
from unweave.study import NotInStudyError, Results
from unweave.training.run import SPEC
from unweave.training.spec import RunSpec

_SYMBOLS = {"beta": "β", "gamma": "γ", "lambda_od": "λ_od", "c_max": "C"}
_SHOWN = 12  # attributes in the paper's table 2
_PANEL = 2.1  # inches: the height of a panel, with its axis


def trade_off(results: Results) -> Figure:
    """Scores against the reconstruction error: a line per method, a point per strength, labelled if there is room."""
    sizes = values_per_image(results)
    found = results.analysed(kumar.trade_off, values_per_image=sizes)
    scores = [score for score in kumar.SCORES if score in found]
    data = [name for name in results.table["data"].unique() if name in set(found["data"])]
    looks = look(found["method"])
    with paper_style():
        figure, grid = new_figure(
            WIDTH, 0.45 + _PANEL * len(data), nrows=len(data), ncols=len(scores), sharex="row"
        )
        for line, name in enumerate(data):
            for axes, score in zip(grid[line], scores, strict=True):
                for method, style in looks.items():
                    points = found[(found["data"] == name) & (found["method"] == method)]
                    _draw_line(axes, points.sort_values("strength"), score, style)
                axes.set(title=data_name(name), ylabel=metric_name(score))
                axes.set_xlabel(
                    "reconstruction error, " + ("per pixel" if name in sizes else "sum over pixels")
                )
                axes.margins(0.08)
            for axes, score in zip(grid[line], scores, strict=True):  # now that all share their limits
                inches = WIDTH / len(scores) - 0.6, _PANEL - 0.6
                label_points(axes, _lines(found[found["data"] == name], score, looks), inches)
        handles = [axes.plot([], [], **style)[0] for style in looks.values()]
        names = [method_name(method) for method in looks]
        columns = min(len(names), 6, legend_columns(names))
        figure.legend(handles, names, loc="outside upper center", ncols=columns)
    return figure


def score_table(results: Results) -> pd.DataFrame:
    """Scores and reconstruction error of each method and strength."""
    sizes = values_per_image(results)
    found = _in_order(results.analysed(kumar.trade_off, values_per_image=sizes), results)
    rows = pd.DataFrame({"Data set": found["data"].map(data_name), "Method": _settings(found)})
    for score in (name for name in reversed(kumar.SCORES) if name in found):
        rows[metric_name(score)] = spelled_column(found, score, f"{score}_low", f"{score}_high")
    errors = found[["error", "error_low", "error_high"]].to_numpy()
    digits = [5 if name in sizes else 2 for name in found["data"]]
    rows["Reconstruction error"] = [
        spelled(value, low, high, n) for (value, low, high), n in zip(errors, digits, strict=True)
    ]
    first = next(score for score in kumar.SCORES if score in found)
    rows[f"Best {metric_name(first)}"] = found["chosen"].map({True: "✓", False: ""})
    return rows.assign(Runs=found["n"])


def attribute_table(results: Results) -> pd.DataFrame:
    """Accuracy in per cent of each method and strength, for the attributes on which they differ most."""
    found = _in_order(kumar.attribute_accuracy(results.table), results)
    attributes = [name for name in map(str, found) if f"{name}_low" in found][:_SHOWN]
    rows = pd.DataFrame({"Data set": found["data"].map(data_name), "Method": _settings(found)})
    for attribute in attributes:
        per_cent = 100 * found[[attribute, f"{attribute}_low", f"{attribute}_high"]].to_numpy(np.float64)
        cells = [spelled(value, low, high, 1) for value, low, high in per_cent]
        rows[attribute.replace("_", " ")] = cells
    return rows.assign(Runs=found["n"])


def best_traversals(results: Results, metric: str = "sap", columns: int = 9) -> dict[str, Figure]:
    """Per data set the traversals of the best run of each method, two methods side by side."""
    if results.runs is None:
        raise NotInStudyError("traversals need the trained models; the study has scores only")
    best = kumar.best_runs(results.table, metric)
    best = _in_order(best, results)
    blocks: dict[str, list[Block]] = {}
    problems = []
    for name, run, setting, value in zip(
        best["data"], best["run"], _settings(best), best["value"], strict=True
    ):
        told = f"{data_name(name)}, {setting}"
        try:
            model, images = load_model(results.runs / run, name)
        except UnweaveError as error:  # no weights or no data files
            problems.append(f"{told}: {error}")
            continue
        rows = traversal_rows(model, images, columns=columns)
        about = f"{metric_name(metric)} {value:.3f}{units(model)}"
        blocks.setdefault(name, []).append(Block(told, about, rows))
    if not blocks:
        raise NotInStudyError(f"the best runs cannot be shown: {'; '.join(problems)}")
    note = f"Not shown: {'; '.join(problems)}" if problems else ""
    return {name: plate(found, across=2, note=note) for name, found in blocks.items()}


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


def _lines(found: pd.DataFrame, score: str, looks: dict[str, dict[str, Any]]) -> list[Line]:
    lines = []
    for method, style in looks.items():
        points = found[found["method"] == method].sort_values("strength").dropna(subset=["error", score])
        texts = ["" if pd.isna(strength) else f"{strength:g}" for strength in points["strength"]]
        lines.append(Line(points[["error", score]].to_numpy(np.float64), texts, style["color"]))
    return lines


def _settings(rows: pd.DataFrame) -> list[str]:
    """ "β-VAE (β = 4)" for each row."""
    names = []
    for method, symbol, strength in zip(rows["method"], rows["strength_name"], rows["strength"], strict=True):
        setting = "" if pd.isna(strength) else f"{_SYMBOLS.get(symbol, symbol)} = {strength:g}"
        names.append(method_name(method, setting))
    return names


def _in_order(found: pd.DataFrame, results: Results) -> pd.DataFrame:
    return arranged(found, results.table["data"].unique().tolist(), order)


_EXHIBITS = (
    Exhibit(
        "kumar-fig01-trade-off",
        "Disentanglement against reconstruction error",
        "Kumar et al., Figures 1 and 2",
        "A point is the median over seeds at one strength of regularisation, the number next to it (where there is "
        "room; the table of scores has all); bars are 95 % bootstrap intervals; lines join a method's strengths in "
        "order. The reconstruction error is the squared error "
        "of images decoded from mean codes; per pixel means divided by the number of pixels times channels.",
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
        "Latent traversals of the best run of each method",
        "Kumar et al., Figures 3 and 4",
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
)
