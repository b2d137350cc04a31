"""What is called while a run trains: loggers, pictures at the end, a user's code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from unweave.optional import require

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

    def on_already_finished(self, run: Run) -> None:
        """Instead of all others, when the run was finished before, and nothing is trained."""


class TensorBoard(Callback):
    """Logs to TensorBoard event files in ``folder`` (needs the package tensorboard).

    The folder is created when training begins: it may lie in the run's directory, which must not be there before.

    Examples
    --------
    Pass it to training; ``tensorboard --logdir events`` shows the curves::

        uw.train(method, data, steps=1000, callbacks=[uw.training.TensorBoard("events")])
    """

    def __init__(self, folder: Path | str) -> None:
        require("tensorboard", "loggers", "TensorBoard")
        self.folder = str(folder)
        self.writer: Any = None

    def on_start(self, run: Run) -> None:
        """Open the event file."""
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(self.folder)

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """One scalar per value."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def on_end(self, run: Run) -> None:
        """Flush and close the event file."""
        self.writer.close()


class WeightsAndBiases(Callback):
    """Logs to Weights & Biases (needs the package wandb); arguments go to ``wandb.init``.

    Examples
    --------
    Pass it to training, with the name of a project::

        uw.train(method, data, steps=1000, callbacks=[uw.training.WeightsAndBiases(project="unweave")])
    """

    def __init__(self, **arguments: Any) -> None:
        self.run = require("wandb", "loggers", "Weights & Biases").init(**arguments)

    def on_start(self, run: Run) -> None:
        """Record the run's spec as the configuration."""
        self.run.config.update(run.spec.as_dict())

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """All values at once."""
        self.run.log(dict(values), step=step)

    def on_end(self, run: Run) -> None:
        """Finish the Weights & Biases run."""
        self.run.finish()


class MLflow(Callback):
    """Logs to the active MLflow run (needs the package mlflow).

    Examples
    --------
    Within ``with mlflow.start_run():``, pass it to training::

        uw.train(method, data, steps=1000, callbacks=[uw.training.MLflow()])
    """

    def __init__(self) -> None:
        self.mlflow = require("mlflow", "loggers", "MLflow")

    def on_start(self, run: Run) -> None:
        """Record the run's spec."""
        self.mlflow.log_dict(run.spec.as_dict(), "spec.yaml")

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """All values at once."""
        self.mlflow.log_metrics(dict(values), step=step)


def create_pictures() -> Callback:
    """The callback that draws pictures into the run directory at the end.

    It lives in a room above this one, which is named here and imported only when pictures are wanted.
    """
    pictures: Callback = resolve_name("unweave.figures.run_pictures:Pictures")()
    return pictures
