"""What is called while a run trains: loggers, pictures at the end, a user's code."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unweave.training.run import Run


class Callback:
    """Called by :func:`~unweave.training.train`. Override what is of interest; by default nothing happens.

    Examples
    --------
    >>> class PrintLoss(uw.training.Callback):
    ...     def on_log(self, step, values):
    ...         print(step, sorted(values))
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> run = uw.train(method, data, steps=1, callbacks=[PrintLoss()])
    1 ['images_per_second', 'kl', 'loss', 'reconstruction']
    """

    def on_start(self, run: Run) -> None:
        """Before the first step."""

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """Every ``log_every`` steps: the loss, every term by its name, and images_per_second."""

    def on_checkpoint(self, run: Run, step: int) -> None:
        """After a checkpoint was written."""

    def on_end(self, run: Run) -> None:
        """After the last step, with the weights written."""

    def on_stop(self, run: Run) -> None:
        """Instead of ``on_end``, when training stops before that: interrupted, or by an error."""

    def on_already_finished(self, run: Run) -> None:
        """Instead of all others, when the run was finished before, and nothing is trained."""


def create_pictures() -> Callback:
    """The callback that draws pictures into the run directory at the end.

    It lives in a room above this one, which is named here and imported only when pictures are wanted.
    """
    pictures: Callback = resolve_name("unweave.figures.run_pictures:Pictures")()
    return pictures
