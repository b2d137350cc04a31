"""What may listen to a run: loggers, pictures, a user's own code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unweave.errors import UnweaveError


class Callback:
    """Called by ``train``. Override what is of interest; each does nothing by default."""

    def on_start(self, run: Any) -> None:
        """Before the first step; ``run`` is the :class:`~unweave.training.Run`."""

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """Every ``log_every`` steps: the loss, every term by its name, and images_per_second."""

    def on_checkpoint(self, run: Any, step: int) -> None:
        """After a checkpoint was written."""

    def on_end(self, run: Any) -> None:
        """After the last step, with the weights written."""


class TensorBoard(Callback):
    """Logs to TensorBoard event files (needs the package tensorboard)."""

    def __init__(self, folder: Path | str) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise _missing("TensorBoard", "tensorboard") from error
        self.writer = SummaryWriter(str(folder))

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """One scalar per value."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def on_end(self, run: Any) -> None:
        """Flush and close the event file."""
        self.writer.close()


class WeightsAndBiases(Callback):
    """Logs to Weights & Biases (needs the package wandb); arguments go to ``wandb.init``."""

    def __init__(self, **arguments: Any) -> None:
        try:
            import wandb
        except ImportError as error:
            raise _missing("Weights & Biases", "wandb") from error
        self.run = wandb.init(**arguments)

    def on_start(self, run: Any) -> None:
        """Record the run's spec as the configuration."""
        self.run.config.update(run.spec.as_dict())

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """All values at once."""
        self.run.log(dict(values), step=step)

    def on_end(self, run: Any) -> None:
        """Finish the Weights & Biases run."""
        self.run.finish()


class MLflow(Callback):
    """Logs to the active MLflow run (needs the package mlflow)."""

    def __init__(self) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise _missing("MLflow", "mlflow") from error
        self.mlflow = mlflow

    def on_start(self, run: Any) -> None:
        """Record the run's spec."""
        self.mlflow.log_dict(run.spec.as_dict(), "spec.yaml")

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """All values at once."""
        self.mlflow.log_metrics(dict(values), step=step)


def _missing(what: str, package: str) -> UnweaveError:
    return UnweaveError(f"{what} needs the package {package}: pip install {package}")
