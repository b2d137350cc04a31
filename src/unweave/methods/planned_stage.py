"""An earlier stage that is still to be trained: what ``first={"method": "beta_tcvae", "beta": 4, …}`` means.

The mapping is a run at these settings. ``train`` trains it first, and goes on as if the finished run had been given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unweave.errors import ArgumentError
from unweave.parameters import Count, Positive, TorchSeed, check_value

if TYPE_CHECKING:
    from unweave.data import Dataset
    from unweave.methods.method import Method

# What a mapping may say of the training, and of the data.
TRAINING = {
    "steps": Count,
    "batch_size": Count,
    "learning_rate": Positive | Mapping,
    "seed": TorchSeed,
    "precision": str,
}
DATA = ("data", "image_size")
_PREFIX = "method."  # before a hyperparameter whose name the training has, too


@dataclass(frozen=True)
class PlannedStage:
    """A stage that a method was created with, and how it is to be trained.

    Parameters
    ----------
    name, settings
        of the stage's method, as ``create`` takes them.
    training
        what was said of steps, batch_size, learning_rate, seed and precision; the rest is as of the later stage.
    data
        what it is trained on.
    method
        the stage as the later one holds it, untrained: it gets the weights of the trained one.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    >>> stage = plan_stage("first", {"method": "beta_vae", "beta": 4, "steps": 10}, data)
    >>> stage.settings, stage.training
    ({'beta': 4}, {'steps': 10})
    """

    name: str
    settings: Mapping[str, Any]
    training: Mapping[str, Any]
    data: Dataset
    method: Method = field(repr=False)

    @property
    def spec(self) -> dict[str, Any]:
        """What is known of the stage before its training."""
        from unweave.data.registry import describe_data

        return {"method": self.method.spec.as_dict(), "data": describe_data(self.data), **self.training}


def plan_stage(argument: str, given: Mapping[str, Any], data: Dataset) -> PlannedStage:
    """A stage from a mapping; all is checked, nothing is trained.

    Parameters
    ----------
    argument
        whose value the mapping is, for errors.
    given
        ``method``; its hyperparameters ("method.steps" where the training has a setting of that name) and whatever else
        ``create`` takes for it; ``steps``, ``batch_size``, ``learning_rate``, ``seed``, ``precision``; ``data`` (a name
        or a folder) and ``image_size``.
    data
        of the later stage, on which the stage is trained unless the mapping has other data.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    >>> plan_stage("first", {"beta": 4}, data)
    Traceback (most recent call last):
    unweave.errors.ArgumentError: first = {'beta': 4}: needs a method: {"method": "beta_tcvae", …}
    """
    from unweave.methods.registry import create

    if not isinstance(given.get("method"), str):
        raise ArgumentError(argument, dict(given), 'needs a method: {"method": "beta_tcvae", …}')
    name = given["method"]
    training = {
        key: check_value(f"{argument}.{key}", given[key], kind)
        for key, kind in TRAINING.items()
        if key in given
    }
    settings = {
        key.removeprefix(_PREFIX): value
        for key, value in given.items()
        if key != "method" and key not in (*TRAINING, *DATA)
    }
    own_data = _data(argument, given, data)
    return PlannedStage(name, settings, training, own_data, create(name, own_data, **settings))


def _data(argument: str, given: Mapping[str, Any], data: Dataset) -> Dataset:
    """The stage's data: that of the later one, unless the mapping names other."""
    from unweave.data import load

    if "data" not in given and "image_size" not in given:
        return data
    name = given.get("data", data.name)
    if not isinstance(name, str):
        raise ArgumentError(f"{argument}.data", name, "needs a data set's name or a folder of images")
    return load(name, image_size=given.get("image_size"))
