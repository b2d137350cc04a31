"""A run on disk: a directory with its spec, weights, state and history."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy.typing as npt
from torch import nn

from unweave.errors import DataError
from unweave.methods import VAE, Term, build
from unweave.training.checkpoint import load_weights, read_metadata
from unweave.training.history import History, Record, read_history
from unweave.training.spec import RunSpec

SPEC, WEIGHTS, STATE, HISTORY, FAILURE = (
    "spec.yaml",
    "weights.safetensors",
    "state.safetensors",
    "history.jsonl",
    "failure.json",
)


@dataclass
class Run:
    """A training run: what was asked for, the method as trained so far, and its history.

    ``path`` is its directory, or None for a run that was kept in memory.
    """

    spec: RunSpec
    method: VAE
    path: Path | None = None
    step: int = 0
    log: History = field(default_factory=History)

    @property
    def finished(self) -> bool:
        """Whether all steps were made."""
        return self.step >= self.spec.steps

    @property
    def history(self) -> list[Record]:
        """The logged values, one record per logged step."""
        return self.log.records


def load(
    path: Path | str,
    *,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    labels: npt.ArrayLike | None = None,
) -> VAE:
    """The method of a run directory with its trained weights, on the CPU, ready to encode.

    Of an unfinished run it has the weights of the last checkpoint. A run of the user's own networks or
    unregistered terms needs them: pass ``encoder`` / ``decoder``, import the module that registers the terms.
    One that learned from the user's own array of labels needs it (``labels``) to be given labels again.
    """
    return load_run(path, encoder=encoder, decoder=decoder, labels=labels).method


def load_run(
    path: Path | str,
    *,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
    terms: tuple[Term, ...] = (),
    labels: npt.ArrayLike | None = None,
) -> Run:
    """A run directory as a :class:`Run`. One that learned from an array of labels needs it again to be given them."""
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
        method.remember_labels(labels)
    method.fresh = False
    method.eval()
    history = History()
    history.records = read_history(folder / HISTORY)
    return Run(spec, method, folder, step, history)


def steps_done(folder: Path) -> int:
    """How many steps of a run are safe on disk."""
    done = [
        int(read_metadata(folder / name).get("step", 0))
        for name in (WEIGHTS, STATE)
        if (folder / name).exists()
    ]
    return max(done, default=0)
