"""A run as a notebook shows it: what it is, how far it got, a few of its images."""

from __future__ import annotations

import base64
import io
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from unweave.arrays import AnyArray
from unweave.errors import DataError
from unweave.methods.method import Decodes, Encodes, Samples
from unweave.training.score_file import SCORES, ScoreFile

if TYPE_CHECKING:
    from unweave.training.run import Run

_COLUMNS = 8
_TILE = 64  # pixels; smaller images are enlarged by a whole factor


def run_card(run: Run) -> str:
    """A run as HTML: a table of facts, and images with their reconstructions, or samples.

    Reconstructions need the data set, which a run has in the process that trained it; a run that was loaded shows
    samples. Every text is escaped: names in a run directory of somebody else stay text.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="a<b")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> card = run_card(uw.train(method, data, steps=1))
    >>> "a&lt;b" in card, card.count("data:image/png;base64,")
    (True, 1)
    """
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in _facts(run).items()
    )
    return f"<table>{rows}</table>{_picture(run)}"


def _facts(run: Run) -> dict[str, str]:
    spec = run.spec
    settings = ", ".join(f"{name} = {value}" for name, value in spec.method.hyperparameters.items())
    facts = {
        "method": f"{spec.method.name} ({settings})" if settings else spec.method.name,
        "data": str(spec.data["name"]),
        "steps": f"{run.step:,} of {spec.steps:,}, batches of {spec.batch_size}, seed {spec.seed}",
    }
    if run.records:
        last = {name: value for name, value in run.records[-1].items() if name != "step"}
        facts["last record"] = ", ".join(f"{name} {value:,.4g}" for name, value in last.items())
    if run.problems:
        facts["problems"] = "; ".join(run.problems)
    if run.path is not None:
        facts["directory"] = str(run.path)
        facts |= _scores(run.path / SCORES)
    return facts


def _scores(folder: Path) -> dict[str, str]:
    """The scores that a study has left in a run's directory."""
    scores = []
    for path in sorted(folder.glob("*.json")):
        try:
            metric, representation, value = ScoreFile.read(path).rows[0]
            scores.append(f"{metric} ({representation}) {value:.3f}")
        except (DataError, ValueError, TypeError, LookupError):
            continue  # a display does not fail on a file that is no score
    return {"scores": ", ".join(sorted(scores))} if scores else {}


def _picture(run: Run) -> str:
    if len(run.spec.method.image_shape) != 3 or run.spec.method.image_shape[2] not in (1, 3):
        return ""
    if run.data is not None and isinstance(run.method, Encodes) and isinstance(run.method, Decodes):
        rng = np.random.default_rng(0)
        which = (
            run.data.sample_rows(_COLUMNS, rng) if run.data.finite else run.data.sample_factors(_COLUMNS, rng)
        )
        images = run.data.images(which, rng)
        reconstructions = run.decode(run.encode(images))
        return _image([images, reconstructions], "images above, their reconstructions below")
    if isinstance(run.method, Samples):
        return _image([run.sample(_COLUMNS)], "samples")
    return ""


def _image(rows: list[AnyArray], caption: str) -> str:
    """Rows of images as one embedded PNG, with its caption."""
    grid = np.concatenate([np.concatenate(list(_to_bytes(row)), axis=1) for row in rows])
    factor = max(1, -(-_TILE // (grid.shape[0] // len(rows))))
    grid = grid.repeat(factor, axis=0).repeat(factor, axis=1)
    buffer = io.BytesIO()
    Image.fromarray(grid[..., 0] if grid.shape[2] == 1 else grid).save(buffer, "PNG")
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return f"<figure><img src='data:image/png;base64,{encoded}'><figcaption>{caption}</figcaption></figure>"


def _to_bytes(images: AnyArray) -> AnyArray:
    return images if images.dtype == np.uint8 else np.rint(np.clip(images, 0, 1) * 255).astype(np.uint8)
