"""A worker process: takes one unfinished run after the other until none is left.

    python -m unweave.study.worker ROOT STUDY [--threads 1] [--device auto]

Any number of workers may share a folder, started by one command or several, on one machine or several that see the
same file system: each takes the runs that nobody holds the lock of.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from unweave.errors import DiskFullError
from unweave.files import write_text
from unweave.processes import DISK_FULL, INTERRUPTED, end_with, remember_interrupts
from unweave.study.folder import StudyFolder, open_study, process_name

if TYPE_CHECKING:
    from unweave.study.planning import Job

_WAIT_SECONDS, _REPORT_SECONDS = 0.5, 1.0


def main(arguments: list[str] | None = None) -> int:
    """Work on a study; the exit code is 0 when nothing is left to do, 130 after an interruption."""
    parser = argparse.ArgumentParser(prog="python -m unweave.study.worker")
    parser.add_argument("root", type=Path)
    parser.add_argument("study")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--parent", type=int, default=None, help="end when this process does")
    options = parser.parse_args(arguments)
    try:
        return _work(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except DiskFullError as error:
        print(error, file=sys.stderr)
        return DISK_FULL


def _work(options: argparse.Namespace) -> int:
    check_interrupts = remember_interrupts()
    if options.parent is not None:
        end_with(options.parent)
    import torch  # takes seconds: only now, so that a parent that is gone is noticed before

    from unweave import extensions

    torch.set_num_threads(options.threads)
    folder = open_study(options.root, options.study)
    sys.path.append(str(Path.cwd()))  # for the user's modules; at the end, so that none hides another
    extensions.load(folder.study.imports)
    from unweave.study import perform  # noqa: F401  (the rest of what takes long to import)

    check_interrupts()
    work(folder, options.device)
    return 0


def work(folder: StudyFolder, device: str = "auto") -> None:
    """Take runs of a study until all are done or failed."""
    from unweave.study.perform import perform

    activity = Activity(folder.workers)
    try:
        activity.idle("looking for runs that are left")
        left = folder.pending()
        while left:
            progressed = False
            for job in left:
                outcome = perform(folder, job, device, activity.working)
                progressed |= outcome not in ("busy", "waiting")
                activity.finished += outcome == "done"
            left = folder.pending()
            if left and not progressed:  # others hold them all, or what they need; one may die
                activity.idle("waiting for runs that others hold")
                time.sleep(_WAIT_SECONDS)
    finally:
        activity.close()


def activity_file(folder: Path, pid: int) -> Path:
    """Where a worker of this machine writes what it does, from when it begins until it ends in good order."""
    return folder / f"{process_name(pid)}.json"


class Activity:
    """What this worker does, in a small file for whoever watches the study."""

    def __init__(self, folder: Path) -> None:
        self.path = activity_file(folder, os.getpid())
        self.started, self.written = time.time(), 0.0
        self.began, self.run = self.started, ""
        self.finished = 0

    def working(self, job: Job, part: str, share: float) -> None:
        """Write what is done now; at most once a second."""
        if job.identity != self.run:
            self.run, self.began = job.identity, time.time()
        if time.monotonic() - self.written > _REPORT_SECONDS or share == 0.0:
            self._write({"run": job.identity, "what": str(job), "part": part, "share": share})

    def idle(self, what: str) -> None:
        """Write that no run is worked on right now."""
        self.run, self.began = "", time.time()
        self._write({"run": "", "what": what, "part": "", "share": 0.0})

    def close(self) -> None:
        """The worker ends."""
        self.path.unlink(missing_ok=True)

    def _write(self, current: dict[str, object]) -> None:
        self.written = time.monotonic()
        process = {"host": socket.gethostname(), "pid": os.getpid()}
        times = {"time": time.time(), "started": self.started, "began": self.began}
        with suppress(OSError):  # who watches knows less; a disk that is full is the run's to tell
            write_text(self.path, json.dumps({**process, **times, "finished": self.finished, **current}))


if __name__ == "__main__":
    sys.exit(main())
