"""The state of a study as a table, once or kept up to date."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from unweave.cli import output
from unweave.study.folder import StudyPaths
from unweave.study.status import Status, status

STATES = ("done", "running", "failed", "waiting")
_REFRESH_SECONDS = 1.0
_FAILURES_SHOWN = 10


def show(summary: Status, format: str | None = None) -> None:
    """Print the tables once; in a format for other programs, the table alone."""
    console = Console(highlight=False)
    if console.is_terminal and format is None:
        console.print(_tables(summary))
        return
    rows = [(data, method, *(count[state] for state in STATES)) for (data, method), count in _groups(summary)]
    rows.append(("all", "all", *(summary.counts[state] for state in STATES)))
    output.show_table(["DATA", "METHOD", *(state.upper() for state in STATES)], rows, format, keys=2)
    if format is not None:
        return
    if summary.blocked:
        print(_blocked(summary))
    for worker in summary.workers:
        print(_worker(worker))
    for failure in summary.failures[:_FAILURES_SHOWN]:
        print(_failure(failure))
    for problem in summary.problems[:_FAILURES_SHOWN]:
        print(_problem(problem))


def watch_status(folder: StudyPaths) -> None:
    """Update the tables until the study is done or Ctrl-C."""
    summary = status(folder)
    with Live(_tables(summary), console=Console(highlight=False), auto_refresh=False) as live:
        while summary.counts["running"] + summary.counts["waiting"]:
            time.sleep(_REFRESH_SECONDS)
            summary = status(folder)
            live.update(_tables(summary), refresh=True)


def as_json(summary: Status) -> dict[str, Any]:
    """The state as plain values."""
    groups = [
        {"data": data, "method": method, **{state: count[state] for state in STATES}}
        for (data, method), count in _groups(summary)
    ]
    return {
        "study": summary.name,
        **{state: summary.counts[state] for state in STATES},
        "blocked": summary.blocked,
        "seconds_left": summary.seconds_left,
        "groups": groups,
        "workers": summary.workers,
        "failures": summary.failures,
        "problems": list(summary.problems),
    }


def _tables(summary: Status) -> Group:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("DATA", "METHOD", *(state.upper() for state in STATES)):
        table.add_column(name, justify="left" if name in ("DATA", "METHOD") else "right")
    for (data, method), count in _groups(summary):
        table.add_row(Text(data), Text(method), *(_count(state, count[state]) for state in STATES))
    total = [Text(str(summary.counts[state]), "bold") for state in STATES]
    table.add_row(Text("all", "bold"), "", *total)
    lines = [Text(_blocked(summary))] if summary.blocked else []
    lines += [Text(_worker(worker), "cyan") for worker in summary.workers]
    lines += [Text(_failure(failure), "red") for failure in summary.failures[:_FAILURES_SHOWN]]
    if len(summary.failures) > _FAILURES_SHOWN:
        lines.append(Text(f"… and {len(summary.failures) - _FAILURES_SHOWN} more failures", "red"))
    lines += [Text(_problem(problem), "yellow") for problem in summary.problems[:_FAILURES_SHOWN]]
    if len(summary.problems) > _FAILURES_SHOWN:
        lines.append(Text(f"… and {len(summary.problems) - _FAILURES_SHOWN} more problems", "yellow"))
    if summary.seconds_left is not None:
        lines.append(Text(f"about {summary.seconds_left / 60:,.0f} min left"))
    if not summary.workers and summary.counts["waiting"]:
        lines.append(Text("no worker is running: 'unweave study run' continues"))
    return Group(table, *lines)


def _groups(summary: Status) -> list[Any]:
    return list(summary.groups.items())


def _count(state: str, n: int) -> Text:
    style = {"done": "green", "failed": "red", "running": "cyan"}.get(state, "")
    return Text(str(n), style if n else "dim")


def _blocked(summary: Status) -> str:
    return f"{summary.blocked:,} of the waiting runs need another one first"


def _worker(worker: dict[str, Any]) -> str:
    activity = (
        f"{worker['what']}: {worker['part']} {worker['share']:.0%}" if worker["run"] else worker["what"]
    )
    return f"{worker['host']} {worker['pid']}: {activity}"


def _failure(failure: dict[str, Any]) -> str:
    run = f"{failure['method']} on {failure['data']}, seed {failure['seed']}"
    return f"failed {failure['run']} ({run}): {failure['error']}"


def _problem(problem: dict[str, Any]) -> str:
    run = f"{problem['method']} on {problem['data']}, seed {problem['seed']}"
    return f"done {problem['run']} ({run}), but {problem['problem']}"
