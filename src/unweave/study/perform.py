"""Doing one run of a study: train, encode, measure; each part is kept and never done twice."""

from __future__ import annotations

import json
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from filelock import Timeout

from unweave.data import Dataset, load
from unweave.data.split import part_of_same_split
from unweave.errors import ArgumentError, DamagedFileError, DataError, DiskFullError
from unweave.files import check_no_links, is_full, remove_leftovers, set_aside, write_text
from unweave.methods import EncodesWithLabels, Method, create
from unweave.methods.registry import describe
from unweave.study.folder import ATTEMPTS, PROBLEMS, TRAINED, StudyFolder, begin_attempt
from unweave.study.planning import Job
from unweave.study.scores import applicable, gather, measure, with_labels
from unweave.study.spec import TRAIN_SETTINGS
from unweave.training import Callback, Run, RunSpec, plan, train
from unweave.training.checkpoint import steps_in
from unweave.training.run import SPEC, STATE, WEIGHTS, steps_done
from unweave.training.score_file import SCORES

_REPAIRS = 20  # damaged files of one run that are written again before it is given up
Outcome = Literal["done", "failed", "busy", "waiting"]
OnProgress = Callable[[Job, str, float], None]  # a run, what is done of it, and how much of that (0 to 1)


def perform(
    folder: StudyFolder,
    job: Job,
    device: str = "auto",
    on_progress: OnProgress = lambda job, part, share: None,
) -> Outcome:
    """Do what is left of a run. An error is recorded and ends this run only.

    "busy": another process is on it; "waiting": a run that it needs is not trained yet.
    """
    if folder.is_done(job):
        return "done"
    if not folder.is_ready(job):
        return "failed" if folder.has_failed(job) else "waiting"
    lock = folder.lock(job.identity)
    try:
        lock.acquire()
    except Timeout:
        return "busy"
    try:
        if folder.is_done(job):
            return "done"
        _set_aside_damaged(folder, job)
        if folder.has_failed(job) or _given_up(folder, job):
            return "failed"
        _finish_repaired(folder, job, device, on_progress)
        folder.attempts(job.identity).unlink(missing_ok=True)
        return "done"
    except KeyboardInterrupt:
        folder.attempts(job.identity).unlink(missing_ok=True)  # not the run's fault
        raise
    except Exception as error:
        if is_full(error):  # nor is this, and the next run would fail as well
            folder.attempts(job.identity).unlink(missing_ok=True)
            raise DiskFullError(folder.root) from error
        folder.fail(job, f"{type(error).__name__}: {error}", traceback.format_exc())
        return "failed"
    finally:
        lock.release()


@lru_cache(maxsize=2)
def load_data(
    name: str, size: int | None, split: str | None = None, labels_csv: str | None = None
) -> Dataset:
    """A data set by name, or a folder of images, perhaps with a file of labels; or a part of one."""
    try:
        return load(name, image_size=size, split=split, labels=labels_csv)
    except ArgumentError as error:
        if error.argument == "labels":
            raise ArgumentError("labels_csv", error.value, error.allowed) from error
        raise


def load_scored(job: Job, asked: str | None) -> Dataset:
    """The data that a run is scored on: what it was trained on, or ``asked``, the other part of the same data set."""
    own = job.training.get("split")
    part = None if own is None else part_of_same_split(own, asked)
    return load_data(job.data, job.training["image_size"], part, job.training.get("labels_csv"))


def create_method(job: Job, data: Dataset, stages: Mapping[str, Path | Run]) -> Method:
    """A run's method, as yet untrained, on top of its earlier stages, by hyperparameter: runs, or their folders."""
    taken = [name for name in describe(job.method).settings if name not in job.hyperparameters]
    settings = {name: job.training[name] for name in taken}
    return create(job.method, data, **{**settings, **job.hyperparameters, **stages})


def stand_in(job: Job, data_of: Callable[[Job], Dataset]) -> Run:
    """A run that says it is finished and was never trained: what needs it can be put together to be checked."""
    data = data_of(job)
    method = create_method(job, data, {name: stand_in(each, data_of) for name, each in job.stages.items()})
    settings = {name: job.training[name] for name in TRAIN_SETTINGS}
    return Run(plan(method, data, seed=job.seed, **settings), method, step=settings["steps"], data=data)


