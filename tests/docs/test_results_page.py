"""What docs/results.md shows of stored results is what the commands print."""

import importlib.util
from pathlib import Path

import pytest

from unweave.study import stored_names

_SPEC = importlib.util.spec_from_file_location("results_page", Path(__file__).with_name("results_page.py"))
results_page = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(results_page)
OUTPUTS = results_page.outputs(results_page.PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("command", "shown"), OUTPUTS, ids=[command for command, _ in OUTPUTS])
def test_the_page_shows_what_the_command_prints(command, shown):
    assert shown == results_page.printed(command), f"python {Path(__file__).with_name('update_results.py')}"


def test_every_stored_study_has_its_claims_on_the_page():
    commands = {command for command, _ in OUTPUTS}
    for name in stored_names():
        assert f"unweave study claims stored:{name} --format md" in commands, name


def test_a_changed_digit_is_noticed_and_rewritten():
    command = "unweave study list --format md"
    page = f"text\n<!-- {command} -->\n\nold\n\n<!-- end -->\ntext"
    assert results_page.outputs(page) == [(command, "old")]
    new = results_page.updated(page)
    assert results_page.outputs(new) == [(command, results_page.printed(command))]
    assert results_page.updated(new) == new
    assert new.startswith("text\n<!-- ")
    assert new.endswith("<!-- end -->\ntext")


def test_a_table_appears_once_results_are_stored(monkeypatch):
    page = "<!-- when stored: unweave study list --format md stored:some -->\n\nnone yet\n\n<!-- end -->"
    assert results_page.outputs(page) == []
    assert results_page.updated(page) == page
    monkeypatch.setattr(results_page, "stored_names", lambda: ["some"])
    monkeypatch.setattr(results_page, "printed", lambda command: "a table")
    assert results_page.outputs(results_page.updated(page)) == [
        ("unweave study list --format md stored:some", "a table")
    ]


def test_a_command_that_fails_is_no_output():
    with pytest.raises(RuntimeError, match="stored:nothing"):
        results_page.printed("unweave study claims stored:nothing")
