"""A worker process: takes one unfinished run after the other until none is left.

    python -m unweave.study.worker ROOT STUDY [--threads 1] [--device auto]

Any number of workers may share a folder, started by one command or several, on one machine or several that see the
same file system: each takes the runs that nobody holds the lock of.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

_PARENT_SECONDS, _WAIT_SECONDS, _TELL_SECONDS = 1.0, 0.5, 1.0
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Work on a study; the exit code is 0 when nothing is left to do, 130 after an interruption."""
    parser = argparse.ArgumentParser(prog="python -m unweave.study.worker")
    parser.add_argument("root", type=Path)
    parser.add_argument("study")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--parent", type=int, default=None, help="end when this process does")
    options = parser.parse_args(arguments)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a command in the background hands on a deaf ear
    if options.parent is not None:
        _end_with(options.parent)
    import torch

    torch.set_num_threads(options.threads)
    from unweave.study.store import open_study

    try:
        work(open_study(options.root, options.study), options.device)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def work(folder, device: str = "auto") -> None:  # type: ignore[no-untyped-def]
    """Take runs of a :class:`~unweave.study.store.StudyFolder` until all are done or failed."""
    from unweave.study.work import perform

    teller = Teller(folder.workers)
    try:
        teller.idle("looking for runs that are left")
        left = folder.pending()
        while left:
            moved = False
            for job in left:
                outcome = perform(folder, job, device, teller.tell)
                moved |= outcome != "busy"
                teller.finished += outcome == "done"
            left = folder.pending()
            if left and not moved:  # others hold them all; one may die
                teller.idle("waiting for runs that others hold")
                time.sleep(_WAIT_SECONDS)
    finally:
        teller.close()


def told_by(folder: Path, pid: int) -> Path:
    """The file in which a worker of this machine says what it does, from when it begins until it ends in good order."""
    from unweave.study.attempts import process_name

    return folder / f"{process_name(pid)}.json"


class Teller:
    """Says in a small file what this worker does, for whoever watches the study."""

    def __init__(self, folder: Path) -> None:
        self.path = told_by(folder, os.getpid())
        self.started, self.told = time.time(), 0.0
        self.finished = 0

    def tell(self, job, part: str, share: float) -> None:  # type: ignore[no-untyped-def]
        """Note what is done now; at most once a second."""
        if time.monotonic() - self.told > _TELL_SECONDS or share == 0.0:
            self._write({"run": job.identity, "what": str(job), "part": part, "share": share})

    def idle(self, what: str) -> None:
        """Note that no run is worked on right now."""
        self._write({"run": "", "what": what, "part": "", "share": 0.0})

    def close(self) -> None:
        """The worker ends."""
        self.path.unlink(missing_ok=True)

    def _write(self, told: dict[str, object]) -> None:
        from unweave.files import write_text

        self.told = time.monotonic()
        place = {"host": socket.gethostname(), "pid": os.getpid()}
        times = {"time": time.time(), "started": self.started, "finished": self.finished}
        write_text(self.path, json.dumps({**place, **times, **told}))


def _end_with(parent: int) -> None:
    """End this process when its parent is gone; whatever it was doing is taken up again by the next worker."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
