"""The calls at the top of the package, which join several rooms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unweave.data import Dataset
from unweave.methods import VAE
from unweave.training import Callback, Run
from unweave.training import train as _train


def train(
    method: VAE,
    data: Dataset,
    steps: int,
    batch_size: int = 64,
    learning_rate: float = 1e-4,
    seed: int = 0,
    device: str = "auto",
    out: Path | str | None = None,
    callbacks: Sequence[Callback] = (),
    *,
    pictures: bool = True,
    **options: Any,
) -> Run:
    """Train a method: :func:`unweave.training.train`, whose ``options`` it takes, and pictures at the end.

    With ``out`` and ``pictures``, the run directory also gets reconstructions, latent traversals (PNG and
    GIF) and loss curves.
    """
    listeners = [*callbacks, Pictures(data)] if out is not None and pictures else list(callbacks)
    return _train(method, data, steps, batch_size, learning_rate, seed, device, out, listeners, **options)


class Pictures(Callback):
    """Writes pictures of the model into the run directory when the run ends."""

    def __init__(self, data: Dataset) -> None:
        self.data = data

    def on_end(self, run: Run) -> None:
        """Draw reconstructions, traversals and loss curves."""
        from unweave.figures import save_picture
        from unweave.figures.latent import loss_curves, reconstructions, save_traversal_animation, traversals

        if run.path is None:
            return
        save_picture(reconstructions(run.method, self.data), run.path / "reconstructions.png")
        save_picture(traversals(run.method, self.data), run.path / "traversals.png")
        save_traversal_animation(run.method, self.data, run.path / "traversals.gif")
        title = f"{run.spec.method.name} on {self.data.name}"
        save_picture(loss_curves(run.history, title), run.path / "loss_curves.png")
