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

from unweave.errors import UnweaveError
from unweave.study.attempts import blame_run_of
from unweave.study.store import StudyFolder
from unweave.study.worker import INTERRUPTED, told_by
from unweave.training.devices import create_fabric

Watch = Callable[[], bool]  # called now and then while the work goes on; False: everything is done
_POLL_SECONDS, _STOP_SECONDS = 0.25, 120.0
_STILLBORN = 3  # so many for each process, and we give up
_PUZZLED = 20  # looks at workers that found nothing to do, though there is
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class Executor(Protocol):
    """Brings all pending runs of a study to an end: done, or recorded as failed."""

    def run(self, folder: StudyFolder, watch: Watch) -> None:
        """Return when ``watch`` says that everything is done; on an interruption stop the work and raise it."""


@dataclass(frozen=True)
class Local:
    """Worker processes on this machine, each with its own number of threads. One that dies is replaced."""

    processes: int = 1
    threads: int = 1
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.device not in ("auto", "cpu"):
            create_fabric(
                self.device, 1, "32-true", "auto"
            )  # one that is not there is told now, not by every run

    def run(self, folder: StudyFolder, watch: Watch) -> None:
        """Keep the workers alive until all is done. A run that takes its worker down is the worker's to give up."""
        folder.workers.mkdir(parents=True, exist_ok=True)
        workers: list[subprocess.Popen[bytes]] = []
        stillborn = puzzled = 0
        try:
            workers += [self._start(folder, place) for place in range(self.processes)]
            while watch():
                puzzled += 1
                for place, worker in enumerate(workers):
                    code = worker.poll()
                    if code != 0:
                        puzzled = 0
                    if code:
                        if code != INTERRUPTED:
                            blame_run_of(folder, worker.pid)
                        stillborn = 0 if told_by(folder.workers, worker.pid).exists() else stillborn + 1
                        if stillborn >= _STILLBORN * self.processes:
                            raise UnweaveError(_last_words(folder, place, code))
                        workers[place] = self._start(folder, place)
                if puzzled > _PUZZLED:
                    raise UnweaveError(f"{folder.folder}: another command has changed the study; start again")
                time.sleep(_POLL_SECONDS)
        finally:
            _stop(workers)

    def _start(self, folder: StudyFolder, place: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "unweave.study.worker", str(folder.root.resolve()), folder.name]
        command += ["--threads", str(self.threads), "--device", self.device, "--parent", str(os.getpid())]
        environment = {**os.environ, **thread_variables(self.threads)}
        with open(_log(folder, place), "ab") as log:
            # A session of its own: Ctrl-C reaches the command, which then tells its workers.
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


def _log(folder: StudyFolder, place: int) -> str:
    return str(folder.workers / f"worker-{place}.log")


def _last_words(folder: StudyFolder, place: int, code: int) -> str:
    path = _log(folder, place)
    with open(path, errors="replace") as file:
        tail = file.read().strip().splitlines()[-5:]
    return f"workers end at once (exit code {code}); the log {path} ends with:\n" + "\n".join(tail)
