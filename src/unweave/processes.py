"""Worker processes of this machine: how many there may be, how they start and stop, and that none stays behind.

A worker is ``python -m MODULE …``: nothing of the script that started it is run again, as it would be by
multiprocessing. It is in a session of its own, so that Ctrl-C reaches the command, which then stops its workers; and it
ends when its parent does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

INTERRUPTED, DISK_FULL = 130, 28  # exit codes of workers
_STOP_SECONDS, _PARENT_SECONDS = 120.0, 1.0
_LAST_LINES = 5  # of a log, in a message
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def cores() -> int:
    """The cores that this process may use.

    Examples
    --------
    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables that hold a process to a number of threads.

    Examples
    --------
    >>> thread_variables(1)["OMP_NUM_THREADS"]
    '1'
    """
    return {name: str(threads) for name in _THREAD_VARIABLES}


# --- in the parent ---------------------------------------------------------------------------------


def start_worker(
    module: str,
    arguments: Sequence[str],
    threads: int,
    log: Path,
    *,
    has_pipes: bool = False,
) -> subprocess.Popen[bytes]:
    """Start ``python -P -m MODULE ARGUMENTS --parent PID``, held to a number of threads.

    With ``-P``, so that a file in the current folder that is called like a module of Python does no harm.

    Parameters
    ----------
    module, arguments
        what is run.
    threads
        that it may use.
    log
        what it prints is appended to this file.
    has_pipes
        connect its standard input and output with this process instead.
    """
    command = [sys.executable, "-P", "-m", module, *arguments, "--parent", str(os.getpid())]
    with open(log, "ab") as file:
        return subprocess.Popen(
            command,
            env={**os.environ, **thread_variables(threads)},
            stdin=subprocess.PIPE if has_pipes else subprocess.DEVNULL,
            stdout=subprocess.PIPE if has_pipes else file,
            stderr=file,
            start_new_session=True,
        )


def stop_workers(workers: Sequence[subprocess.Popen[bytes]]) -> None:
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


def end_of_log(log: Path) -> str:
    """The last words of a worker, for a message."""
    with open(log, errors="replace") as file:
        tail = file.read().strip().splitlines()[-_LAST_LINES:]
    return f"the log {log} ends with:\n" + "\n".join(tail)


# --- in the worker ---------------------------------------------------------------------------------


def remember_interrupts() -> Callable[[], None]:
    """Let SIGINT interrupt, and return a function that does so again if it did before.

    Code that is imported may swallow a KeyboardInterrupt. Then the worker would go on until it is killed.
    """
    received = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received = True
        raise KeyboardInterrupt

    def check() -> None:
        if received:
            raise KeyboardInterrupt

    # A command that a shell runs in the background ignores SIGINT, and its children inherit that.
    signal.signal(signal.SIGINT, handle)
    return check


def end_with(parent: int) -> None:
    """End this process when its parent is gone; the next worker resumes whatever it was doing."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
