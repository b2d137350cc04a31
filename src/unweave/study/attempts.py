"""Runs that take their process down are given up at last; runs whose processes others kill are not.

A process that dies cannot tell why. Whoever started it, and lived to see it die, counts that against the run: the
command for its workers, the driver of a Ray cluster for its tasks. Where a machine goes down with everything on it, or
the command is killed and its workers end with it, nobody does.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from unweave.files import write_text
from unweave.study.place import Place

ATTEMPTS = 5  # a run that takes its process down so often without getting on has failed


def process_name(pid: int) -> str:
    """A process of this machine, among those of all machines that share a folder."""
    return f"{socket.gethostname()}-{pid}"


def begin(attempts: Path, progress: Sequence[int]) -> bool:
    """Note that this process begins with a run that is as far as ``progress``; False if it is to be given up."""
    told = _read(attempts)
    if told.get("progress") != progress or "crashes" not in told:
        told = {"progress": progress, "crashes": 0, "begun": []}
    if told["crashes"] >= ATTEMPTS:
        return False
    write_text(attempts, json.dumps({**told, "begun": [*told["begun"], process_name(os.getpid())]}))
    return True


def blame(attempts: Path) -> None:
    """Count against a run that a process died of it."""
    told = _read(attempts)
    if "crashes" in told:
        write_text(attempts, json.dumps({**told, "crashes": told["crashes"] + 1}))


def blame_run_of(place: Place, pid: int) -> None:
    """Count against the run, if any, that a process of this machine was on when it died."""
    every = place.attempts("*")
    for path in every.parent.glob(every.name):
        if process_name(pid) in _read(path).get("begun", ()):
            blame(path)


def _read(path: Path) -> dict[str, Any]:
    with suppress(FileNotFoundError):  # nobody is on it, or it is done by now
        told: dict[str, Any] = json.loads(path.read_text())
        return told
    return {}
