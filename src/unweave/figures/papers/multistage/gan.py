"""Figures 21-31: GANs, whose images come from codes and noise."""

from __future__ import annotations

import numpy as np

from unweave.data import Dataset
from unweave.figures.grids import Block
from unweave.figures.model_pictures import code_noise_rows, rows_of
from unweave.figures.papers.multistage.models import draw_runs, shown_runs
from unweave.figures.papers.paper import Exhibit, Picture
from unweave.figures.traversal import Traversal, traverse
from unweave.methods import GeneratesFromNoise, Method
from unweave.study import Results

_COLUMNS, _CODES, _LATENTS = 9, 5, 4
_NOISES = (0, 1)  # seeds: two draws of noise per code, as in Figure 21


def code_traversals(results: Results) -> dict[str, Picture]:
    """Each code by itself, with two draws of noise; and y where there is a first stage."""

    def blocks(method: Method, data: Dataset, heading: str) -> list[Block]:
        if not isinstance(method, GeneratesFromNoise):
            return []
        values = np.linspace(-2, 2, _COLUMNS)
        draws = [traverse(method, data, values, at_most=_LATENTS, noise_seed=seed) for seed in _NOISES]
        joined = [_joined(same_code) for same_code in zip(*draws, strict=True)]
        return [Block(heading, "", rows_of(data, joined))]

    return draw_runs(results, shown_runs(results), blocks)


def noise_grids(results: Results) -> dict[str, Picture]:
    """Codes down, noise across."""

    def blocks(method: Method, data: Dataset, heading: str) -> list[Block]:
        if not isinstance(method, GeneratesFromNoise):
            return []
        return [
            Block(heading, "codes down, noise across", code_noise_rows(method, data, 0, _CODES, _COLUMNS))
        ]

    return draw_runs(results, shown_runs(results), blocks, across=2)


def _joined(draws: tuple[Traversal, ...]) -> Traversal:
    """One code with several draws of noise; what noise does not reach is shown once."""
    first = draws[0]
    last = list(first.stages)[-1]
    stages = {name: images for name, images in first.stages.items() if name != last}
    name = last or "x"
    stages |= {f"{name}, noise {number}": draw.stages[last] for number, draw in enumerate(draws, 1)}
    return Traversal(first.label, first.detail, first.captions, stages)


EXHIBITS = (
    Exhibit(
        "multistage-fig21-gan-codes",
        "GANs: each code by itself",
        "Multi-stage modelling, Figures 21 to 31",
        "Each group of rows moves one code over its prior, with two draws of noise; y is what the first stage makes of "
        "the code alone. Noise should decide what the object is, and the code what is done with it.",
        code_traversals,
    ),
    Exhibit(
        "multistage-fig21-gan-noise",
        "GANs: codes against noise",
        "beside Multi-stage modelling, Figures 21 to 31",
        "A row has one code, a column one draw of noise; of a method with a category the rows are its values. Where a "
        "method has a first stage, y of the code comes first.",
        noise_grids,
    ),
)
