"""Loggers: callbacks that hand the values of a run to TensorBoard, Weights & Biases or MLflow.

A logger starts with the training, so that a run which was finished before leaves no empty record. A run that goes on
is the same record as before: its identifier there is kept in the run's directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.errors import UnweaveError, unknown_name
from unweave.files import read_text, write_text
from unweave.optional import require
from unweave.training.callbacks import Callback

if TYPE_CHECKING:
    from unweave.training.run import Run

# The names of loggers on the command line, with the module of each and what it is called.
LOGGERS = {
    "tensorboard": ("tensorboard", "TensorBoard"),
    "wandb": ("wandb", "Weights & Biases"),
    "mlflow": ("mlflow", "MLflow"),
}
_LONGEST = 1000  # bytes of an identifier


def check_logger(name: str, argument: str = "logger") -> None:
    """Refuse a logger that is not known, or whose package is not installed.

    Examples
    --------
    >>> check_logger("tensorbord")
    Traceback (most recent call last):
    unweave.errors.ArgumentError: logger = 'tensorbord': did you mean 'tensorboard'? known: mlflow, tensorboard, wandb
    """
    if name not in LOGGERS:
        raise unknown_name(argument, name, LOGGERS)
    _package(name)


def create_logger(name: str, folder: Path) -> Callback:
    """The logger of a name, as the command line has it, for the run that is trained into ``folder``."""
    check_logger(name)
    if name == "tensorboard":
        return TensorBoard(folder / "tensorboard")
    if name == "wandb":
        return WeightsAndBiases(project="unweave", name=folder.name)
    return MLflow(experiment="unweave", name=folder.name)


class TensorBoard(Callback):
    """Logs to TensorBoard event files in ``folder`` (needs the package tensorboard).

    The folder is created when training begins: it may lie in the run's directory, which must not be there before. A run
    that goes on from a checkpoint hides what was logged after it.

    Examples
    --------
    Pass it to training; ``tensorboard --logdir events`` shows the curves::

        uw.train(method, data, steps=1000, callbacks=[uw.training.TensorBoard("events")])
    """

    def __init__(self, folder: Path | str) -> None:
        _package("tensorboard")
        self.folder = str(folder)
        self.writer: Any = None

    def on_start(self, run: Run) -> None:
        """Open an event file."""
        from torch.utils.tensorboard import SummaryWriter

        with _starting("tensorboard"):
            self.writer = SummaryWriter(self.folder, purge_step=run.step + 1)

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """One scalar per value."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def on_end(self, run: Run) -> None:
        """Flush and close the event file."""
        self._close()

    def on_stop(self, run: Run) -> None:
        """Flush and close the event file."""
        self._close()

    def _close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.writer = None


class WeightsAndBiases(Callback):
    """Logs to Weights & Biases (needs the package wandb); arguments go to ``wandb.init``.

    The identifier is kept as ``wandb.txt`` in the run's directory: a run that goes on is the same one there. With
    ``WANDB_MODE=offline`` nothing is sent, and ``wandb sync`` joins the parts.

    Examples
    --------
    Pass it to training, with the name of a project::

        uw.train(method, data, steps=1000, callbacks=[uw.training.WeightsAndBiases(project="unweave")])
    """

    def __init__(self, **arguments: Any) -> None:
        self.wandb = _package("wandb")
        self.arguments = arguments
        self.run: Any = None

    def on_start(self, run: Run) -> None:
        """Start, or go on, with the run's spec as the configuration."""
        known = _kept(run, "wandb")
        arguments = dict(self.arguments)
        if known is not None and "id" not in arguments:
            arguments = {"id": known, "resume": "allow"} | arguments
        with _starting("wandb"):
            self.run = self.wandb.init(**arguments)
            self.run.config.update(
                run.spec.as_dict(), allow_val_change=True
            )  # a run that goes on has more steps
        _keep(run, "wandb", self.run.id)

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """All values at once."""
        self.run.log(dict(values), step=step)

    def on_end(self, run: Run) -> None:
        """Finish the Weights & Biases run."""
        self._finish(0)

    def on_stop(self, run: Run) -> None:
        """Finish the Weights & Biases run as one that failed."""
        self._finish(1)

    def _finish(self, exit_code: int) -> None:
        if self.run is not None:
            self.run.finish(exit_code=exit_code)
        self.run = None


class MLflow(Callback):
    """Logs to the active MLflow run; if there is none, to one that it starts and ends (needs the package mlflow).

    The identifier of a run that it started is kept as ``mlflow.txt`` in the run's directory: a run that goes on is the
    same one there.

    Parameters
    ----------
    experiment, name
        of an MLflow run that it starts; None is MLflow's default.

    Examples
    --------
    Pass it to training, within ``with mlflow.start_run():`` or without::

        uw.train(method, data, steps=1000, callbacks=[uw.training.MLflow()])
    """

    def __init__(self, experiment: str | None = None, name: str | None = None) -> None:
        self.mlflow = _package("mlflow")
        self.experiment, self.name = experiment, name
        self.started = False

    def on_start(self, run: Run) -> None:
        """Start an MLflow run, or go on with it, and record the run's spec."""
        with _starting("mlflow"):
            if self.mlflow.active_run() is None:
                self._start(run)
            self.mlflow.log_dict(run.spec.as_dict(), "spec.yaml")

    def _start(self, run: Run) -> None:
        known = _kept(run, "mlflow")
        if self.experiment is not None:
            self.mlflow.set_experiment(self.experiment)
        if known is not None:
            try:
                self.mlflow.start_run(run_id=known)
                self.started = True
                return
            except self.mlflow.exceptions.MlflowException:  # it is in another store, or was deleted
                pass
        started = self.mlflow.start_run(run_name=self.name)
        self.started = True
        _keep(run, "mlflow", started.info.run_id)

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """All values at once."""
        self.mlflow.log_metrics(dict(values), step=step)

    def on_end(self, run: Run) -> None:
        """End the MLflow run, if it was started here."""
        self._end("FINISHED")

    def on_stop(self, run: Run) -> None:
        """End the MLflow run as one that was stopped, if it was started here."""
        self._end("KILLED")

    def _end(self, status: str) -> None:
        if self.started:
            self.mlflow.end_run(status)
        self.started = False


def _package(name: str) -> Any:
    module, label = LOGGERS[name]
    return require(module, "loggers", label)


@contextmanager
def _starting(name: str) -> Iterator[None]:
    """What a logger's package refuses (a store, an account, a network) is one clear error, before the first step."""
    try:
        yield
    except UnweaveError:
        raise
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise UnweaveError(f"{LOGGERS[name][1]} cannot log this run: {why}") from error


def _kept(run: Run, name: str) -> str | None:
    """The identifier that a logger gave to the run when it was started."""
    if run.path is None:
        return None
    try:
        return read_text(run.path / f"{name}.txt", _LONGEST).strip() or None
    except FileNotFoundError:
        return None


def _keep(run: Run, name: str, identifier: str) -> None:
    if run.path is not None:
        write_text(run.path / f"{name}.txt", f"{identifier}\n")
