"""Figures 3 and 4 of Yang et al. (2020): InfoGAN's codes, and its losses, with a factorised and a correlated Q."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from unweave import training
from unweave.data import Dataset
from unweave.errors import ArgumentError, UnweaveError
from unweave.figures.grids import Block, Row, paper_grid
from unweave.figures.model_pictures import rows_of
from unweave.figures.papers.models import load_model
from unweave.figures.papers.paper import Exhibit, Picture
from unweave.figures.style import WIDTH, data_name, method_name, method_order, new_figure, paper_style
from unweave.figures.tiles import draw_tiles
from unweave.figures.traversal import device_of, to_observations, traverse, using
from unweave.methods import GeneratesFromNoise, HasCategories, Method
from unweave.study import NotInStudyError, Results

_SPAN, _SIDE = 2.0, 7  # Figure 3 varies both codes over [-2, 2]
_STRENGTH = "correlation"  # the hyperparameter of Q
_SEED = 0
# What runs log of a discriminator or a critic, of the generator, and of Q.
_CURVES = {
    "discriminator_loss": ("discriminator", "#0072B2"),
    "critic_loss": ("critic", "#0072B2"),
    "generator": ("generator", "#E69F00"),
    "categorical": ("−log Q of the category", "#009E73"),
    "continuous": ("−log Q of the continuous codes", "#CC79A7"),
}


def code_grids(results: Results) -> dict[str, Picture]:
    """Per data set and method, for each σ: the first continuous code across, the second down, both over [-2, 2]."""
    return _pictures(results, _grid_block)


def category_rows(results: Results) -> dict[str, Picture]:
    """Per data set and method, for each σ: each value of the category with the same continuous codes and noise."""
    return _pictures(results, _category_block)


def loss_curves(results: Results) -> Figure:
    """A row per data set and method, a panel per σ: the losses of the players and of Q against the step."""
    runs = _runs(results)
    assert results.runs is not None
    curves = []
    for run in runs.itertuples():
        try:
            history = training.load(results.runs / str(run.run)).history
        except UnweaveError:  # no history on this machine
            continue
        if any(name in history.columns for name in _CURVES):
            curves.append(
                (
                    f"{data_name(str(run.data))}, {method_name(str(run.method))}",
                    float(str(run.strength)),
                    history,
                )
            )
    if not curves:
        raise NotInStudyError("the study has no history of an adversarial run")
    if all(len(history) < 2 for *_, history in curves):
        raise NotInStudyError("the study's histories have a single step: a curve of it would be a dot")
    rows = list(dict.fromkeys(row for row, *_ in curves))
    levels = sorted({level for _, level, _ in curves})
    shown = [name for name in _CURVES if any(name in history.columns for *_, history in curves)]
    with paper_style():
        figure, grid = new_figure(
            min(WIDTH, 0.6 + 3.1 * len(levels)),
            0.6 + 1.9 * len(rows),
            nrows=len(rows),
            ncols=len(levels),
            sharex=True,
            sharey="row",
        )
        for row, level, history in curves:
            axes = grid[rows.index(row), levels.index(level)]
            for name in shown:
                if name in history.columns:
                    known = history[name].dropna()
                    axes.plot(known.index, known, color=_CURVES[name][1], linewidth=0.9)
            axes.set_title(f"{row}, σ = {level:g}")
        for axes in grid[:, 0]:
            axes.set_ylabel("loss")
        for axes in grid[-1]:
            axes.set_xlabel("step")
        handles = [Line2D([], [], color=_CURVES[name][1], label=_CURVES[name][0]) for name in shown]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


def _runs(results: Results) -> pd.DataFrame:
    """One run per data set, method and σ: that of the smallest seed."""
    runs = results.table.drop_duplicates("run")
    runs = runs[(runs["strength_name"] == _STRENGTH) & runs["strength"].notna()]
    if runs.empty:
        raise NotInStudyError("the study has no InfoGAN, which has a correlation of Q")
    if results.runs is None:
        raise NotInStudyError("the study has scores only, no trained models")
    order = runs["method"].map(lambda name: method_order(name)[0])
    runs = runs.assign(order=order).sort_values(["order", "strength", "seed"], kind="stable")
    return runs.drop_duplicates(["data", "method", "strength"])


def _pictures(results: Results, block: Callable[[Method, Dataset, str], Block]) -> dict[str, Picture]:
    """A picture per data set, of one block per run."""
    runs = _runs(results)
    assert results.runs is not None
    blocks: dict[str, list[Block]] = {}
    problems: dict[str, list[str]] = {}
    for run in runs.itertuples():
        name = str(run.data)
        heading = f"{data_name(name)}, {method_name(str(run.method))}, σ = {run.strength:g} (seed {run.seed})"
        try:
            method, data = load_model(results.runs / str(run.run), name)
            blocks.setdefault(name, []).append(block(method, data, heading))
        except UnweaveError as error:
            problems.setdefault(name, []).append(f"{heading}: {error}")
    shown = {name: of_data for name, of_data in blocks.items() if of_data}
    if not shown:
        reasons = "; ".join(problem for of_data in problems.values() for problem in of_data)
        raise NotInStudyError(f"no model can be shown: {reasons}")
    return {
        name: paper_grid(
            of_data, across=2, note=f"Not shown: {'; '.join(problems[name])}" if name in problems else ""
        )
        for name, of_data in shown.items()
    }


def _grid_block(method: Method, data: Dataset, heading: str) -> Block:
    if not isinstance(method, GeneratesFromNoise):
        raise ArgumentError("method", method.spec.name, "does not generate images from codes and noise")
    values = np.linspace(-_SPAN, _SPAN, _SIDE)
    with using(method):
        codes, noise = method.sample_inputs(1, torch.Generator(device_of(method)).manual_seed(_SEED))
        categories = method.categories if isinstance(method, HasCategories) else ()
        taken = {column for one in categories for column in range(one.start, one.stop)}
        across, down, *_ = [*(c for c in range(codes.shape[1]) if c not in taken), None, None]
        if across is None or down is None:
            raise ArgumentError("method", method.spec.name, "has fewer than two continuous codes")
        groups = []
        for value in values:
            moved = codes.repeat(_SIDE, 1)
            moved[:, across] = torch.as_tensor(values).to(moved)
            moved[:, down] = float(value)
            groups.append(to_observations(data, method.generate(moved, noise.expand(_SIDE, -1))))
    tiles = draw_tiles(data, groups)
    captions = [f"{value:.1f}" for value in values]
    rows = [
        Row(f"{value:.1f}", "", row, captions if row is tiles[-1] else ())
        for value, row in zip(values, tiles, strict=True)
    ]
    return Block(heading, f"code c{across} across, c{down} down", rows)


def _category_block(method: Method, data: Dataset, heading: str) -> Block:
    if not (isinstance(method, HasCategories) and method.categories):
        raise ArgumentError("method", method.spec.name, "has no code that is a category")
    draws = [
        traverse(method, data, [0.0], latents=[method.categories[0].start], noise_seed=seed)[0]
        for seed in range(4)
    ]
    rows = [row for draw in draws for row in rows_of(data, [draw])]
    last = len(rows) - 1
    named = [
        Row(f"noise {index + 1}", "", row.tiles, row.captions if index == last else ())
        for index, row in enumerate(rows)
    ]
    return Block(heading, "", named)


EXHIBITS = (
    Exhibit(
        "yang-fig03-infogan-codes",
        "Continuous codes of InfoGAN with a factorised and a correlated Q",
        "Yang et al., Figure 3",
        "The first continuous code goes across and the second down, both from -2 to 2; the category and the noise are "
        "the same for all images of a block. Codes were drawn from [-1, 1] in training. The run with the smallest "
        "seed at each σ, the correlation of Q.",
        code_grids,
    ),
    Exhibit(
        "yang-fig03-infogan-categories",
        "Categories of InfoGAN with a factorised and a correlated Q",
        "beside Yang et al., Figure 3",
        "A column has one value of the category, a row one draw of the noise; the continuous codes are the same.",
        category_rows,
    ),
    Exhibit(
        "yang-fig04-infogan-losses",
        "Losses of InfoGAN in training",
        "Yang et al., Figure 4",
        "Of the same runs: the losses of the discriminator and of the generator, and −log Q of the codes.",
        loss_curves,
    ),
)
