"""A worker process of a discovery: does what its parent orders, one thing after the other.

    python -m unweave.discovery.worker WORK --parent PID

Orders are lines of its standard input: "train NAME", a job of the list in the folder WORK, or "measure" the speed of
the plan there. Reports are lines of JSON on its standard output. It ends with its input, or with its parent.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TextIO

from unweave.processes import INTERRUPTED, end_with, remember_interrupts


def main(arguments: list[str] | None = None) -> int:
    """Work until there are no more orders: exit code 0; 130 after an interruption."""
    parser = argparse.ArgumentParser(prog="python -m unweave.discovery.worker")
    parser.add_argument("work", type=Path)
    parser.add_argument("--parent", type=int, required=True, help="end when this process does")
    options = parser.parse_args(arguments)
    try:
        check_interrupts = remember_interrupts()
        end_with(options.parent)
        orders, reports = sys.stdin, _take_output()
        import torch  # takes seconds: only now, so that a parent that is gone is noticed before

        torch.set_num_threads(1)
        from unweave.discovery import trainers  # noqa: F401  (the rest of what takes long to import)

        check_interrupts()
        Worker(options.work, orders, reports).work()
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _take_output() -> TextIO:
    """Standard output for reports alone: what any library prints goes to the log."""
    reports = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return reports


class Worker:
    """Follows orders, and reports."""

    def __init__(self, folder: Path, orders: TextIO, reports: TextIO) -> None:
        self.folder, self.orders, self.reports = folder, orders, reports

    def work(self) -> None:
        """Do what is ordered, until there are no more orders."""
        for line in iter(self.orders.readline, ""):
            order, *names = line.split()
            if order == "train":
                self.train(names[0])
            else:
                self.measure()

    def train(self, name: str) -> None:
        """Train a job of the list. Its own errors and those of the disk are reported; any other ends this process."""
        from unweave.data.own.arrays import from_arrays
        from unweave.discovery.runs import RUNS, train_job
        from unweave.discovery.trainers import Orders, Watch, images_to_learn
        from unweave.errors import UnweaveError
        from unweave.files import is_full
        from unweave.training.loop import TrainingError

        watch = Watch(lambda seconds, steps: self.report("steps", seconds, steps))
        try:
            orders = Orders.read(self.folder)
            data = from_arrays(images_to_learn(self.folder), name=orders.data_name)
            job = orders.jobs[name]
            train_job(orders.plan, job, data, self.folder / RUNS / name, keep_memory=True, callbacks=[watch])
        except TrainingError as error:
            self.report("failed", watch.seconds, watch.steps, str(error))
        except Exception as error:
            if not is_full(error) and not isinstance(error, UnweaveError):
                raise
            self.report("full" if is_full(error) else "error", message=str(error))
        else:
            self.report("done", watch.seconds, watch.steps)

    def measure(self) -> None:
        """Measure the plan's speed: when all workers are ready, so that they do so side by side."""
        from unweave.discovery.photographs import stored_images
        from unweave.discovery.trainers import Orders, measure_seconds

        def wait() -> None:
            self.report("ready")
            if not self.orders.readline():
                sys.exit(0)

        plan = Orders.read(self.folder).plan
        seconds = measure_seconds(plan, stored_images(self.folder), keep_memory=True, when_ready=wait)
        self.report("seconds", seconds)

    def report(self, kind: str, time: float = 0.0, steps: int = 0, message: str = "") -> None:
        """Write a line for the parent."""
        print(
            json.dumps({"kind": kind, "time": time, "steps": steps, "message": message}),
            file=self.reports,
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
