"""Who does the runs of a study: one small interface, and the processes of this machine behind it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from unweave.errors import DiskFullError, UnweaveError
from unweave.study.folder import StudyFolder, count_crash_of
from unweave.study.worker import DISK_FULL, INTERRUPTED, activity_file

Watch = Callable[[], bool]  # called now and then while the work goes on; False: everything is done
_POLL_SECONDS, _STOP_SECONDS = 0.25, 120.0
_MAX_FAILED_STARTS = 3  # of each process
_MAX_IDLE_POLLS = 20  # of workers that ended with nothing to do, though runs are left
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


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
                            raise UnweaveError(_end_of_log(folder, number, code))
                        workers[number] = self._start(folder, number)
                if idle_polls > _MAX_IDLE_POLLS:
                    raise UnweaveError(f"{folder.path}: another command has changed the study; start again")
                time.sleep(_POLL_SECONDS)
        finally:
            _stop(workers)

    def _start(self, folder: StudyFolder, number: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "unweave.study.worker", str(folder.root.resolve()), folder.name]
        command += ["--threads", str(self.threads), "--device", self.device, "--parent", str(os.getpid())]
        environment = {**os.environ, **thread_variables(self.threads)}
        with open(_log(folder, number), "ab") as log:
            # A session of its own: Ctrl-C reaches the command, which then stops its workers.
            return subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables that hold a process to a number of threads."""
    return {name: str(threads) for name in _THREAD_VARIABLES}


def _stop(workers: list[subprocess.Popen[bytes]]) -> None:
    """Let workers write a checkpoint and end; those that do not are killed."""
    for worker in workers:
        if worker.poll() is None:
            worker.send_signal(signal.SIGINT)
    deadline = time.monotonic() + _STOP_SECONDS
    for worker in workers:
        try:
            worker.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()


def _log(folder: StudyFolder, number: int) -> str:
    return str(folder.workers / f"worker-{number}.log")


def _end_of_log(folder: StudyFolder, number: int, code: int) -> str:
    path = _log(folder, number)
    with open(path, errors="replace") as file:
        tail = file.read().strip().splitlines()[-5:]
    return f"workers end at once (exit code {code}); the log {path} ends with:\n" + "\n".join(tail)
