"""A study on disk: run directories that all studies of a folder share, and a folder for the rest of each study.

    ROOT/runs/ID/              a run directory, as 'unweave train' writes it, with scores/ and evaluation-*.json
    ROOT/state/                locks, attempts and failures of runs
    ROOT/STUDY/                study.yaml (the study, resolved), plan.json (its runs), results.parquet, report/, …

A run is finished for a study when its evaluation-*.json for the study's metrics is there. Every file appears whole or
not at all, and whoever works on a run holds its lock, which the operating system frees if the process dies.

A run that needs another one waits until that one is trained, and has failed if that one failed to be: nothing of this
is written down, so that it holds again as soon as the other is tried again.

A process that dies cannot say why. Whoever started it, and lived to see it die, counts that against the run: the
command for its workers, the driver of a Ray cluster for its tasks. A run that takes down too many processes without
progress has failed. Where a machine goes down with everything on it, or the command is killed and its workers end with
it, nothing is counted.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from unweave.errors import DamagedFileError, DataError, shorten
from unweave.files import read_json, write_text
from unweave.study.stored import PREFIX, stored_names

if TYPE_CHECKING:  # to watch a study takes neither torch nor pydantic
    from unweave.study.planning import Job, Plan
    from unweave.study.scores import Unit
    from unweave.study.spec import Study

SPEC, PLAN = "study.yaml", "plan.json"
PROBLEMS = "problems.json"  # of a run: what went wrong in its training though it ended, if anything did
TRAINED = "job.json"  # of a run: what it is; it appears when the training is done
_PLAN_LIMIT = 1 << 30
ATTEMPTS = 5  # a run that takes down so many processes without progress has failed


@dataclass(frozen=True)
class StudyPaths:
    """The files of a study below its root, known without reading the study: enough to watch it."""

    root: Path
    name: str

    @property
    def path(self) -> Path:
        """The study's own folder."""
        return self.root / self.name

    @property
    def runs(self) -> Path:
        """The folder of run directories."""
        return self.root / "runs"

    @property
    def workers(self) -> Path:
        """Where workers write what they do."""
        return self.path / "workers"

    def run(self, identity: str) -> Path:
        """A run's directory."""
        return self.runs / identity

    def failure_suffix(self, done_file: str) -> str:
        """How the files end that say why a run failed, in a study whose finished runs have ``done_file``."""
        return f".{done_file.removesuffix('.json')}.failed.json"

    def failure_file(self, identity: str, done_file: str) -> Path:
        """Why a run failed: in training, or in measuring what the studies with this ``done_file`` ask for."""
        return self.root / "state" / (identity + self.failure_suffix(done_file))

    def attempts(self, identity: str) -> Path:
        """How often a run was begun since its last progress."""
        return self.root / "state" / f"{identity}.attempts.json"

    def lock(self, identity: str) -> FileLock:
        """Held by whoever works on a run."""
        path = self.root / "state" / f"{identity}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(path, timeout=0)

    def read_plan(self) -> dict[str, Any]:
        """What plan.json says: "done", the name of the file of a finished run, and "runs", a list for each run.

        It begins with the run's identity, data, method, strength and seed.
        """
        try:
            content = read_json(self.path / PLAN, _PLAN_LIMIT)
        except FileNotFoundError as error:
            raise _not_started(self.path) from error
        runs = content.get("runs")
        if not isinstance(content.get("done"), str) or not isinstance(runs, list):
            raise DamagedFileError(self.path / PLAN, "it has no runs")
        if not all(map(_is_planned_run, runs)):
            raise DamagedFileError(self.path / PLAN, "a run in it is not a list that begins with its names")
        return content

    def read_problems(self, identity: str) -> list[str]:
        """What went wrong in the training of a run that ended, as far as the file that says so can be read."""
        try:
            return [str(problem) for problem in read_json(self.run(identity) / PROBLEMS)["problems"]]
        except (FileNotFoundError, DataError, KeyError, TypeError):
            return []

    def read_failure(self, identity: str, done_file: str) -> dict[str, Any]:
        """Why a run failed, as far as the file that says so can be read."""
        path = self.failure_file(identity, done_file)
        known = {"run": identity, "data": "?", "method": "?", "seed": "?", "trace": ""}
        try:
            record = read_json(path)
        except FileNotFoundError:  # forgiven just now
            record = {}
        except DataError as error:
            record = {"error": f"unknown: {error}"}
        return {**known, "error": "unknown", **record}


