"""Figures 18-20: a Gaussian mixture and the flow on top of it."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure

from unweave import training
from unweave.analyses.stages import stage_runs
from unweave.data import Dataset
from unweave.errors import UnweaveError
from unweave.figures.grids import Block, Row
from unweave.figures.model_pictures import sample_rows
from unweave.figures.papers.models import load_model
from unweave.figures.papers.multistage.models import draw_runs, model_name, run_heading, shown_runs
from unweave.figures.papers.paper import Exhibit, Picture
from unweave.figures.style import WIDTH, data_name, new_figure, paper_style
from unweave.figures.tiles import draw_tiles
from unweave.figures.traversal import device_of, draw_images, to_observations, using
from unweave.methods import Decodes, HasCategories, HasDensity, Method, Samples
from unweave.study import NotInStudyError, Results

_ROWS, _COLUMNS = 4, 10
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_RECORD = "log_density"  # what runs log


def category_means(results: Results) -> dict[str, Picture]:
    """The expected image of each category of a method whose code is one."""

    def block(method: Method, data: Dataset, heading: str) -> list[Block]:
        if not (isinstance(method, HasDensity) and isinstance(method, HasCategories)):
            return []
        if not isinstance(method, Decodes) or len(method.categories) != 1:
            return []
        (columns,) = method.categories
        with using(method):
            means = to_observations(
                data, method.decode(torch.eye(columns.stop - columns.start, device=device_of(method)))
            )
        tiles = draw_tiles(data, [means])[0]
        rows = [Row("", "", tiles[start : start + _COLUMNS]) for start in range(0, len(tiles), _COLUMNS)]
        return [Block(heading, "", rows)]

    return draw_runs(results, shown_runs(results, staged=False), block)


def sample_comparison(results: Results) -> dict[str, Picture]:
    """Real images, samples of the first stage, and samples of the second."""
    runs = shown_runs(results, staged=True)
    folder = results.runs
    assert folder is not None
    firsts = dict(
        zip(map(run_heading, runs.itertuples()), zip(runs["first"], runs["data"], strict=True), strict=True)
    )

    def blocks(method: Method, data: Dataset, heading: str) -> list[Block]:
        if not (isinstance(method, HasDensity) and isinstance(method, Samples)):
            return []
        first, name = firsts[heading]
        earlier, _ = load_model(folder / first, name)
        real = draw_tiles(data, [draw_images(data, _ROWS * _COLUMNS, 0)])[0]
        real_rows = [Row("", "", real[start : start + _COLUMNS]) for start in range(0, len(real), _COLUMNS)]
        return [
            Block(f"{data_name(name)}: images", "", real_rows),
            Block(
                f"Samples of {model_name(earlier.spec.name, '')}",
                "",
                sample_rows(earlier, data, 0, _ROWS, _COLUMNS),
            ),
            Block(f"Samples of {heading}", "", sample_rows(method, data, 0, _ROWS, _COLUMNS)),
        ]

    return draw_runs(results, runs, blocks)


def density_curves(results: Results) -> Figure:
    """A panel per data set: the log density that second stages log during training, by what y is."""
    if results.runs is None:
        raise NotInStudyError("the study has scores only, no histories of runs")
    runs = stage_runs(results.table)
    runs = runs[runs["staged"]]
    settings = results.table.drop_duplicates("run").set_index("run")["settings"]
    curves = []
    for run in runs.itertuples():
        try:
            loaded = training.load(results.runs / str(run.run))
            method, history = loaded.method, loaded.history
        except UnweaveError:  # no history on this machine
            continue
        if isinstance(method, HasDensity) and _RECORD in history.columns:
            y_from = json.loads(settings[str(run.run)]).get("y_from", "mean")
            curves.append((str(run.data), str(y_from), history[_RECORD].dropna()))
    if not curves:
        raise NotInStudyError("the study has no second stage that is a density model")
    data = list(dict.fromkeys(name for name, *_ in curves))
    kinds = list(dict.fromkeys(kind for _, kind, _ in curves))
    with paper_style():
        figure, grid = new_figure(min(WIDTH, 3.6 * len(data)), 2.3, ncols=len(data))
        for axes, name in zip(grid[0], data, strict=True):
            for of_data, kind, density in curves:
                if of_data == name:
                    color = _COLORS[kinds.index(kind) % len(_COLORS)]
                    axes.plot(density.index, density, color=color, linewidth=0.9, alpha=0.8)
            _robust_limits(axes, pd.concat([density for of_data, _, density in curves if of_data == name]))
            axes.set(title=data_name(name), xlabel="step", ylabel="log density (nats)")
        handles: list[Any] = [
            grid[0, 0].plot([], [], color=_COLORS[number % len(_COLORS)])[0] for number in range(len(kinds))
        ]
        names = [f"y from {'the mean' if kind == 'mean' else f'a {kind}'}" for kind in kinds]
        figure.legend(handles, names, loc="outside upper center", ncols=len(names))
    return figure


def _robust_limits(axes: Any, history: pd.Series[float]) -> None:
    """Leave out the first steps, whose densities are so low that nothing else could be seen."""
    low, high = history.quantile([0.05, 1.0])
    axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))


EXHIBITS = (
    Exhibit(
        "multistage-fig18-mixture",
        "The means of the mixture's components",
        "Multi-stage modelling, Figure 18",
        "The expected image of each value of c.",
        category_means,
    ),
    Exhibit(
        "multistage-fig19-flow-samples",
        "Images, samples of the mixture, and samples of the flow",
        "Multi-stage modelling, Figure 19",
        "Not chosen: the first samples of each model.",
        sample_comparison,
    ),
    Exhibit(
        "multistage-fig20-flow-training",
        "Log density during training, with y from means and from draws",
        "Multi-stage modelling, Figure 20",
        "A line is a run: the log density of the second stage's images given y, on its training batches. The lowest "
        "5 % of the values, those of the first steps, are below the axis.",
        density_curves,
    ),
)
