"""Pictures of a run: how training went, and what the method does at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from unweave.errors import ArgumentError
from unweave.figures.model_pictures import (
    can_reconstruct,
    codes_and_noise,
    reconstructions,
    samples,
    save_traversal_animation,
    traversals,
)
from unweave.figures.picture_files import save_picture
from unweave.figures.traversal import can_traverse
from unweave.methods import GeneratesFromNoise, Samples
from unweave.training import Callback, Run

_LATENTS = 20  # of each part of a code are shown


class Pictures(Callback):
    """Writes pictures into the run directory when training ends.

    Loss curves for every method; for one that encodes and decodes, reconstructions and latent traversals (PNG and GIF);
    for one that samples, samples; for one that generates from codes and noise, traversals and codes against noise.
    ``train`` calls it unless it is given ``pictures=False``.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> run = uw.train(method, data, steps=1, out="run", pictures=False)
    >>> uw.figures.Pictures().on_end(run)
    >>> sorted(path.name for path in run.path.glob("*.*") if path.suffix in (".png", ".gif"))
    ['loss_curves.png', 'reconstructions.png', 'samples.png', 'traversals.gif', 'traversals.png']
    """

    def on_end(self, run: Run) -> None:
        """Draw what the run's method, directory and data allow."""
        for path, draw in self._pictures(run).items():
            draw(path)

    def on_already_finished(self, run: Run) -> None:
        """Draw what is missing: the process that trained the run may have been killed before it drew all."""
        for path, draw in self._pictures(run).items():
            if not path.exists():
                draw(path)

    def on_names(self, run: Run) -> None:
        """Draw again what shows the names of latents, where it was drawn before."""
        for path, draw in self._pictures(run).items():
            if path.stem == "traversals" and path.exists():
                draw(path)

    def _pictures(self, run: Run) -> dict[Path, Callable[[Path], Path]]:
        """How each picture is drawn, by its path."""
        if run.path is None or run.data is None:
            return {}
        method, data = run.method, run.data
        pictures: dict[str, Callable[[Path], Path]] = {}
        if can_reconstruct(method):
            pictures["reconstructions.png"] = lambda path: save_picture(reconstructions(method, data), path)
        if can_traverse(method):
            pictures["traversals.png"] = lambda path: save_picture(
                traversals(method, data, at_most=_LATENTS, names=run.names), path
            )
            pictures["traversals.gif"] = lambda path: save_traversal_animation(
                method, data, path, at_most=_LATENTS, names=run.names
            )
        if isinstance(method, Samples):
            pictures["samples.png"] = lambda path: save_picture(samples(method, data), path)
        if isinstance(method, GeneratesFromNoise):
            pictures["codes_and_noise.png"] = lambda path: save_picture(codes_and_noise(method, data), path)
        if run.records:
            title = f"{run.spec.method.name} on {data.name}"
            pictures["loss_curves.png"] = lambda path: save_picture(loss_curves(run.records, title), path)
        return {run.path / name: draw for name, draw in pictures.items()}


def loss_curves(records: Sequence[Mapping[str, float]], title: str) -> Image.Image:
    """Every logged value against the step, one small plot each.

    Parameters
    ----------
    records
        what was logged, in order: ``run.records``.
    title
        of the picture.

    Returns
    -------
    PIL.Image.Image
        the picture.

    Examples
    --------
    >>> uw.figures.loss_curves([{"step": 10, "loss": 4.0}, {"step": 20, "loss": 2.0}], "A run").size
    (396, 308)
    """
    if not records:
        raise ArgumentError("records", [], "has no records to plot")
    names = [name for name in records[-1] if name not in ("step", "images_per_second")]
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(3.6 * columns, 0.4 + 2.4 * rows), dpi=110, layout="constrained")
    figure.suptitle(title, fontsize=11)
    canvas: Any = FigureCanvasAgg(figure)
    for index, name in enumerate(names):
        axes = figure.add_subplot(rows, columns, index + 1)
        points = [(record["step"], record[name]) for record in records if name in record]
        axes.plot(
            *zip(*points, strict=True), color="#0072b2", linewidth=1.3, marker="." if len(points) < 3 else ""
        )
        axes.set_title(name, fontsize=9)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