def _set_aside_damaged(folder: StudyFolder, job: Job) -> None:
    """Set aside weights and checkpoints of a run whose steps cannot even be read."""
    for name in (WEIGHTS, STATE):
        try:
            steps_in(folder.run(job.identity) / name)
        except DamagedFileError as error:
            _set_aside(error)


def _finish_repaired(folder: StudyFolder, job: Job, device: str, on_progress: OnProgress) -> None:
    """Do what is left of a run; a damaged file of its directory is set aside and written again."""
    for attempt in range(_REPAIRS + 1):
        try:
            return _finish(folder, job, device, on_progress)
        except DamagedFileError as error:
            is_its_own = folder.run(job.identity).resolve() in error.path.resolve().parents
            if attempt == _REPAIRS or not is_its_own:
                raise
            _set_aside(error)


def _set_aside(error: DamagedFileError) -> None:
    if error.path.name == WEIGHTS:  # runs that need this one wait until it is trained again
        (error.path.parent / TRAINED).unlink(missing_ok=True)
    print(
        f"{error}: set aside as {set_aside(error.path).name}, and computed again", file=sys.stderr, flush=True
    )


def _finish(folder: StudyFolder, job: Job, device: str, on_progress: OnProgress) -> None:
    on_progress(job, "loading", 0.0)
    data = load_scored(job, None)
    stages = {name: folder.run(stage.identity) for name, stage in job.stages.items()}
    method = create_method(job, data, stages)
    path = folder.run(job.identity)
    check_no_links(path / SCORES, folder.runs)
    for part in (path, path / SCORES):
        remove_leftovers(part)  # we hold the lock: nobody else writes here
    settings = {name: job.training[name] for name in TRAIN_SETTINGS}
    _repair_spec(path / SPEC, method, data, {**settings, "seed": job.seed})
    start = time.monotonic()
    run = train(
        method,
        data,
        seed=job.seed,
        device=device,
        out=path,
        callbacks=[_TrainingProgress(job, on_progress)],
        pictures=False,
        keep_memory=True,
        log_every=max(1, min(100, job.training["steps"] // 20)),
        **settings,
    )
    seconds = time.monotonic() - start
    if run.problems:
        write_text(path / PROBLEMS, json.dumps({"problems": run.problems}))
    write_text(path / TRAINED, json.dumps(job.as_dict(), indent=1))
    known = method.label_modes if isinstance(method, EncodesWithLabels) else ()
    modes = [mode for mode in known if mode in folder.study.evaluation.labels]
    units = with_labels([unit for unit in folder.units if applicable(unit, data, method)], modes)
    scored = load_scored(job, folder.study.evaluation.split)
    measure(run, scored, units, lambda unit, share: on_progress(job, unit, share))
    (path / STATE).unlink(missing_ok=True)  # the optimiser's: three quarters of a run's bytes
    if not folder.study.evaluation.keep_codes:
        shutil.rmtree(path / "codes", ignore_errors=True)
    gather(path, units, folder.done_file, seconds)


def _repair_spec(path: Path, method: Method, data: Dataset, settings: Mapping[str, Any]) -> None:
    """Write a damaged spec.yaml again: the study knows what it said, and weights know which spec they are of."""
    try:
        if path.exists():
            RunSpec.read(path)
    except DataError as error:
        print(
            f"{error}: set aside as {set_aside(path).name}, and computed again", file=sys.stderr, flush=True
        )
        plan(method, data, **settings).write(path)


class _TrainingProgress(Callback):
    """Reports how far the training of a run is."""

    def __init__(self, job: Job, on_progress: OnProgress) -> None:
        self.job, self.on_progress = job, on_progress

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        self.on_progress(self.job, "training", step / self.job.training["steps"])


def _given_up(folder: StudyFolder, job: Job) -> bool:
    """Note that this process begins with a run; whether it took down too many before, without progress."""
    path = folder.run(job.identity)
    scores = [file for file in (path / SCORES).glob("*") if not file.name.startswith(".")]
    if begin_attempt(folder.attempts(job.identity), [steps_done(path), len(scores)]):
        return False
    folder.fail(job, f"the process that worked on it died {ATTEMPTS} times", "")
    return True
