"""A study with its plan and its folder: which runs are done, which failed, which are left."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from unweave.errors import DataError
from unweave.files import write_text
from unweave.study.job import Job, plan
from unweave.study.place import PLAN, SPEC, Place
from unweave.study.source import Source
from unweave.study.spec import Study, load_study
from unweave.study.units import Unit, identity, units


@dataclass(frozen=True)
class StudyFolder(Place):
    """A study with its plan, and where its files are."""

    study: Study
    jobs: Sequence[Job]
    source: Source | None = None

    @cached_property
    def units(self) -> list[Unit]:
        """What is measured of each run."""
        return units(self.study.evaluation, self.source)

    @cached_property
    def done_file(self) -> str:
        """The file of a run that has all the study's scores."""
        return f"evaluation-{identity(self.units, self.study.evaluation.labels)}.json"

    def is_done(self, job: Job) -> bool:
        """Whether a run has everything that the study asks for."""
        return (self.run(job.identity) / self.done_file).exists()

    def failure(self, job: Job) -> Path:
        """Why a run failed. What a study with other metrics could not measure is not this one's."""
        return self.failure_file(job.identity, self.done_file)

    def has_failed(self, job: Job) -> bool:
        """Whether a run failed and was not asked for again."""
        return self.failure(job).exists() and not self.is_done(job)

    def pending(self) -> list[Job]:
        """The runs that are neither done nor failed."""
        return [job for job in self.jobs if not self.is_done(job) and not self.has_failed(job)]

    def write(self) -> None:
        """Write down the study and its plan."""
        write_text(self.folder / SPEC, self.study.dump())
        rows = [[job.identity, job.data, job.method, job.strength, job.seed] for job in self.jobs]
        write_text(self.folder / PLAN, json.dumps({"done": self.done_file, "runs": rows}))

    def fail(self, job: Job, error: str, trace: str) -> None:
        """Record that a run failed."""
        told = {"run": job.identity, "error": error, "trace": trace, "time": time.time(), **job.as_dict()}
        write_text(self.failure(job), json.dumps(told, indent=1))

    def forgive(self) -> int:
        """Forget the failures of the study's runs, so that they are tried again; how many there were."""
        failed = [job for job in self.jobs if self.has_failed(job)]
        for job in failed:
            self.attempts(job.identity).unlink(missing_ok=True)
            self.failure(job).unlink(missing_ok=True)
        return len(failed)

    def failures(self) -> list[dict[str, Any]]:
        """What is known of each failed run."""
        found = []
        for job in self.jobs:
            if self.has_failed(job):
                told = json.loads(self.failure(job).read_text())
                found.append({**told, "strength": job.strength, "strength_name": job.strength_name})
        return found


def open_study(root: Path, name: str) -> StudyFolder:
    """A study that was started in a folder."""
    path = root / name / SPEC
    if not path.exists():
        raise DataError(f"{root / name}: no study was started there; 'unweave study run' does")
    study, source = load_study(path)
    return StudyFolder(root, name, study, plan(study, source), source)
