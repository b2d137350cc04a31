"""What commands print: tables on a terminal, tab-separated lines for other programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_STATE_STYLES = {"ready": "green", "offline": "green", "files present": "yellow", "needs download": "dim"}


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows in columns. Off a terminal: one line per row, cells separated by tabs, no header."""
    if not _is_terminal(sys.stdout):
        for row in rows:
            print("\t".join(" ".join(cell.split()) for cell in row))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in header:
        table.add_column(name, no_wrap=name == "NAME")
    for row in rows:
        table.add_row(*(Text(cell, _STATE_STYLES.get(cell.partition(",")[0], "")) for cell in row))
    _console().print(table)


def show_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Names and values. Off a terminal: one line each, separated by a tab."""
    if not _is_terminal(sys.stdout):
        for name, value in facts:
            print(f"{name.strip()}\t{' '.join(value.split())}")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(Text(name), Text(value))
    _console().print(table)


def show_json(value: Any) -> None:
    """A value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def show_error(message: str) -> None:
    """What went wrong, on standard error."""
    _show_message("error", "bold red", message)


def show_warning(message: str) -> None:
    """What the user should know, on standard error."""
    _show_message("warning", "yellow", message)


def bytes_text(count: int) -> str:
    """A number of bytes for people: 19.3 MB.

    >>> bytes_text(19_317_000)
    '19.3 MB'
    """
    amount, power = float(count), 0
    while amount >= 999.5 and power < len(_UNITS) - 1:
        amount, power = amount / 1000, power + 1
    return f"{amount:.3g} {_UNITS[power]}"


def settings_text(settings: dict[str, Any]) -> str:
    """Names and values in one line: beta=4.0, estimator=weighted."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _is_terminal(stream: TextIO) -> bool:
    """Whether to print in columns and colours, as rich decides it; rich itself is imported only if so."""
    if not stream.isatty() and not os.environ.keys() & {"FORCE_COLOR", "TTY_COMPATIBLE"}:
        return False
    return _console(stderr=stream is sys.stderr).is_terminal


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def _show_message(kind: str, style: str, message: str) -> None:
    if _is_terminal(sys.stderr):
        from rich.text import Text

        _console(stderr=True).print(Text.assemble((f"{kind}: ", style), message), soft_wrap=True)
    else:
        print(f"{kind}: {message}", file=sys.stderr)
