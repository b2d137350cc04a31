"""Progress of long work: a bar on a terminal and in a notebook, a line now and then in a log.

On a terminal the bar is rich's. In a notebook rich would need ipywidgets, so there the bar is the browser's own
``<progress>`` element, updated through IPython's display: it works in every front end and leaves one line of output.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_QUIET_SECONDS = 1.0  # work that ends sooner than this leaves no line in a log
_LOG_SECONDS = 10.0
_NOTEBOOK_SECONDS = 0.25
_WIDE = 110  # columns of a terminal with room for a long bar beside the numbers


class Advance(Protocol):
    """Called with the number of things done since the last call, and what else to show.

    ``seconds_left`` is for work whose things take long or run side by side, so that their rate says little.
    """

    def __call__(self, n: int, note: str = "", seconds_left: float | None = None) -> None: ...


@contextmanager
def progress(
    description: str, total: int | None, unit: str, done: int = 0, transient: bool = False
) -> Iterator[Advance]:
    """Show the progress of a loop: a bar on a terminal or in a notebook, else a line every ten seconds.

    Parameters
    ----------
    description
        what is being done.
    total
        how many things there are; None if that is not known.
    unit
        what is counted ("images"); "bytes" are shown as megabytes.
    done
        how many were done before.
    transient
        remove the bar at the end.

    Yields
    ------
    Advance
        to be called with the number of things done since the last call, and perhaps a note.

    Examples
    --------
    >>> with progress("Encoding", 128, "images") as advance:
    ...     for _ in range(2):
    ...         advance(64, note="all is well")
    """
    display = _notebook_display()
    if display is not None:
        yield from _show_in_notebook(_Count(description, total, unit, done), display, transient)
        return
    if not sys.stderr.isatty():
        yield from _show_in_log(_Count(description, total, unit, done))
        return
    from rich.console import Console

    with _terminal_bar(Console(stderr=True), unit, transient) as bar:
        task = bar.add_task(description, total=total, completed=done, note="", seconds_left=None)

        def advance(n: int, note: str = "", seconds_left: float | None = None) -> None:
            bar.update(task, advance=n, note=note, seconds_left=seconds_left)

        yield advance


@dataclass
class _Count:
    """What was done since when, and that as a line of text."""

    description: str
    total: int | None
    unit: str
    done: int
    note: str = ""
    seconds_left: float | None = None

    def __post_init__(self) -> None:
        self.before, self.start = self.done, time.monotonic()

    def add(self, n: int, note: str, seconds_left: float | None) -> None:
        self.done += n
        self.note, self.seconds_left = note, seconds_left

    def line(self) -> str:
        seconds = max(time.monotonic() - self.start, 1e-9)
        scale, unit = (1e-6, "MB") if self.unit == "bytes" else (1.0, self.unit)
        rate = (self.done - self.before) / seconds
        of = f"/{self.total * scale:,.0f}" if self.total else ""
        parts = [f"{self.description}: {self.done * scale:,.0f}{of} {unit}", _rate(rate * scale, unit)]
        if self.seconds_left is not None:
            parts.append(f"{self.seconds_left:,.0f} s left")
        elif self.total and rate and self.done < self.total:
            parts.append(f"{(self.total - self.done) / rate:,.0f} s left")
        return ", ".join([*parts, self.note] if self.note else parts)


def _show_in_log(count: _Count) -> Iterator[Advance]:
    last = count.start

    def advance(n: int, note: str = "", seconds_left: float | None = None) -> None:
        nonlocal last
        count.add(n, note, seconds_left)
        if time.monotonic() - last >= _LOG_SECONDS:
            last = time.monotonic()
            print(count.line(), file=sys.stderr, flush=True)

    yield advance
    if time.monotonic() - count.start >= _QUIET_SECONDS:
        print(count.line(), file=sys.stderr, flush=True)


def _show_in_notebook(count: _Count, display: Callable[..., Any], transient: bool) -> Iterator[Advance]:
    handle = display(_notebook_bar(count), raw=True, display_id=True)
    last = count.start

    def advance(n: int, note: str = "", seconds_left: float | None = None) -> None:
        nonlocal last
        count.add(n, note, seconds_left)
        if time.monotonic() - last >= _NOTEBOOK_SECONDS:
            last = time.monotonic()
            handle.update(_notebook_bar(count), raw=True)

    try:
        yield advance
    finally:
        ended = {"text/plain": "", "text/html": ""} if transient else _notebook_bar(count)
        handle.update(ended, raw=True)


def _notebook_bar(count: _Count) -> dict[str, str]:
    """The bar as a browser draws it, with a line of text for other front ends."""
    value = f' value="{min(count.done / count.total, 1):.4f}"' if count.total else ""
    line = count.line()
    return {"text/plain": line, "text/html": f"<progress{value}></progress> {escape(line)}"}


def _notebook_display() -> Callable[..., Any] | None:
    """IPython's ``display``, if this process is the kernel of a notebook."""
    if "IPython" not in sys.modules:  # a notebook has imported it before us
        return None
    from IPython import get_ipython
    from IPython.display import display

    shell = get_ipython()
    is_kernel = shell is not None and "IPKernelApp" in shell.config
    return display if is_kernel else None


def _terminal_bar(console: Console, unit: str, transient: bool) -> Progress:
    from rich import progress as rich
    from rich.text import Text

    class Rate(rich.ProgressColumn):
        """Images per second, or runs per hour."""

        def render(self, task: rich.Task) -> str:
            speed = task.finished_speed or task.speed
            return _rate(speed, unit) if speed else ""

    class TimeLeft(rich.TimeRemainingColumn):
        """As it was said with the last step, or by the rate."""

        def render(self, task: rich.Task) -> Text:
            if task.fields["seconds_left"] is None or task.finished:
                return super().render(task)
            return Text(
                str(timedelta(seconds=round(task.fields["seconds_left"]))), style="progress.remaining"
            )

    counted = [rich.DownloadColumn(), rich.TransferSpeedColumn()]
    amount = counted if unit == "bytes" else [rich.MofNCompleteColumn(), Rate()]
    return rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(bar_width=40 if console.width >= _WIDE else 15),
        *amount,
        TimeLeft(),
        rich.TextColumn("{task.fields[note]}"),
        console=console,
        refresh_per_second=4,
        transient=transient,
    )


def _rate(per_second: float, unit: str) -> str:
    """A rate for people: 450 images/s, 1.2 runs/min."""
    for factor, name in ((1, "s"), (60, "min")):
        if per_second * factor >= 10:
            return f"{per_second * factor:,.0f} {unit}/{name}"
        if per_second * factor >= 1:
            return f"{per_second * factor:.1f} {unit}/{name}"
    return f"{per_second * 3600:.1f} {unit}/h"
