"""What commands print: tables on a terminal, lines of cells for other programs."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

FORMATS = ("table", "csv", "json", "md")
_NARROW = 12  # characters that a column of text may be squeezed to
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_STATE_STYLES = {"ready": "green", "offline": "green", "files present": "yellow", "needs download": "dim"}


def show_table(
    header: Sequence[str], rows: Sequence[Sequence[Any]], format: str | None = None, *, keys: int = 1
) -> None:
    """Rows in columns, a header line above them.

    Parameters
    ----------
    header
        the names of the columns.
    rows
        cells: text, numbers, or None for an empty one.
    format
        table, csv, json or md. By default a table on a terminal; elsewhere lines whose cells are separated by tabs.
    keys
        how many of the first columns say what a row is of: they are never cut or wrapped.
    """
    if format in ("csv", "json", "md"):
        _print_rows(header, rows, format)
        return
    cells = [[_text(cell) for cell in row] for row in rows]
    if _is_terminal(sys.stdout):
        _show_on_terminal(header, cells, keys)
    elif format == "table":
        lines: list[Sequence[str]] = [header, *cells]
        widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
        for line in lines:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    else:
        for line in [header, *cells]:
            print("\t".join(" ".join(cell.split()) for cell in line))


def show_facts(facts: Sequence[tuple[str, Any]], format: str | None = None) -> None:
    """Names and values. Off a terminal: one line each, separated by a tab."""
    if format is not None and (format != "table" or not _is_terminal(sys.stdout)):
        show_table(["NAME", "VALUE"], [(name.strip(), value) for name, value in facts], format)
        return
    if not _is_terminal(sys.stdout):
        for name, value in facts:
            print(f"{name.strip()}\t{' '.join(_text(value).split())}")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(Text(name), Text(_text(value)))
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


def show_note(message: str) -> None:
    """What the user may want to know about the output, on standard error."""
    _show_message("note", "cyan", message)


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


def _show_on_terminal(header: Sequence[str], rows: Sequence[Sequence[str]], keys: int) -> None:
    from rich.table import Table
    from rich.text import Text

    widths = [max([len(name), *(len(row[column]) for row in rows)]) for column, name in enumerate(header)]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column, name in enumerate(header):
        if column < keys:
            table.add_column(name, no_wrap=True, min_width=widths[column])
        else:
            table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, _STATE_STYLES.get(cell.partition(",")[0], "")) for cell in row))
    console = _console()
    # What the other columns need at least: a terminal that is narrower than that wraps the lines itself.
    needed = sum(widths[:keys]) + sum(min(width, _NARROW) for width in widths[keys:]) + 2 * len(widths)
    if needed > console.width:
        console.width = needed
    console.print(table, crop=False, soft_wrap=needed > _console().width)


def _print_rows(header: Sequence[str], rows: Sequence[Sequence[Any]], format: str) -> None:
    """The rows for another program, or for a page."""
    names = [name.lower().replace(" ", "_") for name in header]
    if format == "json":
        show_json([{name: _number(cell) for name, cell in zip(names, row, strict=True)} for row in rows])
    elif format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_text(cell, digits=None) for cell in row] for row in rows)
    else:
        for line in [header, ["---"] * len(header), *rows]:
            print("| " + " | ".join(_text(cell).replace("|", "\\|") for cell in line) + " |")


def _text(cell: Any, digits: int | None = 6) -> str:
    """A cell as text: numbers to six digits, or all of them; nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return repr(cell) if digits is None else f"{cell:.{digits}g}"
    return str(cell)


def _number(cell: Any) -> Any:
    """A cell for JSON, which has no NaN or infinity."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


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
