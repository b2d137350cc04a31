"""A study on disk: run directories that all studies of a folder share, and a folder of its own for the rest.

    ROOT/runs/ID/              a run directory, as 'unweave train' makes it, with scores/ and evaluation-*.json
    ROOT/state/                locks, attempts and failures of runs
    ROOT/STUDY/                study.yaml (the study, resolved), plan.json (its runs), results.parquet, report/, …

A run is finished for a study when its evaluation-*.json for the study's metrics is there. Every file appears whole or
not at all, and whoever works on a run holds its lock, which the operating system frees if the process dies.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from unweave.errors import DataError

SPEC, PLAN = "study.yaml", "plan.json"


@dataclass(frozen=True)
class Place:
    """The files of a study below its root, known without reading the study: enough to watch it."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        """The study's own folder."""
        return self.root / self.name

    @property
    def runs(self) -> Path:
        """The folder of run directories."""
        return self.root / "runs"

    @property
    def workers(self) -> Path:
        """Where workers say what they do."""
        return self.folder / "workers"

    def run(self, job: str) -> Path:
        """A run's directory."""
        return self.runs / job

    def failures_of(self, done_file: str) -> str:
        """How the files end that say why a run failed, in a study whose finished runs have ``done_file``."""
        return f".{done_file.removesuffix('.json')}.failed.json"

    def failure_file(self, job: str, done_file: str) -> Path:
        """Why a run failed: to be trained, or to be measured as the studies with this ``done_file`` ask for."""
        return self.root / "state" / (job + self.failures_of(done_file))

    def attempts(self, job: str) -> Path:
        """How often a run was begun since it last got on."""
        return self.root / "state" / f"{job}.attempts.json"

    def lock(self, job: str) -> FileLock:
        """Held by whoever works on a run."""
        path = self.root / "state" / f"{job}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(path, timeout=0)

    def planned(self) -> dict[str, Any]:
        """What plan.json says: the evaluation's identity, and of each run its id, data, method, strength and seed."""
        try:
            found: dict[str, Any] = json.loads((self.folder / PLAN).read_text())
        except FileNotFoundError as error:
            told = f"{self.folder}: no study was started there; 'unweave study run' does"
            raise DataError(told) from error
        except (OSError, ValueError) as error:
            raise DataError(f"{self.folder / PLAN}: cannot be read ({error})") from error
        return found
