"""Every command that prints a table takes --format, and a program can read what it then prints."""

import csv
import io
import json

import pytest
import typer

from unweave.cli import main
from unweave.cli.app import app

# Commands whose options say where results go, or that print a path: no tables.
TABLES = {
    ("data", "clean"), ("data", "info"), ("data", "list"),
    ("evaluate",), ("methods",), ("metrics",), ("score",),
    ("study", "clean"), ("study", "list"), ("study", "plan"), ("study", "results"), ("study", "status"),
    ("zoo", "evaluate"), ("zoo", "list"), ("zoo", "show"),
}  # fmt: skip
QUICK = [
    ["data", "clean"],
    ["data", "info", "dsprites"],
    ["data", "list"],
    ["methods"],
    ["metrics"],
    ["study", "clean"],
    ["study", "list"],
    ["zoo", "list"],
    ["zoo", "show", "dsprites/beta_tcvae"],
]


def _commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_every_table_has_formats():
    having = {
        path
        for path, command in _commands(typer.main.get_command(app))
        if any("--format" in option.opts for option in command.params)
    }
    assert having >= TABLES


@pytest.mark.parametrize("words", QUICK, ids=" ".join)
def test_a_program_reads_what_is_printed(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def printed(format):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--format", format])
        assert not ended.value.code
        return capsys.readouterr().out

    rows = json.loads(printed("json"))
    header, *lines = list(csv.reader(io.StringIO(printed("csv"))))
    assert len(lines) == len(rows)
    assert all(list(row) == header for row in rows)
    first, rule, *others = printed("md").splitlines()
    assert first.startswith("| ")
    assert set(rule) <= set("| -")
    assert len(others) == len(rows)
    assert header[0].upper().replace("_", " ") in printed("table").splitlines()[0]
