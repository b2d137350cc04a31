"""The runs of a discovery: trained one after the other into a folder, kept through any interruption."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unweave.data import Dataset
from unweave.discovery.choices import FEWEST_STEPS, MOST_STEPS, PILOT_SEEDS, Plan, Setting
from unweave.errors import DataError
from unweave.files import read_json, write_text
from unweave.methods import create
from unweave.methods.method import Method
from unweave.training.loop import TrainingError, train
from unweave.training.run import Run

_LATE = 1.2  # times the budget: runs that would end later are left out
_NOTES = "notes.json"
_FEWEST_SEEDS = 3


@dataclass(frozen=True)
class Job:
    """A run to train: a setting with a seed, for so many steps; a pilot run helps to choose a setting, no more."""

    setting: Setting
    seed: int
    steps: int
    is_pilot: bool

    @property
    def name(self) -> str:
        """Of its folder."""
        stage = "pilot" if self.is_pilot else "final"
        return f"{stage}-{self.setting.method}-{self.setting.hyperparameters['beta']:g}-seed-{self.seed}"


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


def pilot_jobs(plan: Plan) -> list[Job]:
    """The short runs by which a setting is chosen: none if there is one only."""
    if len(plan.settings) == 1:
        return []
    return [
        Job(setting, seed, plan.pilot_steps, True) for seed in range(PILOT_SEEDS) for setting in plan.settings
    ]


def final_jobs(plan: Plan, setting: Setting, folder: Path, seconds: float | None) -> list[Job]:
    """The runs of the chosen setting, with seeds that no pilot run had.

    Their steps are those of the plan, or what fits into the rest of the time by the speed of the pilot runs: half to
    twice as many. This is decided once, and kept.
    """
    notes = _read_notes(folder / _NOTES)
    steps = notes["final_steps"]
    if steps is None:
        steps = plan.steps
        each = _seconds_per_step(notes)
        if seconds is not None and each is not None:
            left = seconds - sum(spent for spent, _ in notes["seconds"].values())
            fitting = min(max(left / each / plan.seeds, plan.steps / 2), 2 * plan.steps)
            steps = int(min(max(fitting, FEWEST_STEPS), MOST_STEPS))
        notes["final_steps"] = steps
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / _NOTES, json.dumps(notes))
    return [Job(setting, PILOT_SEEDS + number, steps, False) for number in range(plan.seeds)]


def create_method(plan: Plan, setting: Setting, data: Dataset) -> Method:
    """The untrained method of a setting.

    The strength of β-VAE grows over the first fifth of the steps: a pressure that is there from the beginning can
    silence latents before they have learned anything. That of β-TCVAE is there from the beginning, as it silences none,
    and axes that were learned without it turn slowly. A Gaussian of the plan's variance v is one of variance 1
    whose other terms are multiplied by v.
    """
    strength = setting.hyperparameters["beta"]
    common: dict[str, Any] = {
        "latent_size": plan.latent_size,
        "reconstruction": plan.reconstruction,
        "architecture": {"name": "conv", "width": plan.width},
    }
    if setting.method == "beta_vae":
        beta = plan.variance * strength
        return create(
            "beta_vae",
            data,
            beta={"start": 0.1 * beta, "end": beta, "steps": max(1, plan.steps // 5)},
            **common,
        )
    if plan.variance == 1:
        return create("beta_tcvae", data, beta=strength, **common)
    weight = plan.variance * (strength - 1)
    correlation = [{"name": "total_correlation", "weight": weight}] if strength > 1 else []
    return create("beta_vae", data, beta=plan.variance, extra_terms=correlation, **common)


def train_runs(
    plan: Plan, jobs: Sequence[Job], data: Dataset, folder: Path, seconds: float | None
) -> TrainedRuns:
    """Train the jobs one after the other; what was trained before is loaded.

    Parameters
    ----------
    plan
        what to train.
    jobs
        of the plan.
    data
        the photographs to learn from.
    folder
        of the runs.
    seconds
        the time for all of the plan's training: if the machine turns out slower than it was measured, the last seeds
        are left out, for good. None: all are trained, however long it takes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    notes = _read_notes(folder / _NOTES)
    trained: list[TrainedRun] = []
    for number, job in enumerate(jobs, 1):
        if job.name in notes["left_out"] or job.name in notes["failed"]:
            continue
        is_new = job.name not in notes["seconds"]
        if is_new and not job.is_pilot and number > _FEWEST_SEEDS and _is_late(job, notes, seconds):
            notes["left_out"].append(job.name)
            write_text(folder / _NOTES, json.dumps(notes))
            continue
        _say(_announcement(job, number, len(jobs)))
        start = time.monotonic()
        try:
            run = _train(plan, job, data, folder / job.name)
        except TrainingError as error:
            notes["failed"][job.name] = str(error)
            write_text(folder / _NOTES, json.dumps(notes))
            continue
        if is_new:
            notes["seconds"][job.name] = [round(time.monotonic() - start, 3), job.steps]
            write_text(folder / _NOTES, json.dumps(notes))
        trained.append(TrainedRun(job.setting, job.seed, run))
    return TrainedRuns(tuple(trained), tuple(_in_words(notes)))


def _announcement(job: Job, number: int, count: int) -> str:
    if job.is_pilot:
        return f"Choosing a setting, run {number} of {count}: {job.setting.label}"
    return f"Training anew, run {number} of {count}: {job.setting.label}"


def _is_late(job: Job, notes: dict[str, Any], seconds: float | None) -> bool:
    """Whether a run would end too long after the time."""
    each = _seconds_per_step(notes)
    if seconds is None or each is None:
        return False
    spent: float = sum(spent for spent, _ in notes["seconds"].values())
    return spent + each * job.steps > _LATE * seconds


def _seconds_per_step(notes: dict[str, Any]) -> float | None:
    """By the runs so far; None if there are none."""
    steps = sum(count for _, count in notes["seconds"].values())
    return sum(spent for spent, _ in notes["seconds"].values()) / steps if steps else None


def _train(plan: Plan, job: Job, data: Dataset, out: Path) -> Run:
    method = create_method(replace(plan, steps=job.steps), job.setting, data)
    rate = {"peak": plan.learning_rate, "warmup": job.steps // 20, "shape": "cosine"}
    return train(
        method,
        data,
        steps=job.steps,
        batch_size=plan.batch_size,
        learning_rate=rate,
        seed=job.seed,
        out=out,
        pictures=False,
        checkpoint_seconds=60.0,
        keep_memory=False,
    )


def _read_notes(path: Path) -> dict[str, Any]:
    """How long runs took (seconds and steps), which failed and which were left out, and the steps of the last ones."""
    empty: dict[str, Any] = {"seconds": {}, "failed": {}, "left_out": [], "final_steps": None}
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
