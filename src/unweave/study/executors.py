"""Who does the runs of a study: one small interface, and the processes of this machine behind it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unweave.errors import DiskFullError, UnweaveError
from unweave.processes import DISK_FULL, INTERRUPTED, end_of_log, start_worker, stop_workers
from unweave.study.folder import StudyFolder, count_crash_of
from unweave.study.worker import activity_file

Watch = Callable[[], bool]  # called now and then while the work goes on; False: everything is done
_POLL_SECONDS = 0.25
_MAX_FAILED_STARTS = 3  # of each process
_MAX_IDLE_POLLS = 20  # of workers that ended with nothing to do, though runs are left


class Executor(Protocol):
    """Whoever brings all pending runs of a study to an end: done, or recorded as failed.

    Examples
    --------
    >>> import time
    >>> class Waiting:
    ...     def run(self, folder, watch):
    ...         while watch():  # others work on the same folder: this one only shows how far they are
    ...             time.sleep(1)
    >>> executor: uw.study.Executor = Waiting()
    """

    def run(self, folder: StudyFolder, watch: Watch) -> None:
        """Return when ``watch`` says that everything is done; on an interruption stop the work and raise it."""


@dataclass(frozen=True)
class Local:
    """Worker processes on this machine. One that dies is replaced.

    Parameters
    ----------
    processes
        how many.
    threads
        of each.
    device
        "auto", "cpu", "cuda", "cuda:1" or "mps".

    Examples
    --------
    >>> uw.study.Local(processes=2)
    Local(processes=2, threads=1, device='auto')
    """

    processes: int = 1
    threads: int = 1
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.device not in ("auto", "cpu"):
            from unweave.training.devices import create_fabric

            create_fabric(
                self.device, 1, "32-true", "auto"
            )  # a missing one is an error now, not of every run

    def run(self, folder: StudyFolder, watch: Watch) -> None:
        """Keep the workers alive until all is done. A run that takes its worker down is the worker's to give up."""
        folder.workers.mkdir(parents=True, exist_ok=True)
        workers: list[subprocess.Popen[bytes]] = []
        failed_starts = idle_polls = 0
        try:
            workers += [self._start(folder, number) for number in range(self.processes)]
            while watch():
                idle_polls += 1
                for number, worker in enumerate(workers):
                    code = worker.poll()
                    if code != 0:
                        idle_polls = 0
                    if code == DISK_FULL:
                        raise DiskFullError(folder.root)
                    if code:
                        if code != INTERRUPTED:
                            count_crash_of(folder, worker.pid)
                        began = activity_file(folder.workers, worker.pid).exists()
                        failed_starts = 0 if began else failed_starts + 1
                        if failed_starts >= _MAX_FAILED_STARTS * self.processes:
                            words = end_of_log(_log(folder, number))
                            raise UnweaveError(f"workers end at once (exit code {code}); {words}")
                        workers[number] = self._start(folder, number)
                if idle_polls > _MAX_IDLE_POLLS:
                    raise UnweaveError(f"{folder.path}: another command has changed the study; start again")
                time.sleep(_POLL_SECONDS)
        finally:
            stop_workers(workers)

    def _start(self, folder: StudyFolder, number: int) -> subprocess.Popen[bytes]:
        arguments = [str(folder.root.resolve()), folder.name]
        arguments += ["--threads", str(self.threads), "--device", self.device]
        return start_worker("unweave.study.worker", arguments, self.threads, _log(folder, number))


def _log(folder: StudyFolder, number: int) -> Path:
    return folder.workers / f"worker-{number}.log"
