"""What commands print: tables on a terminal, tab-separated lines for other programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from unweave.data.storage.status import FileStatus, Status

_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_STATE_STYLES = {"ready": "green", "offline": "green", "files present": "yellow", "needs download": "dim"}


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows in columns. Off a terminal: one line per row, cells separated by tabs, no header."""
    console = _console()
    if not console.is_terminal:
        for row in rows:
            print("\t".join(" ".join(cell.split()) for cell in row))
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in header:
        table.add_column(name, no_wrap=name == "NAME")
    for row in rows:
        table.add_row(*(Text(cell, _STATE_STYLES.get(cell.partition(",")[0], "")) for cell in row))
    console.print(table)


def show_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Names and values. Off a terminal: one line each, separated by a tab."""
    console = _console()
    if not console.is_terminal:
        for name, value in facts:
            print(f"{name.strip()}\t{' '.join(value.split())}")
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(Text(name), Text(value))
    console.print(table)


def show_json(value: Any) -> None:
    """A value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def show_error(message: str) -> None:
    """What went wrong, on standard error."""
    _complain("error", "bold red", message)


def show_warning(message: str) -> None:
    """What the user should know, on standard error."""
    _complain("warning", "yellow", message)


def state_text(found: Status) -> str:
    """A data set's state in a few words, with its size."""
    if found.state == "needs download":
        size = "size not known" if found.download_bytes is None else bytes_text(found.download_bytes)
        return f"{found.state}, {size}"
    return f"{found.state}, {bytes_text(found.disk_bytes)} on disk" if found.disk_bytes else found.state


def file_text(file: FileStatus, package: str | None) -> str:
    """What lies at the place of a file, in a few words."""
    if file.size_differs:
        return f"present, but has {file.found:,} bytes: not the official size"
    if file.present:
        return "present"
    if package is not None:
        return f"not needed: comes with the package {package}"
    return f"absent, {bytes_text(file.partial)} downloaded" if file.partial else "absent"


def done_text(before: Status, after: Status) -> str:
    """What ``get`` has done, in a few words."""
    absent = [
        new for old, new in zip(before.files, after.files, strict=True) if not old.usable and new.usable
    ]
    did = [f"downloaded {len(absent)} file{'s' * (len(absent) > 1)}"] if absent else []
    if after.prepared and not before.prepared:
        did.append("prepared")
    if did:
        return f"{' and '.join(did)} in {after.folder} ({bytes_text(after.disk_bytes)})"
    return (
        f"was ready in {after.folder}" if after.prepared else "ready, there is nothing to download or prepare"
    )


def bytes_text(count: int) -> str:
    """A number of bytes for people: 19.3 MB."""
    amount, power = float(count), 0
    while amount >= 999.5 and power < len(_UNITS) - 1:
        amount, power = amount / 1000, power + 1
    return f"{amount:.3g} {_UNITS[power]}"


def _console() -> Console:
    return Console(highlight=False)


def _complain(kind: str, style: str, message: str) -> None:
    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        console.print(Text.assemble((f"{kind}: ", style), message), soft_wrap=True)
    else:
        print(f"{kind}: {message}", file=sys.stderr)
