"""Pictures of a model in its run directory, drawn when training ends."""

from __future__ import annotations

from unweave.figures.latent import (
    Autoencoder,
    loss_curves,
    reconstructions,
    save_traversal_animation,
    traversals,
)
from unweave.figures.sheet import save_picture
from unweave.training import Callback, Run


class Pictures(Callback):
    """Writes reconstructions, latent traversals (PNG and GIF) and loss curves into the run directory.

    ``train`` calls it at the end of a run, unless told otherwise (``pictures=False``).

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> run = uw.train(method, data, steps=1, out="run", pictures=False)
    >>> Pictures().on_end(run)
    >>> sorted(path.name for path in run.path.glob("*.*") if path.suffix in (".png", ".gif"))
    ['loss_curves.png', 'reconstructions.png', 'traversals.gif', 'traversals.png']
    """

    def on_end(self, run: Run) -> None:
        """Draw what the run's directory and data allow."""
        if run.path is None or run.data is None:
            return
        if isinstance(run.method, Autoencoder):
            save_picture(reconstructions(run.method, run.data), run.path / "reconstructions.png")
            save_picture(traversals(run.method, run.data), run.path / "traversals.png")
            save_traversal_animation(run.method, run.data, run.path / "traversals.gif")
        title = f"{run.spec.method.name} on {run.data.name}"
        save_picture(loss_curves(run.records, title), run.path / "loss_curves.png")
