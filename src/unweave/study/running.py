"""Running a study to its end, from wherever it is."""

from __future__ import annotations

import json
import time
from pathlib import Path

from filelock import FileLock

from unweave.errors import ArgumentError, DataError, MissingDataError, UnweaveError
from unweave.progress import progress
from unweave.study.collecting import collect
from unweave.study.executors import Executor
from unweave.study.faults import place_in_grid
from unweave.study.job import Job, missing_methods, plan
from unweave.study.place import SPEC
from unweave.study.results import Results
from unweave.study.source import Source
from unweave.study.spec import Study
from unweave.study.status import watch_workers
from unweave.study.store import StudyFolder
from unweave.study.units import applicable, check_values
from unweave.study.work import put_together
from unweave.training.interrupts import Interrupts

_LOOK_SECONDS = 1.0


def prepare(study: Study, source: Source | None, root: Path) -> StudyFolder:
    """The folder of a study, checked before anything runs: its methods are there, and so is its data."""
    jobs = plan(study, source)
    folder = StudyFolder(root, study.name, study, jobs, source)
    check_values(study.evaluation, folder.units, source)
    missing = missing_methods(list(jobs))
    if missing:
        raise ArgumentError("method", ", ".join(missing), "this version of unweave does not have it")
    for job in _kinds(folder.pending()):
        try:
            data = put_together(job)[1]
            if not any(applicable(unit, data) for unit in folder.units):
                asked = ", ".join(unit.label for unit in folder.units)
                raise ArgumentError("metrics", asked, "none of them applies to this data")
        except MissingDataError as error:
            raise MissingDataError(f"{error}\nOr leave it out: --set data=[…]") from error
        except ArgumentError as error:
            place = place_in_grid(error, job.settings(), source or Source({}))
            raise DataError(f"{place}: {job}: {error}") from error
    return folder


def _kinds(jobs: list[Job]) -> list[Job]:
    """One run of each kind: seeds and strengths make no difference to whether it can be put together."""
    kinds = {(job.data, job.method, json.dumps(job.training, sort_keys=True)): job for job in reversed(jobs)}
    return list(kinds.values())


def run(folder: StudyFolder, executor: Executor | None) -> Results:
    """Do all runs that are pending. Whatever was done before, in this study or another in the same folder, stays."""
    _write_once(folder)
    left = {job.identity: job for job in folder.pending()}
    total = len(folder.jobs)
    bar = progress(folder.name, total, "runs", done=total - len(left))
    with Interrupts() as interrupts, bar as advance:
        looked = 0.0

        def watch() -> bool:
            nonlocal looked
            if (
                interrupts.received is not None
            ):  # Ctrl-C, or the SIGTERM of a cluster that wants its machine back
                raise KeyboardInterrupt
            if time.monotonic() - looked > _LOOK_SECONDS:
                ended = [key for key, job in left.items() if folder.is_done(job) or folder.has_failed(job)]
                for key in ended:
                    del left[key]
                advance(len(ended), watch_workers(folder))
                looked = time.monotonic()
            return bool(left)

        if left and executor is not None:
            executor.run(folder, watch)
    return collect(folder)


def _write_once(folder: StudyFolder) -> None:
    """Write the study down; one of the same name that says something else is not overwritten unnoticed."""
    folder.folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.folder / ".lock", timeout=60):
        path = folder.folder / SPEC
        if path.exists() and path.read_text() != folder.study.dump():
            path.replace(path.with_name(f"study-until-{time.strftime('%Y%m%d-%H%M%S')}.yaml"))
        folder.write()


def check_finished(results: Results) -> None:
    """Raise if runs of the study failed."""
    if results.failures:
        first = results.failures[0]
        raise UnweaveError(
            f"{len(results.failures)} runs failed; the first, {first['method']} on {first['data']}, "
            f"with {first['error']}\n'unweave study status' lists them, 'unweave study resume' tries them again."
        )
