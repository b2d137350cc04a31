"""Figures 15 and 16: stages on a simulator, whose observations are curves and whose factors are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy.stats import spearmanr
from torch import Tensor

from unweave.analyses.stages import stage_runs
from unweave.arrays import AnyArray
from unweave.data import Dataset
from unweave.data.batches import to_tensor
from unweave.errors import UnweaveError
from unweave.figures.papers.models import load_model
from unweave.figures.papers.multistage.models import run_heading, shown_runs
from unweave.figures.papers.paper import Exhibit
from unweave.figures.style import WIDTH, data_name, new_figure, paper_style
from unweave.figures.traversal import decode_stages, device_of, to_observations, using
from unweave.methods import Decodes, Encodes, EncodesWithLabels, Method
from unweave.study import NotInStudyError, Results

_VALUES = 5  # of a factor
_POINTS = 500  # of Figure 16
_MOST_RUNS = 6
_SIMULATED, _MODEL = "#0072B2", "#D55E00"
_MOVED = 1e-6


def factor_curves(results: Results) -> dict[str, Figure]:
    """Per data set a row per factor: the simulator's curves, and the model's when only the factor's code moves."""
    runs = shown_runs(results, staged=True)
    figures = {}
    for run, method, data in _curve_models(results, runs):
        names = data.space.continuous
        with paper_style():
            figure, grid = new_figure(
                WIDTH, 0.5 + 1.05 * len(names), nrows=len(names), ncols=_VALUES, sharex=True, sharey=True
            )
            for row, name in zip(grid, names, strict=True):
                factors = _varied(data, name, _VALUES)
                simulated = data.images(factors, np.random.default_rng(0)).reshape(_VALUES, -1)
                part, modelled = _follow(method, data, factors)
                values = factors[:, data.space.position(name)]
                for axes, value, truth, guess in zip(row, values, simulated, modelled, strict=True):
                    axes.plot(truth, color=_SIMULATED, linewidth=1.1)
                    axes.plot(guess.reshape(-1), color=_MODEL, linewidth=1.1, linestyle="--")
                    axes.set_title(f"{name.replace('_', ' ')} {value:.2g}")
                row[0].set_ylabel(f"{part} moves")
            lines = [grid[0, 0].plot([], [], color=color, linestyle=line)[0]
                     for color, line in ((_SIMULATED, "-"), (_MODEL, "--"))]  # fmt: skip
            labels = ["simulator", run_heading(run)]
            figure.legend(lines, labels, loc="outside upper center", ncols=2)
        figures[str(run.data)] = figure
    return figures


def unseen_factor(results: Results) -> Figure:
    """A panel per run: the z that goes best with a factor that c does not have, against that factor."""
    if results.runs is None:
        raise NotInStudyError("the study has scores only, no trained models")
    runs = stage_runs(results.table)
    # The first stages of a chain are stages too; z is what the last one adds.
    runs = runs[runs["staged"] & ~runs["run"].isin(runs["first"])].head(_MOST_RUNS)
    panels = []
    for run, method, data in _curve_models(results, runs):
        factors = data.sample_factors(_POINTS, np.random.default_rng(0))
        with using(method):
            codes = _codes(method, data, factors)
        z = codes[:, method.parts["z"]].cpu().numpy()
        for name in _unseen(method, data):
            values = factors[:, data.space.position(name)]
            correlations = [float(spearmanr(column, values).statistic) for column in z.T]
            best = int(np.nanargmax(np.abs(correlations)))
            panels.append((run, name, values, z[:, best], best, correlations[best]))
    if not panels:
        raise NotInStudyError("the study has no model whose c lacks a factor of its data")
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    with paper_style():
        figure, grid = new_figure(
            min(WIDTH, 0.3 + 2.3 * columns), 0.2 + 2.0 * lines, nrows=lines, ncols=columns
        )
        for axes in grid.ravel()[len(panels) :]:
            axes.set_visible(False)
        for axes, (run, name, values, column, index, correlation) in zip(grid.ravel(), panels, strict=False):
            axes.scatter(values, column, s=4, color=_SIMULATED, alpha=0.6, linewidths=0, rasterized=True)
            axes.set(xlabel=name.replace("_", " "), ylabel=f"mean of z{index}")
            text = f"{data_name(str(run.data))}, seed {run.seed}: ρ = {correlation:.3f}".replace("-", "−")
            axes.set_title(text)
    return figure


