"""What a process of a Ray cluster does: one run of a study."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from unweave.errors import DataError
from unweave.study.job import Job
from unweave.study.place import PLAN
from unweave.study.ray_storage import Storage, StorageError, perform_away
from unweave.study.store import StudyFolder
from unweave.study.work import load_data, perform
from unweave.study.worker import Teller

_TROUBLE_SECONDS = 5.0  # a node that can do nothing takes a task so often, not thousands


@dataclass(frozen=True)
class Work:
    """What tasks have in common."""

    folder: StudyFolder
    threads: int
    device: str
    storage: str | None
    start: str  # where the command was started: relative names of image folders are from there


@dataclass(frozen=True)
class Answer:
    """What a task says: the outcome of its run, or that its node cannot do runs; and the record of why."""

    node: str
    outcome: str
    why: str = ""


def do_run(work: Work, job: Job) -> Answer:
    """The task: one run, in a process of the cluster."""
    import ray
    import torch

    torch.set_num_threads(work.threads)
    if Path(work.start).is_dir():
        os.chdir(work.start)
    node = ray.get_runtime_context().get_node_id()
    try:
        return Answer(node, *_perform(work, job))
    except (DataError, StorageError, OSError) as error:  # the run cannot help it: another node may do it
        time.sleep(_TROUBLE_SECONDS)
        return Answer(node, "trouble", f"{socket.gethostname()}: {error}")


def _perform(work: Work, job: Job) -> tuple[str, str]:
    folder = work.folder
    load_data(job.data, job.training["image_size"])
    if work.storage is not None:
        return perform_away(folder, job, work.device, lambda job, part, share: None, Storage(work.storage))
    if not (folder.folder / PLAN).exists():
        raise DataError(f"{folder.folder}: is not to be seen here; share it, or give a storage")
    teller = _teller(folder.workers)
    try:
        outcome = perform(folder, job, work.device, teller.tell)
        teller.finished += outcome == "done"
    finally:
        teller.close()
    return outcome, ""


@lru_cache(maxsize=1)
def _teller(folder: Path) -> Teller:
    """One for all tasks that a process does: it counts them."""
    return Teller(folder)