@dataclass(frozen=True)
class StudyFolder(StudyPaths):
    """A study with its plan, and its files: which runs are done, which failed, which are left.

    Examples
    --------
    >>> study, source = uw.study.load_study("demo")
    >>> from pathlib import Path
    >>> folder = uw.study.StudyFolder(Path("out"), study.name, uw.study.plan(study, source))
    >>> len(folder.pending())
    3
    """

    plan: Plan

    @property
    def study(self) -> Study:
        """The study as its file says it."""
        return self.plan.study

    @property
    def jobs(self) -> Sequence[Job]:
        """Its runs."""
        return self.plan.jobs

    @property
    def units(self) -> Sequence[Unit]:
        """What is measured of each run."""
        return self.plan.units

    @property
    def done_file(self) -> str:
        """The name of the file of a run that has all the study's scores."""
        return self.plan.done_file

    def is_done(self, job: Job) -> bool:
        """Whether a run has everything that the study asks for."""
        return (self.run(job.identity) / self.done_file).exists()

    def is_trained(self, job: Job) -> bool:
        """Whether a run is trained, whatever is still to be measured of it."""
        return (self.run(job.identity) / TRAINED).exists()

    def is_ready(self, job: Job) -> bool:
        """Whether all runs that a run needs are trained."""
        return all(self.is_trained(stage) for stage in job.stages.values())

    def failure(self, job: Job) -> Path:
        """Why a run failed. What a study with other metrics could not measure is not this one's."""
        return self.failure_file(job.identity, self.done_file)

    def has_failed(self, job: Job) -> bool:
        """Whether a run, or the training of one that it needs, failed and was not asked for again."""
        return not self.is_done(job) and (self.failure(job).exists() or self.failed_stage(job) is not None)

    def failed_stage(self, job: Job) -> Job | None:
        """The run to blame, if a run can not begin as the training of one that it needs failed."""
        for stage in job.stages.values():
            if not self.is_trained(stage):
                if self.failure(stage).exists():
                    return stage
                blamed = self.failed_stage(stage)
                if blamed is not None:
                    return blamed
        return None

    def pending(self) -> list[Job]:
        """The runs that are neither done nor failed; those that others need come first."""
        left = [job for job in self.jobs if not self.is_done(job) and not self.has_failed(job)]
        return sorted(left, key=lambda job: -self._heights.get(job.identity, 0))

    @cached_property
    def _heights(self) -> dict[str, int]:
        """Of each run that others need: how many runs, one after the other, wait for it at most."""
        heights: dict[str, int] = {}

        def raise_stages(job: Job, height: int) -> None:
            for stage in job.stages.values():
                if heights.get(stage.identity, 0) < height:
                    heights[stage.identity] = height
                raise_stages(stage, height + 1)

        for job in self.jobs:
            raise_stages(job, 1)
        return heights

    def write(self) -> None:
        """Write the study and its plan; one of the same name that says something else is kept under another name."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self._locked():
            file, text = self.path / SPEC, self.study.dump()
            if file.exists() and file.read_bytes() != text.encode():
                file.replace(file.with_name(f"study-until-{time.strftime('%Y%m%d-%H%M%S')}.yaml"))
            write_text(file, text)
            write_text(self.path / PLAN, self.plan.to_json())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = FileLock(self.path / ".lock", timeout=60)
        try:
            lock.acquire()
        except OSError as error:  # a full disk; a link or a folder in its place
            if isinstance(error, Timeout):
                raise
            raise DataError(f"{self.path / '.lock'}: cannot be locked ({error.strerror or error})") from error
        try:
            yield
        finally:
            lock.release()

    def fail(self, job: Job, error: str, trace: str) -> None:
        """Record that a run failed."""
        record = {"run": job.identity, "error": error, "trace": trace, "time": time.time(), **job.as_dict()}
        write_text(self.failure(job), json.dumps(record, indent=1))

    def forgive(self) -> int:
        """Forget the failures of the study's runs, so that they are tried again; how many there were.

        Runs that need a failed one count too: they are tried after it.
        """
        failed = [job for job in self.jobs if self.has_failed(job)]
        for job in failed:
            self.attempts(job.identity).unlink(missing_ok=True)
            self.failure(job).unlink(missing_ok=True)
        return len(failed)

    def failures(self) -> list[dict[str, Any]]:
        """What is known of each failed run; of one that needs a failed one, which that is and why it failed."""
        return [self._failure_record(job) for job in self.jobs if self.has_failed(job)]

    def _failure_record(self, job: Job) -> dict[str, Any]:
        about = {"strength": job.strength, "strength_name": job.strength_name}
        blamed = None if self.failure(job).exists() else self.failed_stage(job)
        record = self.read_failure((blamed or job).identity, self.done_file)
        record |= {
            "data": (blamed or job).data,
            "method": (blamed or job).method,
            "seed": (blamed or job).seed,
        }
        if blamed is not None:
            error = needs_failed(blamed.identity, str(blamed), record["error"])
            record = {**record, **job.as_dict(), "run": job.identity, "error": error}
        return {**record, **about}


def open_study(root: Path, name: str) -> StudyFolder:
    """A study that was started in a folder, as it was planned then.

    Parameters
    ----------
    root
        the folder of runs and studies: ``--out`` of ``unweave study run``.
    name
        the study's name.

    Examples
    --------
    >>> study, source = uw.study.load_study("demo")
    >>> from pathlib import Path
    >>> uw.study.StudyFolder(Path("out"), "demo", uw.study.plan(study, source)).write()
    >>> len(uw.study.open_study(Path("out"), "demo").jobs)
    3
    """
    from unweave.study.planning import Plan, plan
    from unweave.study.source import read
    from unweave.study.spec import check, load_study

    paths = StudyPaths(root, name)
    if not (paths.path / SPEC).exists():
        raise _not_started(paths.path)
    try:
        content = paths.read_plan() if (paths.path / PLAN).exists() else {}
        if "kinds" in content:
            return StudyFolder(root, name, Plan.from_json(content))
    except DamagedFileError as error:
        print(f"{error}: planned again from {SPEC}", file=sys.stderr)
    names = check(read(paths.path / SPEC)).imports
    if names:  # whoever only reads the results of a study runs no code of it
        raise DataError(
            f"{paths.path / PLAN}: is needed, as the study was planned with code of {shorten(', '.join(names))}, which "
            f"is not imported here; 'unweave study resume {name} --out {root}' does, and plans it again"
        )
    return StudyFolder(root, name, plan(*load_study(paths.path / SPEC)))  # damaged, or of an older version


def _is_planned_run(run: Any) -> bool:
    """Whether a list of plan.json is what ``Plan.to_json`` writes of a run."""
    if not isinstance(run, list) or len(run) < 6:
        return False
    return all(isinstance(name, str) for name in run[:3]) and all(
        isinstance(needs, dict) for needs in run[6:]
    )


def needs_failed(identity: str, what: str, error: str) -> str:
    """Why a run has failed that needs a failed one."""
    return f"needs the run {identity} ({what}), which failed with {error}"


def process_name(pid: int) -> str:
    """A process of this machine, among those of all machines that share a folder."""
    return f"{socket.gethostname()}-{pid}"


def begin_attempt(attempts: Path, progress: Sequence[int]) -> bool:
    """Note that this process begins with a run that is as far as ``progress``; False if the run is given up."""
    record = _read_attempts(attempts)
    if record.get("progress") != progress or "crashes" not in record:
        record = {"progress": progress, "crashes": 0, "begun": []}
    if record["crashes"] >= ATTEMPTS:
        return False
    write_text(attempts, json.dumps({**record, "begun": [*record["begun"], process_name(os.getpid())]}))
    return True


def count_crash(attempts: Path) -> None:
    """Count against a run that a process died of it."""
    record = _read_attempts(attempts)
    if "crashes" in record:
        write_text(attempts, json.dumps({**record, "crashes": record["crashes"] + 1}))


def count_crash_of(paths: StudyPaths, pid: int) -> None:
    """Count against the run, if any, that a process of this machine was on when it died."""
    every = paths.attempts("*")
    for path in every.parent.glob(every.name):
        if process_name(pid) in _read_attempts(path).get("begun", ()):
            count_crash(path)


def _read_attempts(path: Path) -> dict[str, Any]:
    with suppress(
        FileNotFoundError, DamagedFileError
    ):  # nobody is on it, it is done by now, or it begins anew
        record = read_json(path)
        if isinstance(record.get("crashes"), int) and isinstance(record.get("begun"), list):
            return record
    return {}


def _not_started(path: Path) -> DataError:
    stored = f"; results of it are stored: {PREFIX}{path.name}" if path.name in stored_names() else ""
    return DataError(f"{path}: no study was started there; 'unweave study run' does{stored}")
