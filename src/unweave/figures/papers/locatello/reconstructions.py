"""Figure 1: what random models of a study make of images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from unweave.analyses.variants import with_variant
from unweave.errors import ArgumentError, DataError
from unweave.figures.grids import Block, Row, paper_grid
from unweave.figures.model_pictures import reconstruction_rows
from unweave.figures.papers.models import load_autoencoder
from unweave.figures.papers.paper import Exhibit
from unweave.figures.style import data_name, method_name
from unweave.study import NotInStudyError, Results

_PAIRS = 6
_SEED = 0


def _reconstructions(results: Results) -> Figure:
    if results.runs is None:
        raise NotInStudyError("the study has scores only, no trained models")
    rng = np.random.default_rng(_SEED)
    rows, problems = [], []
    for data, runs in with_variant(results.table.drop_duplicates("run")).groupby("data", sort=False):
        run = runs.iloc[int(rng.integers(len(runs)))]
        strength = "" if np.isnan(run["strength"]) else f", {run['strength_name']} = {run['strength']:g}"
        try:
            tiles = _pairs(results.runs / str(run["run"]), str(data))
        except (
            DataError,
            ArgumentError,
        ) as error:  # no weights, no data files, no known name, or not an autoencoder
            problems.append(str(error))
            continue
        detail = f"{method_name(run['method'], run['variant'])}{strength}, seed {run['seed']}"
        rows.append(Row(data_name(str(data)), detail, tiles))
    if not rows:
        raise NotInStudyError(f"no model can be shown: {'; '.join(problems)}")
    return paper_grid([Block("", "", rows)], note=f"Not shown: {'; '.join(problems)}" if problems else "")


def _pairs(folder: Path, name: str) -> list[Image.Image]:
    """Image, reconstruction, image, reconstruction, …"""
    method, data = load_autoencoder(folder, name)
    above, *_, below = (row.tiles for row in reconstruction_rows(method, data, _SEED, _PAIRS))
    return [tile for pair in zip(above, below, strict=True) for tile in pair]


EXHIBITS = (
    Exhibit(
        "locatello-fig01-reconstructions",
        "Reconstructions on each data set",
        "Locatello et al., Figure 1",
        "Each row is one run, drawn at random from all runs on the data set. Odd columns are random images, even "
        "columns what the model makes of them: decoded from the mean code.",
        _reconstructions,
    ),
)
