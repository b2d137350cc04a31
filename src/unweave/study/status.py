"""How far a study is, read from its folder without loading anything heavy."""

from __future__ import annotations

import json
import os
import socket
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unweave.study.place import Place

_STALE_SECONDS = (
    3600.0  # a worker on another machine that says nothing for so long: one metric may take minutes
)


@dataclass(frozen=True)
class Status:
    """Counts of runs by state, over all and per data set and method; what the workers do; why runs failed."""

    name: str
    counts: Counter[str]
    groups: dict[tuple[str, str], Counter[str]]
    workers: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    seconds_left: float | None


def status(place: Place) -> Status:
    """The state of a study: runs are done, failed, running or waiting."""
    plan = place.planned()
    workers = living_workers(place)
    running = {worker["run"] for worker in workers}
    ending = place.failures_of(plan["done"])
    failed = {path.name.removesuffix(ending) for path in (place.root / "state").glob(f"*{ending}")}
    groups: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    failures = []
    runs, done_file = str(place.runs), plan["done"]
    for job, data, method, _, _ in plan["runs"]:
        if os.path.exists(f"{runs}/{job}/{done_file}"):  # noqa: PTH110  (thousands of them: Path is slow)
            state = "done"
        elif job in failed:
            state = "failed"
            failures.append(json.loads(place.failure_file(job, plan["done"]).read_text()))
        else:
            state = "running" if job in running else "waiting"
        groups[data, method][state] += 1
    counts: Counter[str] = sum(groups.values(), Counter())
    return Status(place.name, counts, dict(groups), workers, failures, _seconds_left(counts, workers))


def living_workers(place: Place) -> list[dict[str, Any]]:
    """What the workers that are alive say. The files of dead ones are removed."""
    found = []
    for path in sorted(place.workers.glob("[!.]*.json")):
        try:
            told = json.loads(path.read_text())
        except (OSError, ValueError):
            continue  # it ended just now
        if _alive(told):
            found.append(told)
        else:
            path.unlink(missing_ok=True)
    return found


def watch_workers(place: Place) -> str:
    """What the workers do, in a few words for a progress bar."""
    return "; ".join(
        f"{told['what']} ({told['part']} {told['share']:.0%})"
        for told in living_workers(place)
        if told["run"]
    )


def _alive(told: dict[str, Any]) -> bool:
    if told["host"] == socket.gethostname():
        return Path(f"/proc/{told['pid']}").exists() if Path("/proc").exists() else _signalled(told["pid"])
    return bool(time.time() - told["time"] < _STALE_SECONDS)


def _signalled(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _seconds_left(counts: Counter[str], workers: list[dict[str, Any]]) -> float | None:
    """What the runs that are left take at the rate of the workers that are alive now."""
    rate = sum(w["finished"] / max(time.time() - w["started"], 1.0) for w in workers)
    left = counts["running"] + counts["waiting"]
    return left / rate if rate and left else None
