"""The state of a study as a table, once or kept fresh."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from unweave.cli import output
from unweave.study.place import Place
from unweave.study.status import Status, status

STATES = ("done", "running", "failed", "waiting")
_REFRESH_SECONDS = 1.0
_FAILURES_SHOWN = 10


def show(found: Status) -> None:
    """Print the tables once."""
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(_tables(found))
        return
    rows = [
        (data, method, *(str(count[state]) for state in STATES)) for (data, method), count in _groups(found)
    ]
    rows.append(("all", "all", *(str(found.counts[state]) for state in STATES)))
    output.show_table(["DATA", "METHOD", *STATES], rows)
    for worker in found.workers:
        print(_worker(worker))
    for failure in found.failures[:_FAILURES_SHOWN]:
        print(_failure(failure))


def watch_status(place: Place) -> None:
    """Keep the tables fresh until the study is done or Ctrl-C."""
    found = status(place)
    with Live(_tables(found), console=Console(highlight=False), auto_refresh=False) as live:
        while found.counts["running"] + found.counts["waiting"]:
            time.sleep(_REFRESH_SECONDS)
            found = status(place)
            live.update(_tables(found), refresh=True)


def as_json(found: Status) -> dict[str, Any]:
    """The state as plain values."""
    groups = [
        {"data": data, "method": method, **{state: count[state] for state in STATES}}
        for (data, method), count in _groups(found)
    ]
    return {
        "study": found.name,
        **{state: found.counts[state] for state in STATES},
        "seconds_left": found.seconds_left,
        "groups": groups,
        "workers": found.workers,
        "failures": found.failures,
    }


def _tables(found: Status) -> Group:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("DATA", "METHOD", *(state.upper() for state in STATES)):
        table.add_column(name, justify="left" if name in ("DATA", "METHOD") else "right")
    for (data, method), count in _groups(found):
        table.add_row(Text(data), Text(method), *(_count(state, count[state]) for state in STATES))
    total = [Text(str(found.counts[state]), "bold") for state in STATES]
    table.add_row(Text("all", "bold"), "", *total)
    lines = [Text(_worker(worker), "cyan") for worker in found.workers]
    lines += [Text(_failure(failure), "red") for failure in found.failures[:_FAILURES_SHOWN]]
    if len(found.failures) > _FAILURES_SHOWN:
        lines.append(Text(f"… and {len(found.failures) - _FAILURES_SHOWN} more failures", "red"))
    if found.seconds_left is not None:
        lines.append(Text(f"about {found.seconds_left / 60:,.0f} min left"))
    if not found.workers and found.counts["waiting"]:
        lines.append(Text("nobody works on it: 'unweave study run' goes on"))
    return Group(table, *lines)


def _groups(found: Status) -> list[Any]:
    return list(found.groups.items())


def _count(state: str, n: int) -> Text:
    style = {"done": "green", "failed": "red", "running": "cyan"}.get(state, "")
    return Text(str(n), style if n else "dim")


def _worker(told: dict[str, Any]) -> str:
    doing = f"{told['what']}: {told['part']} {told['share']:.0%}" if told["run"] else told["what"]
    return f"{told['host']} {told['pid']}: {doing}"


def _failure(told: dict[str, Any]) -> str:
    return f"failed {told['run']} ({told['method']} on {told['data']}, seed {told['seed']}): {told['error']}"
