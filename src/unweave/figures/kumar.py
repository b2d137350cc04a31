"""The figures and tables of Kumar et al. (2018), from any study."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from unweave import data as data_sets
from unweave.errors import UnweaveError
from unweave.figures.exhibits import Exhibit
from unweave.figures.latent import traversals
from unweave.figures.sheet import Row, compose
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
from unweave.study.analyses import kumar
from unweave.study.analyses.summaries import arranged, spelled, spelled_column
from unweave.training import load_run
from unweave.training.run import SPEC
from unweave.training.spec import RunSpec

_SYMBOLS = {"beta": "β", "gamma": "γ", "lambda_od": "λ_od", "c_max": "C"}
_SHOWN = 12  # attributes in the paper's table 2


def trade_off(results: Results) -> Figure:
    """Scores against the reconstruction error: a line per method, a point per strength, which it is labelled with."""
    sizes = values_per_image(results)
    found = results.analysed(kumar.trade_off, values_per_image=sizes)
    scores = [score for score in kumar.SCORES if score in found]
    data = [name for name in results.table["data"].unique() if name in set(found["data"])]
    looks = look(found["method"])
    with paper_style():
        figure, grid = new_figure(
            WIDTH, 0.45 + 2.1 * len(data), nrows=len(data), ncols=len(scores), sharex="row"
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
    attributes = found.columns[4 : 4 + _SHOWN]
    rows = pd.DataFrame({"Data set": found["data"].map(data_name), "Method": _settings(found)})
    for attribute in attributes:
        rows[attribute.replace("_", " ")] = (100 * found[attribute]).round(1)
    return rows


def best_traversals(
    results: Results, data: str | None = None, metric: str = "sap", columns: int = 9
) -> Image.Image:
    """Traversals of the best run of each method on one data set: ``data``, else dSprites, else the study's first."""
    if results.runs is None:
        raise NotInStudyError("traversals need the trained models; the study has scores only")
    best = kumar.best_runs(results.table, metric)
    known = best["data"].unique().tolist()
    name = data or ("dsprites" if "dsprites" in known else known[0])
    best = _in_order(best[best["data"] == name], results)
    if best.empty:
        raise NotInStudyError(f"the study has no {metric_name(metric)} on {name}")
    try:
        models = [load_run(results.runs / run).method for run in best["run"]]
        images = data_sets.load(name)
    except UnweaveError as error:
        raise NotInStudyError(f"the best runs on {name} cannot be shown: {error}") from error
    pictures = [traversals(model, images, columns=columns) for model in models]
    captions = [
        f"{setting}: {metric_name(metric)} {value:.3f}"
        for setting, value in zip(_settings(best), best["value"], strict=True)
    ]
    rows = [Row("", "", pictures[i : i + 2], captions[i : i + 2]) for i in range(0, len(pictures), 2)]
    return compose(f"{data_name(name)}: of each method the run with the best {metric_name(metric)}", rows)


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
    for *point, strength in points.dropna(subset="strength")[["error", score, "strength"]].to_numpy():
        label = {"text": f"{strength:g}", "color": style["color"], "fontsize": 5.5}
        text = axes.annotate(xy=point, xytext=(3, 2.5), textcoords="offset points", **label)
        text.set_in_layout(False)  # hundreds of them would slow the layout down


def _settings(rows: pd.DataFrame) -> list[str]:
    """ "β-VAE (β = 4)" for each row."""
    names = []
    for method, symbol, strength in zip(rows["method"], rows["strength_name"], rows["strength"], strict=True):
        setting = "" if pd.isna(strength) else f"{_SYMBOLS.get(symbol, symbol)} = {strength:g}"
        names.append(method_name(method, setting))
    return names


def _in_order(found: pd.DataFrame, results: Results) -> pd.DataFrame:
    return arranged(found, results.table["data"].unique().tolist(), order)


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "kumar-fig01-trade-off",
        "Disentanglement against reconstruction error",
        "Kumar et al., Figures 1 and 2",
        "A point is the median over seeds at one strength of regularisation, the number next to it; bars are 95 % "
        "bootstrap intervals; lines join a method's strengths in order. The reconstruction error is the squared error "
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
        "Each row moves one latent from -2 to 2 and leaves the others at the code of one image; latents with the "
        "largest KL first.",
        best_traversals,
    ),
    Exhibit(
        "kumar-table2-attributes",
        "Attribute classification",
        "Kumar et al., Table 2",
        "Median accuracy over seeds in per cent, for the attributes on which the rows differ most.",
        attribute_table,
    ),
)
