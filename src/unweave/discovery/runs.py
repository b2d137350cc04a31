"""The runs of a discovery: trained one after the other into a folder, kept through any interruption."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unweave.data import Dataset
from unweave.discovery.choices import Plan, Setting
from unweave.errors import DataError
from unweave.files import read_json, write_text
from unweave.methods import create
from unweave.methods.method import Method
from unweave.training.loop import TrainingError, train
from unweave.training.run import Run

_LATE = 1.2  # times the budget: runs that would end later are left out
_NOTES = "notes.json"
_FEWEST_SEEDS = 2


@dataclass(frozen=True)
class TrainedRun:
    """A finished run with its setting and seed."""

    setting: Setting
    seed: int
    run: Run


@dataclass(frozen=True)
class TrainedRuns:
    """The runs that were finished, and what went wrong with others, in words."""

    runs: tuple[TrainedRun, ...]
    notes: tuple[str, ...]


def create_method(plan: Plan, setting: Setting, data: Dataset) -> Method:
    """The untrained method of a setting.

    The strength grows over the first fifth of the steps: a pressure that is there from the beginning can silence
    latents before they have learned anything.
    """
    strength = setting.hyperparameters["beta"]
    ramp = max(1, plan.steps // 5)
    start = min(1.0, strength) if setting.method == "beta_tcvae" else 0.1 * strength
    beta = {"start": start, "end": strength, "steps": ramp} if start < strength else strength
    return create(
        setting.method,
        data,
        beta=beta,
        latent_size=plan.latent_size,
        reconstruction=plan.reconstruction,
        architecture={"name": "conv", "width": plan.width},
    )


def train_runs(plan: Plan, data: Dataset, folder: Path, seconds: float | None) -> TrainedRuns:
    """Train every setting with every seed, seed by seed; what was trained before is loaded.

    Parameters
    ----------
    plan
        what to train.
    data
        the photographs to learn from.
    folder
        of the runs.
    seconds
        the time for all of them: if the machine turns out slower than it was measured, the last seeds are left out,
        for good. None: all are trained, however long it takes.
    """
    jobs = [(setting, seed) for seed in range(plan.seeds) for setting in plan.settings]
    folder.mkdir(parents=True, exist_ok=True)
    notes = _read_notes(folder / _NOTES)
    trained: list[TrainedRun] = []
    for number, (setting, seed) in enumerate(jobs, 1):
        name = f"{setting.method}-{setting.hyperparameters['beta']:g}-seed-{seed}"
        if name in notes["left_out"] or name in notes["failed"]:
            continue
        if name not in notes["seconds"] and seed >= _FEWEST_SEEDS and seconds is not None:
            spent = notes["seconds"].values()
            if sum(spent) + sum(spent) / max(len(spent), 1) > _LATE * seconds:
                notes["left_out"].append(name)
                write_text(folder / _NOTES, json.dumps(notes))
                continue
        _say(f"run {number} of {len(jobs)}: {setting.label}, beginning {seed + 1} of {plan.seeds}")
        start = time.monotonic()
        try:
            run = _train(plan, setting, seed, data, folder / name)
        except TrainingError as error:
            notes["failed"][name] = str(error)
            write_text(folder / _NOTES, json.dumps(notes))
            continue
        if name not in notes["seconds"]:
            notes["seconds"][name] = round(time.monotonic() - start, 3)
            write_text(folder / _NOTES, json.dumps(notes))
        trained.append(TrainedRun(setting, seed, run))
    return TrainedRuns(tuple(trained), tuple(_in_words(notes)))


def _train(plan: Plan, setting: Setting, seed: int, data: Dataset, out: Path) -> Run:
    method = create_method(plan, setting, data)
    rate = {"peak": plan.learning_rate, "warmup": plan.steps // 20, "shape": "cosine"}
    return train(
        method,
        data,
        steps=plan.steps,
        batch_size=plan.batch_size,
        learning_rate=rate,
        seed=seed,
        out=out,
        pictures=False,
        checkpoint_seconds=60.0,
        keep_memory=False,
    )


def _read_notes(path: Path) -> dict[str, Any]:
    """How long runs took, which failed and which were left out."""
    empty: dict[str, Any] = {"seconds": {}, "failed": {}, "left_out": []}
    try:
        return {**empty, **read_json(path)}
    except FileNotFoundError:
        return empty
    except DataError:  # times are all that is lost
        return empty


def _in_words(notes: dict[str, Any]) -> list[str]:
    words = []
    if notes["left_out"]:
        words.append(
            f"The machine was slower than it was measured at the beginning, so {len(notes['left_out'])} of the planned "
            "runs were left out to keep to the time."
        )
    if notes["failed"]:
        words.append(
            f"{len(notes['failed'])} runs failed: their numbers grew without bound, and they are not used."
        )
    return words


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
