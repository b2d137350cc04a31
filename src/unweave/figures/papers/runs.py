"""What the models of a study do: their traversals, how their training went, and the list of runs."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from unweave.analyses.runs import DISENTANGLEMENT_METRICS, best_runs
from unweave.analyses.variants import method_variants, with_variant
from unweave.errors import UnweaveError
from unweave.figures.grids import Block, paper_grid
from unweave.figures.model_pictures import start_row, traversal_rows
from unweave.figures.papers.models import load_autoencoder
from unweave.figures.papers.panels import panels_in_turn
from unweave.figures.papers.paper import Exhibit, Paper
from unweave.figures.papers.plots import method_keys
from unweave.figures.papers.tables import setting_column, sort_rows
from unweave.figures.style import data_name, method_styles, metric_name, paper_style
from unweave.study import NotInStudyError, Results
from unweave.training.history import read_history

_LATENTS, _COLUMNS, _METHODS = 5, 9, 8  # of a model, of a row, of a data set
_LISTED = 3  # metrics in the list of runs


def traversals_of_best(results: Results) -> dict[str, Figure]:
    """Per data set the traversals of the best run of each method, each from a real image."""
    if results.runs is None:
        raise NotInStudyError("traversals need the trained models; the study has scores only")
    table = results.table
    metric = _first_metric(table)
    if metric is None:
        chosen = with_variant(table.drop_duplicates("run")).drop_duplicates(["data", "method", "variant"])
    else:
        chosen = best_runs(table, metric)
    blocks: dict[str, list[Block]] = {}
    problems: list[str] = []
    rows = sort_rows(chosen, table["data"].unique().tolist())
    for name, run, setting, value in zip(
        rows["data"], rows["run"], setting_column(rows), rows["value"], strict=True
    ):
        of_data = blocks.setdefault(name, [])
        if len(of_data) == _METHODS:
            continue
        try:
            model, images = load_autoencoder(results.runs / run, name)
        except UnweaveError as error:  # no weights, no data files, no decoder
            problems.append(f"{setting}: {error}")
            continue
        about = "" if metric is None else f"{metric_name(metric)} {value:.3f}"
        first = replace(start_row(model, images, 0, None), label="image", detail="and model's", captions=())
        latents = traversal_rows(model, images, columns=_COLUMNS, at_most=_LATENTS)
        of_data.append(Block(f"{data_name(name)}, {setting}", about, [first, *latents]))
    shown = {name: of_data for name, of_data in blocks.items() if of_data}
    if not shown:
        raise NotInStudyError(f"no model can be shown: {'; '.join(problems[:3])}")
    return {name: paper_grid(of_data, across=2) for name, of_data in shown.items()}


def loss_figure(results: Results) -> Figure:
    """A panel per data set: the loss of each run against its step."""
    if results.runs is None:
        raise NotInStudyError("loss curves need the runs; the study has scores only")
    runs = with_variant(results.table.drop_duplicates("run"))
    curves: dict[str, list[tuple[tuple[str, str], pd.DataFrame]]] = {}
    for row, pair in zip(runs.itertuples(), method_keys(runs), strict=True):
        records = read_history(results.runs / str(row.run) / "history.jsonl")
        losses = pd.DataFrame([record for record in records if "loss" in record], columns=["step", "loss"])
        if len(losses) > 1:
            curves.setdefault(str(row.data), []).append((pair, losses))
    if not curves:
        raise NotInStudyError("no run has two records of its loss")
    methods = method_variants(runs)
    styles = method_styles(methods)
    with paper_style():
        figure, panels = panels_in_turn(
            [data_name(name) for name in curves],
            columns=3,
            height=1.6,
            gaps=(0.36, 0.5),
            ticks=0.3,
            methods=methods,
            note="each line: one run",
            xlabel="step",
            ylabel="loss",
        )
        for panel, of_data in zip(panels, curves.values(), strict=True):
            for pair, losses in of_data:
                panel.plot(
                    losses["step"], losses["loss"], color=styles[pair]["color"], linewidth=0.7, alpha=0.7
                )
    return figure


def list_of_runs(results: Results) -> pd.DataFrame:
    """A row per run: what it is of, its directory, and the first of its scores."""
    runs = sort_rows(
        with_variant(results.table.drop_duplicates("run")), results.table["data"].unique().tolist()
    )
    listed = pd.DataFrame(
        {
            "Run": runs["run"],
            "Data set": runs["data"].map(data_name),
            "Method": setting_column(runs),
            "Seed": runs["seed"],
            "Steps": runs["steps"],
        }
    )
    known = [name for name in DISENTANGLEMENT_METRICS if name in set(results.table["metric"])]
    for metric in known[:_LISTED]:
        rows = results.table[results.table["metric"] == metric]
        rows = rows[rows["labels"] != "given"]
        values = rows.sort_values("representation").drop_duplicates("run").set_index("run")["value"]
        listed[metric_name(metric)] = runs["run"].map(values)
    return listed


def _first_metric(table: pd.DataFrame) -> str | None:
    known = set(table["metric"])
    return next((name for name in ("mig", "sap", *DISENTANGLEMENT_METRICS) if name in known), None)


_EXHIBITS = (
    Exhibit(
        "runs-traversals",
        "What the models do",
        "this study",
        "Of each method the run with the best score (MIG, or the first that the study has). The first row is an image "
        f"of the data set and its reconstruction; below, from its code, the {_LATENTS} latents with the largest KL "
        "move one at a time. The best of many runs is no typical run: the list below has all.",
        traversals_of_best,
    ),
    Exhibit(
        "runs-losses",
        "How training went",
        "this study",
        "The loss of every run against its step. Losses of different methods have different terms: only lines of one "
        "colour compare.",
        loss_figure,
    ),
    Exhibit(
        "runs-list",
        "All runs",
        "this study",
        "A run's name is that of its directory. Scores are of mean codes where there are such.",
        list_of_runs,
    ),
)
PAPER = Paper("The runs", _EXHIBITS)
