"""Doing one run of a study: train, encode, measure; each part is kept and never done twice."""

from __future__ import annotations

import json
import shutil
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from filelock import Timeout

from unweave.data import Dataset, load
from unweave.files import remove_leftovers, write_text
from unweave.methods import EncodesWithLabels, Method, create
from unweave.study.attempts import ATTEMPTS, begin
from unweave.study.job import Job
from unweave.study.measuring import SCORES, measure
from unweave.study.results import SCORE_COLUMNS, split_representation
from unweave.study.store import StudyFolder
from unweave.study.units import UDR, Unit, applicable, with_labels
from unweave.training import Callback, train
from unweave.training.run import STATE, steps_done

Outcome = Literal["done", "failed", "busy"]
Tell = Callable[[Job, str, float], None]  # a run, what is done of it, and how much of that (0 to 1)
_OF_TRAIN = ("steps", "batch_size", "learning_rate", "precision")


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
    except KeyboardInterrupt:
        folder.attempts(job.identity).unlink(missing_ok=True)  # not the run's fault
        raise
    except Exception as error:
        folder.fail(job, f"{type(error).__name__}: {error}", traceback.format_exc())
        return "failed"
    finally:
        lock.release()


@lru_cache(maxsize=2)
def load_data(name: str, size: int | None) -> Dataset:
    """A data set by name, or a folder of images."""
    return load(name, image_size=size)


def put_together(job: Job) -> tuple[Method, Dataset]:
    """A run's method, as yet untrained, and its data."""
    data = load_data(job.data, job.training["image_size"])
    settings = {name: value for name, value in job.training.items() if name not in (*_OF_TRAIN, "image_size")}
    return create(job.method, data, **settings, **job.hyperparameters), data


def _finish(folder: StudyFolder, job: Job, device: str, tell: Tell) -> None:
    tell(job, "loading", 0.0)
    method, data = put_together(job)
    place = folder.run(job.identity)
    for part in (place, place / SCORES):
        remove_leftovers(part)  # we hold the lock: nobody else writes here
    start = time.monotonic()
    run = train(
        method,
        data,
        seed=job.seed,
        device=device,
        out=place,
        callbacks=[_Told(job, job.training["steps"], tell)],
        pictures=False,
        log_every=max(1, min(100, job.training["steps"] // 20)),
        keep_memory=True,
        **{name: job.training[name] for name in _OF_TRAIN},
    )
    seconds = time.monotonic() - start
    write_text(place / "job.json", json.dumps(job.as_dict(), indent=1))
    modes = [mode for mode in _label_modes(method) if mode in folder.study.evaluation.labels]
    wanted = with_labels([unit for unit in folder.units if applicable(unit, data)], modes)
    measure(run, data, wanted, lambda unit, share: tell(job, unit, share))
    (place / STATE).unlink(missing_ok=True)  # the optimiser's: three quarters of a run's bytes
    if not folder.study.evaluation.keep_codes:
        shutil.rmtree(place / "codes", ignore_errors=True)
    _conclude(folder, job, wanted, seconds)


def _label_modes(method: Method) -> Sequence[str]:
    return method.label_modes if isinstance(method, EncodesWithLabels) else ()


class _Told(Callback):
    """Tells how far the training of a run is."""

    def __init__(self, job: Job, steps: int, tell: Tell) -> None:
        self.job, self.steps, self.tell = job, steps, tell

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        self.tell(self.job, "training", step / self.steps)


def _conclude(folder: StudyFolder, job: Job, wanted: Sequence[Unit], seconds: float) -> None:
    """Gather a run's scores into the one file that says that it is done."""
    rows = []
    for unit in wanted:
        if unit.metric != UDR:
            kept = json.loads((folder.run(job.identity) / SCORES / unit.file).read_text())
            for metric, representation, value in kept["rows"]:
                codes, _ = split_representation(representation)  # in one word if an older version wrote it
                rows.append([metric, codes, unit.labels or "", value, unit.protocol, kept["seconds"]])
    told = {
        "columns": SCORE_COLUMNS,
        "rows": rows,
        "training_seconds": seconds,
        "finished": time.time(),
    }
    write_text(folder.run(job.identity) / folder.done_file, json.dumps(told))


def _gave_up(folder: StudyFolder, job: Job) -> bool:
    """Note that this process begins with a run; whether it took down too many before, without getting on."""
    place = folder.run(job.identity)
    scores = [path for path in (place / SCORES).glob("*") if not path.name.startswith(".")]
    if begin(folder.attempts(job.identity), [steps_done(place), len(scores)]):
        return False
    folder.fail(job, f"the process that worked on it died {ATTEMPTS} times", "")
    return True
