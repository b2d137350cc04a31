"""Progress on a terminal, in a log and in a notebook."""

import io
import re
import sys
import types

import pytest

from unweave import progress as module
from unweave.progress import progress


class Clock:
    """Time that moves only when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def notebook(monkeypatch):
    """A stand-in for IPython in the kernel of a notebook; gives the list of what is displayed."""
    shown = []

    class Handle:
        def update(self, data, raw):
            assert raw
            shown[-1].append(data)

    def display(data, raw, display_id):
        assert raw
        assert display_id is True
        shown.append([data])
        return Handle()

    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    shown_by = types.SimpleNamespace(outputs=shown, shell=shell)
    return shown_by


def test_a_log_has_a_line_every_ten_seconds_and_one_at_the_end(clock, capsys):
    with progress("training", 6_400, "images", done=640) as advance:
        for _ in range(3):
            clock.now += 6
            advance(640, "loss 12.0")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "training: 1,920/6,400 images, 107 images/s, 42 s left, loss 12.0",
        "training: 2,560/6,400 images, 107 images/s, 36 s left, loss 12.0",
    ]


def test_quick_work_leaves_no_line_in_a_log(clock, capsys):
    with progress("reading", 10, "files") as advance:
        clock.now += 0.5
        advance(10)
    assert capsys.readouterr().err == ""


def test_bytes_are_megabytes_and_a_total_may_be_unknown(clock, capsys):
    with progress("download", None, "bytes") as advance:
        clock.now += 12
        advance(30_000_000)
    assert capsys.readouterr().err.splitlines()[-1] == "download: 30 MB, 2.5 MB/s"


def test_slow_work_has_a_rate_per_minute_or_hour(clock, capsys):
    with progress("study", 100, "runs") as advance:
        clock.now += 60
        advance(2)
        clock.now += 7_200
        advance(0)
    assert [line.split(", ")[1] for line in capsys.readouterr().err.splitlines()[:2]] == [
        "2.0 runs/min",
        "1.0 runs/h",
    ]


def test_a_terminal_has_a_bar(monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress("training", 4, "images") as advance:
        advance(4, "loss 3.0")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "training" in text
    assert "4/4" in text
    assert "loss 3.0" in text


def test_a_notebook_has_a_bar_that_is_updated(clock, notebook, capsys):
    with progress("<b>training", 100, "images") as advance:
        clock.now += 1
        advance(40, "loss 2.0 & falling")
        clock.now += 0.1
        advance(20)  # too soon to draw again
    assert capsys.readouterr().err == ""
    (outputs,) = notebook.outputs
    assert len(outputs) == 3
    assert outputs[1]["text/html"] == (
        '<progress value="0.4000"></progress> '
        "&lt;b&gt;training: 40/100 images, 40 images/s, 2 s left, loss 2.0 &amp; falling"
    )
    assert outputs[-1]["text/plain"].startswith("<b>training: 60/100 images")


def test_a_transient_bar_leaves_a_notebook(notebook):
    with progress("encoding", None, "images", transient=True) as advance:
        advance(3)
    (outputs,) = notebook.outputs
    assert outputs[0]["text/html"].startswith("<progress></progress>")
    assert outputs[-1] == {"text/plain": "", "text/html": ""}


def test_a_bar_in_a_notebook_ends_with_an_error_too(notebook):
    def stop():
        with progress("encoding", 5, "images") as advance:
            advance(3)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        stop()
    assert "3/5" in notebook.outputs[0][-1]["text/plain"]


def test_ipython_in_a_terminal_is_no_notebook(notebook, capsys):
    notebook.shell.config.clear()
    with progress("encoding", 5, "images") as advance:
        advance(5)
    assert notebook.outputs == []


def test_the_time_left_can_be_said_in_place_of_the_rate(clock, capsys):
    with progress("study", 4, "runs") as advance:
        clock.now += 30
        advance(2, "training", seconds_left=25.0)
        clock.now += 30
        advance(0)
    first, second, _ = capsys.readouterr().err.splitlines()
    assert "25 s left" in first
    assert "60 s left" in second  # two runs in a minute


def test_a_terminal_shows_the_time_left_that_was_said(monkeypatch):
    from rich.console import Console

    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    with module._terminal_bar(console, "runs", transient=False) as bar:
        task = bar.add_task("study", total=4, completed=0, note="", seconds_left=None)
        bar.update(task, advance=1, seconds_left=85.0)
        bar.refresh()
    assert "0:01:25" in console.file.getvalue()
