"""A run on disk: a directory with its spec, weights, state and history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
from torch import nn

from unweave.data import Dataset
from unweave.errors import ArgumentError, DataError
from unweave.methods import LearnsFromLabels, Method, Term, build
from unweave.training.checkpoint import load_weights, read_metadata
from unweave.training.history import Record, read_history
from unweave.training.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd

SPEC, WEIGHTS, STATE, HISTORY, FAILURE = (
    "spec.yaml",
    "weights.safetensors",
    "state.safetensors",
    "history.jsonl",
    "failure.json",
)


@dataclass
class Run:
    """A training run: what was asked for, the method as trained so far, and its records.

    Parameters
    ----------
    spec
        all that is needed to repeat the run.
    method
        with the weights after ``step`` steps.
    path
        its directory; None for a run that is kept in memory.
    step
        how many steps were made.
    records
        the logged values, one mapping per logged step; :attr:`history` has them as a frame.
    data
        what it was trained on, in the process that trained it; None for a run that was loaded.
    """

    spec: RunSpec
    method: Method
    path: Path | None = None
    step: int = 0
    records: list[Record] = field(default_factory=list)
    data: Dataset | None = None

    @property
    def finished(self) -> bool:
        """Whether all steps were made."""
        return self.step >= self.spec.steps

    @property
    def history(self) -> pd.DataFrame:
        """The logged values as a frame: one row per logged step, one column per value."""
        import pandas as pd

        return pd.DataFrame(self.records, columns=None if self.records else ["step"]).set_index("step")


def load(
    path: Path | str,
    *,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    terms: Sequence[Term[Any]] = (),
    labels: npt.ArrayLike | None = None,
) -> Run:
    """A run from its directory, on the CPU, ready to encode.

    An unfinished run has the weights of its last checkpoint.

    Parameters
    ----------
    path
        the run's directory.
    encoder, decoder, terms
        the user's networks and unregistered terms, where the run was trained with such.
    labels
        the array of labels that the run learned from, where it did: it is not kept in the directory.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> run = uw.train(method, data, steps=2, out="run", pictures=False)
    >>> uw.load("run").step
    2
    """
    folder = Path(path)
    spec = RunSpec.read(folder / SPEC)
    method = build(spec.method, encoder=encoder, decoder=decoder, terms=terms)
    step = steps_done(folder)
    if step == spec.steps and (folder / WEIGHTS).exists():
        load_weights(folder / WEIGHTS, method)
    elif (folder / STATE).exists():
        load_weights(folder / STATE, method, "model/")
    else:
        raise DataError(f"{folder}: the run has no weights yet")
    if labels is not None:
        if not isinstance(method, LearnsFromLabels):
            raise ArgumentError(
                "labels", type(labels).__name__, f"{spec.method.name} does not learn from labels"
            )
        method.remember_labels(labels)
    method.fresh = False
    method.eval()
    return Run(spec, method, folder, step, read_history(folder / HISTORY))


def steps_done(folder: Path) -> int:
    """How many steps of a run are safe on disk."""
    done = [
        int(read_metadata(folder / name).get("step", 0))
        for name in (WEIGHTS, STATE)
        if (folder / name).exists()
    ]
    return max(done, default=0)
