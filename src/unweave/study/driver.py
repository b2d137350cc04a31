"""The driver: checks a study, hands its runs to an executor, and collects the results."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Collection
from pathlib import Path

from unweave.data import Dataset
from unweave.errors import ArgumentError, DataError, MissingDataError, UnweaveError
from unweave.files import remove_leftovers
from unweave.methods import Encodes
from unweave.progress import progress
from unweave.study.collecting import collect, set_aside_damaged
from unweave.study.executors import Executor
from unweave.study.folder import StudyFolder
from unweave.study.perform import load_scored, stand_in
from unweave.study.planning import Job, line_of_setting, missing_methods, plan, without_runs
from unweave.study.results import Results
from unweave.study.scores import applicable, check_values
from unweave.study.source import Source
from unweave.study.spec import Study
from unweave.study.status import living_workers, seconds_left, worker_activity
from unweave.training.interrupts import Interrupts

_WATCH_SECONDS = 1.0
_LEFTOVER_SECONDS = 3600.0


def prepare(study: Study, source: Source | None, root: Path, leave_out: Collection[str] = ()) -> StudyFolder:
    """The folder of a study, checked before anything runs: its methods are there, and so is its data.

    Parameters
    ----------
    study, source
        as :func:`unweave.study.load_study` returns them.
    root
        the folder of runs and studies; studies in it share their runs.
    leave_out
        runs, by their identity, that are left out unless others need them: those whose scores are stored elsewhere.

    Examples
    --------
    >>> from pathlib import Path
    >>> text = "{training: {steps: 2}, runs: {data: pendulum, method: vae, seed: 0}, evaluation: {metrics: [mcc]}}"
    >>> _ = Path("small.yaml").write_text(text)
    >>> study, source = uw.study.load_study("small.yaml")
    >>> folder = uw.study.prepare(study, source, Path("out"))
    >>> len(folder.pending())
    1
    """
    folder = StudyFolder(root, study.name, without_runs(plan(study, source), leave_out))
    check_values(study.evaluation, folder.units, source)
    missing = missing_methods(folder.jobs)
    if missing:
        raise ArgumentError("method", ", ".join(missing), "this version of unweave does not have it")
    without_codes: dict[str, None] = {}
    lacking: dict[str, None] = {}
    for job in _kinds(folder.pending()):
        try:
            data = _load_data(job)
            method = stand_in(job, _load_data).method
            if not isinstance(method, Encodes):
                without_codes[job.method] = None
            elif not any(applicable(unit, data, method) for unit in folder.units):
                labels = ", ".join(unit.label for unit in folder.units)
                raise ArgumentError("metrics", labels, "none of them applies to this data")
        except MissingDataError as error:
            lacking[str(error)] = None
        except ArgumentError as error:
            line = line_of_setting(error, job.settings(), source or Source({}))
            raise DataError(f"{line}: {job}: {error}") from error
    if lacking:
        raise MissingDataError("\n".join([*lacking, "Or leave it out: --set data=[…]"]))
    for name in without_codes:
        print(f"{name} gives images no codes: its runs are trained, and have no scores", file=sys.stderr)
    return folder


def _kinds(jobs: list[Job]) -> list[Job]:
    """One run of each kind: seeds and strengths make no difference to whether it can be put together."""

    def kind(job: Job) -> str:
        stages = {name: kind(stage) for name, stage in job.stages.items()}
        return json.dumps([job.data, job.method, job.training, stages], sort_keys=True)

    return list({kind(job): job for job in reversed(jobs)}.values())


def _load_data(job: Job) -> Dataset:
    return load_scored(job, None)


def run(folder: StudyFolder, executor: Executor | None) -> Results:
    """Do all runs that are pending, and collect the results.

    Whatever was done before, in this study or another in the same folder, stays.

    Parameters
    ----------
    folder
        as :func:`prepare` returns it.
    executor
        who does the runs: :class:`Local`, :class:`~unweave.study.ray.RayCluster`, or None if nothing is to be done.

    Examples
    --------
    >>> from pathlib import Path
    >>> text = "{training: {steps: 2}, runs: {data: pendulum, method: vae, seed: 0}, evaluation: {metrics: [mcc]}}"
    >>> _ = Path("small.yaml").write_text(text)
    >>> study, source = uw.study.load_study("small.yaml")
    >>> folder = uw.study.prepare(study, source, Path("out"))
    >>> results = uw.study.run(folder, None)  # uw.study.Local(processes=2) trains
    >>> len(results.table), results.failures
    (0, [])
    """
    folder.write()
    remove_leftovers(folder.path, older_than=_LEFTOVER_SECONDS)  # another command may be writing right now
    set_aside_damaged(folder)
    left = {job.identity: job for job in folder.pending()}
    total = len(folder.jobs)
    bar = progress(folder.name, total, "runs", done=total - len(left))
    with Interrupts() as interrupts, bar as advance:
        watched = 0.0

        def watch() -> bool:
            nonlocal watched
            if (
                interrupts.received is not None
            ):  # Ctrl-C, or the SIGTERM of a cluster that takes its machine back
                raise KeyboardInterrupt
            if time.monotonic() - watched > _WATCH_SECONDS:
                ended = [key for key, job in left.items() if folder.is_done(job) or folder.has_failed(job)]
                for key in ended:
                    del left[key]
                workers = living_workers(folder)
                advance(len(ended), worker_activity(workers), seconds_left(len(left), workers))
                watched = time.monotonic()
            return bool(left)

        if left and executor is not None:
            executor.run(folder, watch)
    return collect(folder)


def check_finished(results: Results) -> None:
    """Raise if runs of the study failed."""
    if results.failures:
        first = results.failures[0]
        raise UnweaveError(
            f"{len(results.failures)} runs failed; the first, {first['method']} on {first['data']}, "
            f"with {first['error']}\n'unweave study status' lists them, 'unweave study resume' tries them again."
        )
