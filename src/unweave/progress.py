"""Long work shows itself: a bar on a terminal, a log line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import DownloadColumn, TransferSpeedColumn
from rich.text import Text

Advance = Callable[[int], None]

_QUIET_SECONDS = 1.0  # work that ends sooner than this says nothing
_LOG_SECONDS = 10.0


@contextmanager
def progress(description: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Report the progress of a loop on standard error: ``with progress(…) as advance: advance(64)``.

    ``unit`` is what is counted ("images"); "bytes" are shown as megabytes.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console, unit) as bar:
            task = bar.add_task(description, total=total)
            yield lambda n: bar.update(task, advance=n)
    else:
        log = _Log(description, total, unit)
        yield log.advance
        log.close()


def _bar(console: Console, unit: str) -> Progress:
    amount: list[ProgressColumn] = (
        [DownloadColumn(), TransferSpeedColumn()] if unit == "bytes" else [MofNCompleteColumn(), _Rate(unit)]
    )
    columns = [TextColumn("{task.description}"), BarColumn(), *amount, TimeRemainingColumn()]
    return Progress(*columns, console=console, transient=False)


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} {self.unit}/s" if speed else "")


class _Log:
    """Plain lines for a file or a pipe."""

    def __init__(self, description: str, total: int | None, unit: str) -> None:
        self.description, self.total, self.unit = description, total, unit
        self.done = 0
        self.start = time.monotonic()
        self.last = self.start

    def advance(self, n: int) -> None:
        self.done += n
        now = time.monotonic()
        if now - self.last >= _LOG_SECONDS:
            self.last = now
            self._print(now)

    def close(self) -> None:
        now = time.monotonic()
        if now - self.start >= _QUIET_SECONDS:
            self._print(now)

    def _print(self, now: float) -> None:
        seconds = max(now - self.start, 1e-9)
        scale, unit = (1e-6, "MB") if self.unit == "bytes" else (1.0, self.unit)
        rate = self.done / seconds
        of = f"/{self.total * scale:,.0f}" if self.total else ""
        left = f", {(self.total - self.done) / rate:,.0f} s left" if self.total and rate and self.done < self.total else ""
        line = f"{self.description}: {self.done * scale:,.0f}{of} {unit}, {rate * scale:,.0f} {unit}/s{left}"
        print(line, file=sys.stderr, flush=True)
