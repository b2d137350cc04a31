"""Long work shows itself: a bar on a terminal, a log line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text


class Advance(Protocol):
    """Called with the number of things done since the last call, and what else to show."""

    def __call__(self, n: int, note: str = "") -> None: ...


_QUIET_SECONDS = 1.0  # work that ends sooner than this says nothing
_LOG_SECONDS = 10.0


@contextmanager
def progress(
    description: str, total: int | None, unit: str, done: int = 0, transient: bool = False
) -> Iterator[Advance]:
    """Report the progress of a loop on standard error: ``with progress(…) as advance: advance(64)``.

    ``unit`` is what is counted ("images"); "bytes" are shown as megabytes. ``done``: what was there
    before. ``transient``: a bar goes away when it is full.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console, unit, transient) as bar:
            task = bar.add_task(description, total=total, completed=done, note="")

            def advance(n: int, note: str = "") -> None:
                bar.update(task, advance=n, note=note)

            yield advance
    else:
        log = _Log(description, total, unit, done)
        yield log.advance
        log.close()


def _bar(console: Console, unit: str, transient: bool) -> Progress:
    amount: list[ProgressColumn] = (
        [DownloadColumn(), TransferSpeedColumn()] if unit == "bytes" else [MofNCompleteColumn(), _Rate(unit)]
    )
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        *amount,
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    ]
    return Progress(*columns, console=console, refresh_per_second=4, transient=transient)


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(_rate(speed, self.unit) if speed else "")


def _rate(per_second: float, unit: str) -> str:
    """A rate for people: 450 images/s, 1.2 runs/min."""
    for factor, name in ((1, "s"), (60, "min")):
        if per_second * factor >= 10:
            return f"{per_second * factor:,.0f} {unit}/{name}"
        if per_second * factor >= 1:
            return f"{per_second * factor:.1f} {unit}/{name}"
    return f"{per_second * 3600:.1f} {unit}/h"


class _Log:
    """Plain lines for a file or a pipe."""

    def __init__(self, description: str, total: int | None, unit: str, done: int) -> None:
        self.description, self.total, self.unit = description, total, unit
        self.before = self.done = done
        self.note = ""
        self.start = time.monotonic()
        self.last = self.start

    def advance(self, n: int, note: str = "") -> None:
        self.done += n
        self.note = note
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
        rate = (self.done - self.before) / seconds
        of = f"/{self.total * scale:,.0f}" if self.total else ""
        left = (
            f", {(self.total - self.done) / rate:,.0f} s left"
            if self.total and rate and self.done < self.total
            else ""
        )
        line = f"{self.description}: {self.done * scale:,.0f}{of} {unit}, {_rate(rate * scale, unit)}{left}"
        line += f", {self.note}" if self.note else ""
        print(line, file=sys.stderr, flush=True)