def _curve_models(results: Results, runs: pd.DataFrame):  # type: ignore[no-untyped-def]
    """Runs whose observations are curves of continuous factors, with their methods and data."""
    assert results.runs is not None
    shown, problems = [], []
    for run in runs.itertuples():
        try:
            method, data = load_model(results.runs / str(run.run), str(run.data))
        except UnweaveError as error:
            problems.append(f"{run_heading(run)}: {error}")
            continue
        suits = (
            isinstance(method, Encodes) and isinstance(method, Decodes) and {"c", "z"} <= set(method.parts)
        )
        if suits and not data.is_images and data.space.continuous:
            shown.append((run, method, data))
    if not shown:
        reason = f" ({'; '.join(problems)})" if problems else ""
        raise NotInStudyError(f"the study has no stages on curves of continuous factors{reason}")
    return shown


def _varied(data: Dataset, name: str, n: int) -> AnyArray:
    """Factors (n, K) of which one goes over its range and the others are in the middle of theirs."""
    ranges = np.array([size if isinstance(size, tuple) else (0, size - 1) for size in data.space.sizes])
    factors = np.tile(ranges.mean(axis=1), (n, 1))
    position = data.space.position(name)
    low, high = ranges[position]
    factors[:, position] = np.linspace(low, high, n)
    return factors


def _codes(method: Method, data: Dataset, factors: AnyArray) -> Tensor:
    """Mean codes of the observations of factors, with their labels where the encoder takes some."""
    images = to_tensor(data.images(factors, np.random.default_rng(0))).to(device_of(method))
    if isinstance(method, EncodesWithLabels):
        u = torch.as_tensor(method.labels_for(data).of(factors)).to(images)
        return method.posterior(images, "given", u).mean
    assert isinstance(method, Encodes)
    return method.encode(images).mean


def _follow(method: Method, data: Dataset, factors: AnyArray) -> tuple[str, AnyArray]:
    """Which part of the code a factor moves, c if it does, and the model's curves when only that part moves."""
    assert isinstance(method, Encodes)
    with using(method):
        codes = _codes(method, data, factors)
        middle = codes[len(codes) // 2]
        c = method.parts["c"]
        part = "c" if float((codes[:, c] - middle[c]).abs().max()) > _MOVED else "z"
        moved = middle.expand_as(codes).clone()
        moved[:, method.parts[part]] = codes[:, method.parts[part]]
        return part, to_observations(data, list(decode_stages(method, moved).values())[-1])


def _unseen(method: Method, data: Dataset) -> list[str]:
    """The continuous factors that do not move c."""
    return [name for name in data.space.continuous if _follow(method, data, _varied(data, name, 3))[0] == "z"]


EXHIBITS = (
    Exhibit(
        "multistage-fig15-pendulum",
        "Each factor by itself: simulator and model",
        "Multi-stage modelling, Figure 15",
        "In each row one factor goes over its range and the others stay in the middle of theirs. Of the model only the "
        "part of the code moves that is named at the left: c, which holds the known factors, or z at the mean codes of "
        "the curves above, for a factor that c does not know.",
        factor_curves,
    ),
    Exhibit(
        "multistage-fig16-unseen-factor",
        "z against the factor that c does not know",
        "Multi-stage modelling, Figure 16",
        "Posterior means of 500 observations; ρ is the rank correlation. Where z has several latents, the one that "
        "goes best with the factor. At most six runs are shown.",
        unseen_factor,
    ),
)
