"""Doing one run of a study: train, encode, measure; each part is kept and never done twice."""

from __future__ import annotations

import json
import shutil
import time
import traceback
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

from filelock import Timeout

from unweave.data import Dataset, from_folder, registry
from unweave.files import write_text
from unweave.methods import create
from unweave.study.job import Job
from unweave.study.measuring import measure
from unweave.study.store import StudyFolder
from unweave.study.units import UDR, Unit, applicable
from unweave.training import Callback, train
from unweave.training.run import STATE, steps_done

Outcome = Literal["done", "failed", "busy"]
Tell = Callable[[Job, str, float], None]  # a run, what is done of it, and how much of that (0 to 1)
ATTEMPTS = 5  # a run that takes its process down so often without getting on has failed


def perform(
    folder: StudyFolder, job: Job, device: str = "auto", tell: Tell = lambda job, part, share: None
) -> Outcome:
    """Do what is left of a run. An error is recorded and ends this run only; "busy": another process is on it."""
    if folder.is_done(job):
        return "done"
    lock = folder.lock(job.identity)
    try:
        lock.acquire()
    except Timeout:
        return "busy"
    try:
        if folder.is_done(job):
            return "done"
        if folder.has_failed(job) or _gave_up(folder, job):
            return "failed"
        _finish(folder, job, device, tell)
        folder.attempts(job.identity).unlink(missing_ok=True)
        return "done"
    except Exception as error:
        folder.fail(job, f"{type(error).__name__}: {error}", traceback.format_exc())
        return "failed"
    finally:
        lock.release()


@lru_cache(maxsize=2)
def load_data(name: str, size: int | None) -> Dataset:
    """A data set by name, or a folder of images."""
    return registry.load(name) if name in registry.names() else from_folder(name, size=size)


def _finish(folder: StudyFolder, job: Job, device: str, tell: Tell) -> None:
    tell(job, "loading", 0.0)
    settings = dict(job.training)
    data = load_data(job.data, settings.pop("image_size"))
    training = {key: settings.pop(key) for key in ("steps", "batch_size", "learning_rate", "precision")}
    method = create(job.method, data, **settings, **job.hyperparameters)
    place = folder.run(job.identity)
    start = time.monotonic()
    run = train(
        method,
        data,
        seed=job.seed,
        device=device,
        out=place,
        callbacks=[_Told(job, training["steps"], tell)],
        log_every=max(1, min(100, training["steps"] // 20)),
        **training,
    )
    seconds = time.monotonic() - start
    write_text(place / "job.json", json.dumps(job.as_dict(), indent=1))
    wanted = [unit for unit in folder.units if applicable(unit, data)]
    measure(run, data, wanted, lambda unit, share: tell(job, unit, share))
    _conclude(folder, job, wanted, seconds)
    (place / STATE).unlink(missing_ok=True)  # the optimiser's: three quarters of a run's bytes
    if not folder.study.evaluation.keep_codes:
        shutil.rmtree(place / "codes", ignore_errors=True)


class _Told(Callback):
    """Tells how far the training of a run is."""

    def __init__(self, job: Job, steps: int, tell: Tell) -> None:
        self.job, self.steps, self.tell = job, steps, tell

    def on_log(self, step: int, values: dict[str, float]) -> None:
        self.tell(self.job, "training", step / self.steps)


def _conclude(folder: StudyFolder, job: Job, wanted: Sequence[Unit], seconds: float) -> None:
    """Gather a run's scores into the one file that says that it is done."""
    rows = []
    for unit in wanted:
        if unit.metric != UDR:
            kept = json.loads((folder.run(job.identity) / "scores" / unit.file).read_text())
            rows += [[*row, unit.protocol, kept["seconds"]] for row in kept["rows"]]
    told = {"rows": rows, "training_seconds": seconds, "finished": time.time()}
    write_text(folder.run(job.identity) / folder.done_file, json.dumps(told))


def _gave_up(folder: StudyFolder, job: Job) -> bool:
    """Count this attempt; whether there were too many that left nothing behind."""
    place, path = folder.run(job.identity), folder.attempts(job.identity)
    scores = place / "scores"
    progress = [steps_done(place), len(list(scores.iterdir())) if scores.is_dir() else 0]
    before = json.loads(path.read_text()) if path.exists() else {}
    count = before.get("count", 0) + 1 if before.get("progress") == progress else 1
    if count > ATTEMPTS:
        folder.fail(job, f"the process that worked on it died {ATTEMPTS} times", "")
        return True
    write_text(path, json.dumps({"count": count, "progress": progress}))
    return False
