"""How far a study is, read from its folder without loading anything heavy."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unweave.errors import DataError
from unweave.files import read_json
from unweave.study.folder import TRAINED, StudyPaths, needs_failed

_STALE_SECONDS = 3600.0  # of a worker on another machine that writes nothing: one metric may take minutes


_UNKNOWN = {"host": "", "pid": 0, "time": 0.0, "started": 0.0, "finished": 0}
_UNKNOWN |= {"run": "", "what": "", "part": "", "share": 0.0}


@dataclass(frozen=True)
class Status:
    """Counts of runs by state, over all and per data set and method; what the workers do; why runs failed.

    ``problems`` are those of runs that ended, such as a GAN that has collapsed: their run, data, method, seed, problem.
    """

    name: str
    counts: Counter[str]
    groups: dict[tuple[str, str], Counter[str]]
    workers: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    seconds_left: float | None
    blocked: int = 0  # of the waiting runs, those that need another one first
    problems: Sequence[dict[str, Any]] = ()


def status(paths: StudyPaths) -> Status:
    """The state of a study: runs are done, failed, running or waiting."""
    plan = paths.read_plan()
    workers = living_workers(paths)
    running = {worker["run"] for worker in workers}
    suffix = paths.failure_suffix(plan["done"])
    failed = {path.name.removesuffix(suffix) for path in (paths.root / "state").glob(f"*{suffix}")}
    groups: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    failures: dict[str, dict[str, Any]] = {}
    runs, done_file = str(paths.runs), plan["done"]
    untrained: set[str] = set()
    blocked = 0
    problems: list[dict[str, Any]] = []
    for job, data, method, strength, seed, _, *needs in plan["runs"]:  # after those that it needs
        missing = [stage for one in needs for stage in one.values() if stage in untrained]
        blamed = next((stage for stage in missing if stage in failures), None)
        if os.path.exists(f"{runs}/{job}/{done_file}"):  # noqa: PTH110  (thousands of them: Path is slow)
            state = "done"
            about = {"run": job, "data": data, "method": method, "seed": seed}
            problems += [{**about, "problem": problem} for problem in paths.read_problems(job)]
        elif job in failed:
            state = "failed"
            about = {"data": data, "method": method, "strength": strength, "seed": seed}
            failures[job] = {**paths.read_failure(job, done_file), **about}
        elif blamed is not None:
            state = "failed"
            about = {"run": job, "data": data, "method": method, "strength": strength, "seed": seed}
            failures[job] = {**about, "error": _why(failures[blamed]), "blamed": True}
        else:
            state = "running" if job in running else "waiting"
            blocked += state == "waiting" and bool(missing)
        if state != "done" and not os.path.exists(f"{runs}/{job}/{TRAINED}"):  # noqa: PTH110
            untrained.add(job)
        groups[data, method][state] += 1
    counts: Counter[str] = sum(groups.values(), Counter())
    left = seconds_left(counts["running"] + counts["waiting"], workers)
    return Status(paths.name, counts, dict(groups), workers, list(failures.values()), left, blocked, problems)


def _why(failure: dict[str, Any]) -> str:
    """Why a run has failed that needs this failed one; of several in a row the first is to blame."""
    if failure.get("blamed"):
        return str(failure["error"])
    what = f"{failure['method']} on {failure['data']}, seed {failure['seed']}"
    return needs_failed(failure["run"], what, failure["error"])


def living_workers(paths: StudyPaths) -> list[dict[str, Any]]:
    """What the workers that are alive do. The files of dead ones are removed."""
    alive = []
    for path in sorted(paths.workers.glob("[!.]*.json")):
        try:
            activity = {**_UNKNOWN, **read_json(path)}
            if any(isinstance(activity[key], str) != isinstance(_UNKNOWN[key], str) for key in _UNKNOWN):
                raise TypeError(f"{path}: a text instead of a number, or the other way round")
            alive_now = _alive(activity)
        except (OSError, DataError, TypeError, ValueError, OverflowError):
            continue  # it ended just now, or what it wrote is damaged
        if alive_now:
            alive.append(activity)
        else:
            path.unlink(missing_ok=True)
    return alive


def worker_activity(workers: Sequence[dict[str, Any]]) -> str:
    """What living workers do, in a few words for a progress bar."""
    return "; ".join(
        f"{activity['what']} ({activity['part']} {activity['share']:.0%})"
        for activity in workers
        if activity["run"]
    )


def _alive(activity: dict[str, Any]) -> bool:
    if activity["host"] == socket.gethostname():
        pid = activity["pid"]
        return Path(f"/proc/{pid}").exists() if Path("/proc").exists() else _signalled(pid)
    return bool(time.time() - activity["time"] < _STALE_SECONDS)


def _signalled(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def seconds_left(unfinished: int, workers: Sequence[dict[str, Any]]) -> float | None:
    """What the unfinished runs take with the workers that are alive now; None if that is not known yet.

    A run takes as long as those did that these workers have finished, or, before there are any, as those under way
    will at their pace. What was done of the runs under way is done.
    """
    now = time.time()
    busy = [(now - w.get("began", w["started"]), w) for w in workers if w["run"]]
    finished = sum(w["finished"] for w in workers)
    if finished:
        under_way = sum(seconds for seconds, _ in busy)
        each = (sum(now - w["started"] for w in workers) - under_way) / finished
    else:
        paces = [seconds / w["share"] for seconds, w in busy if w["part"] == "training" and w["share"]]
        if not paces:
            return None
        each = sum(paces) / len(paces)
    if not unfinished or not workers:
        return None
    rest = [max(each - seconds, 0.0) for seconds, _ in busy]
    waiting = max(unfinished - len(busy), 0)
    return float(max((waiting * each + sum(rest)) / len(workers), *rest, each if waiting else 0.0))
