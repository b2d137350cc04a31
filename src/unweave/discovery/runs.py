"""The runs of a discovery: which there are, how one is trained, and what is kept of all through any interruption."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from unweave.data import Dataset
from unweave.discovery.choices import FEWEST_STEPS, MOST_STEPS, Plan, Setting, rounds
from unweave.errors import DataError
from unweave.files import read_json, write_text
from unweave.methods import create
from unweave.methods.method import Method
from unweave.training import Callback
from unweave.training.checkpoint import steps_in
from unweave.training.devices import one_thread
from unweave.training.loop import train
from unweave.training.run import WEIGHTS, Run

if TYPE_CHECKING:
    from unweave.discovery.trainers import Trainer

_LATE = 1.2  # times the budget: runs that would end later are left out
RUNS, _NOTES = "runs", "notes.json"  # the folder of runs in the work folder, and a file in it
_FEWEST_SEEDS = 3
_LOG_EVERY, _LOGS = 50, 20  # steps between two records at most, and how many records there are at least
_LOCK_SECONDS = 10.0  # workers of a parent that was killed are gone sooner


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

    @property
    def stage(self) -> str:
        """What it is for, for people."""
        return "Choosing a setting" if self.is_pilot else "Training anew"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Job:
        """The job of a file."""
        return Job(**{**values, "setting": Setting(**values["setting"])})


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
        Job(setting, seed, plan.pilot_steps, True)
        for seed in range(plan.pilot_seeds)
        for setting in plan.settings
    ]


def final_jobs(
    plan: Plan, setting: Setting, folder: Path, seconds: float | None, processes: int = 1
) -> list[Job]:
    """The runs of the chosen setting, with seeds that no pilot run had.

    Their steps are those of the plan, or what fits into the rest of the time by the speed of the pilot runs, with so
    many processes side by side, but at least half as many. This is decided once, and kept.
    """
    notes = _read_notes(folder / _NOTES)
    steps = notes["final_steps"]
    if steps is None:
        steps = plan.steps
        each = _seconds_per_step(notes)
        if seconds is not None and each is not None:
            left = seconds - notes["spent"]
            fitting = max(left / each / rounds(plan.seeds, processes), plan.steps / 2)
            steps = int(min(max(fitting, FEWEST_STEPS), MOST_STEPS))
        notes["final_steps"] = steps
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / _NOTES, json.dumps(notes))
    return [Job(setting, plan.pilot_seeds + number, steps, False) for number in range(plan.seeds)]


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


def train_job(
    plan: Plan,
    job: Job,
    data: Dataset,
    out: Path,
    keep_memory: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Train a run, or what is left of it, or load it.

    Its bits are those of one thread, whoever trains it.
    """
    method = create_method(replace(plan, steps=job.steps), job.setting, data)
    rate = {"peak": plan.learning_rate, "warmup": job.steps // 20, "shape": "cosine"}
    _wait_for_lock(out)
    with one_thread():
        return train(
            method,
            data,
            steps=job.steps,
            batch_size=plan.batch_size,
            learning_rate=rate,
            seed=job.seed,
            out=out,
            callbacks=callbacks,
            pictures=False,
            log_every=max(1, min(_LOG_EVERY, job.steps // _LOGS)),
            checkpoint_seconds=60.0,
            keep_memory=keep_memory,
        )


def _wait_for_lock(out: Path) -> None:
    """A worker whose parent was killed lives for another second: wait until it has left its run."""
    if out.is_dir():
        with suppress(Timeout, OSError), FileLock(out / ".lock", timeout=_LOCK_SECONDS):
            pass


def train_runs(
    plan: Plan, jobs: Sequence[Job], data: Dataset, seconds: float | None, trainer: Trainer
) -> TrainedRuns:
    """Train the jobs of a stage; what was trained before is loaded.

    Parameters
    ----------
    plan
        what to train.
    jobs
        of the plan.
    data
        the photographs to learn from.
    seconds
        the time for all of the plan's training: if the machine turns out slower than it was measured, the last seeds
        are left out, for good. None: all are trained, however long it takes.
    trainer
        who trains them: this process, or several side by side.
    """
    folder = trainer.runs
    folder.mkdir(parents=True, exist_ok=True)
    notes = _read_notes(folder / _NOTES)
    start, before = time.monotonic(), notes["spent"]

    def write() -> None:
        notes["spent"] = round(before + time.monotonic() - start, 3)
        write_text(folder / _NOTES, json.dumps(notes))

    def waiting() -> Iterator[Job]:
        """The jobs to train, each when somebody is free to begin with it."""
        for number, job in enumerate(jobs, 1):
            if _is_over(job, folder, notes):
                continue
            if job.name not in notes["begun"]:
                spent = before + time.monotonic() - start
                if not job.is_pilot and number > _FEWEST_SEEDS and _is_late(job, notes, spent, seconds):
                    notes["left_out"].append(job.name)
                    write()
                    continue
                notes["begun"].append(job.name)
                write()
            _say(f"{job.stage}, run {number} of {len(jobs)}: {job.setting.label}")
            yield job

    try:
        with closing(trainer.train(plan, jobs, data, waiting())) as outcomes:
            for outcome in outcomes:
                if outcome.failure:
                    notes["failed"][outcome.job.name] = outcome.failure
                notes["pace"] = [notes["pace"][0] + outcome.seconds, notes["pace"][1] + outcome.steps]
                write()
    except BaseException:
        with suppress(OSError):
            write()
        raise
    usable = [job for job in jobs if job.name not in notes["failed"] and _is_finished(job, folder)]
    trained = [
        TrainedRun(job.setting, job.seed, train_job(plan, job, data, folder / job.name)) for job in usable
    ]
    return TrainedRuns(tuple(trained), tuple(_in_words(notes)))


def _is_over(job: Job, folder: Path, notes: dict[str, Any]) -> bool:
    return job.name in notes["left_out"] or job.name in notes["failed"] or _is_finished(job, folder)


def _is_finished(job: Job, folder: Path) -> bool:
    return steps_in(folder / job.name / WEIGHTS) >= job.steps


def _is_late(job: Job, notes: dict[str, Any], spent: float, seconds: float | None) -> bool:
    """Whether a run that begins now would end too long after the time."""
    each = _seconds_per_step(notes)
    if seconds is None or each is None:
        return False
    return spent + each * job.steps > _LATE * seconds


def _seconds_per_step(notes: dict[str, Any]) -> float | None:
    """Of one run, by the runs so far with all that ran beside them; None if there are none."""
    spent, steps = notes["pace"]
    return spent / steps if steps else None


def _read_notes(path: Path) -> dict[str, Any]:
    """What is kept of all runs together.

    ``spent``: seconds of training by the clock. ``pace``: seconds and steps of the runs, each by itself. ``begun``,
    ``failed`` and ``left_out``: which runs. ``final_steps``: of the last ones.
    """
    empty: dict[str, Any] = {
        "spent": 0.0,
        "pace": [0.0, 0],
        "begun": [],
        "failed": {},
        "left_out": [],
        "final_steps": None,
    }
    try:
        return {**empty, **read_json(path)}
    except FileNotFoundError:
        return empty
    except DataError:  # times are all that is lost
        return empty


def _in_words(notes: dict[str, Any]) -> list[str]:
    words = []
    if notes["left_out"]:
        count = len(notes["left_out"])
        words.append(
            f"The machine was slower than it was measured at the beginning, so {count} of the planned runs "
            f"{'was' if count == 1 else 'were'} left out to keep to the time."
        )
    if notes["failed"]:
        count = len(notes["failed"])
        words.append(
            f"{count} runs failed: their numbers grew without bound, and they are not used."
            if count > 1
            else "One run failed: its numbers grew without bound, and it is not used."
        )
    return words


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
