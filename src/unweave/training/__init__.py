"""The training engine: one loop for all methods, exact to resume."""

from unweave.training.callbacks import Callback, MLflow, TensorBoard, WeightsAndBiases
from unweave.training.loop import plan, train
from unweave.training.run import Run, load, load_run
from unweave.training.session import TrainingError
from unweave.training.spec import RunSpec

__all__ = [
    "Callback",
    "MLflow",
    "Run",
    "RunSpec",
    "TensorBoard",
    "TrainingError",
    "WeightsAndBiases",
    "load",
    "load_run",
    "plan",
    "train",
]
