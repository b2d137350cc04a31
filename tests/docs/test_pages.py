"""README and docs/ run as they are written: Python, command lines and the numbers that they show.

A page is run from top to bottom in an empty folder. What a fenced block does is said after its opening fence:

- ``python`` is run, all blocks of a page in one namespace. Each ``print`` ends with a comment that holds the numbers
  it prints, rounded; a semicolon separates the rounds of a loop.
- ``console`` has lines ``unweave …``, which are run and must succeed.
- ``python NAME.py`` and ``yaml NAME.yaml`` are written to the file of that name, for later blocks.
- ``text`` and ``toml`` are shown only, and ``no-run`` marks the few blocks that cannot run here (downloads, clusters).
"""

import ast
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import typer
from markdown_it import MarkdownIt

from unweave.cli import main
from unweave.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
# Pages whose blocks each run in a process of their own, as they would by hand: what they register stays there.
IN_PROCESSES = {"docs/extending.md"}
# Blocks marked no-run, by page: this many, each for a reason that the page states.
NOT_RUN = {"README.md": 2, "docs/discover.md": 1, "docs/studies.md": 2, "docs/zoo.md": 1}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after it, its text, and the line where that begins."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int

    @property
    def file(self):
        return next((word for word in self.words if "." in word), None)

    @property
    def runs(self):
        return "no-run" not in self.words


def read_blocks(text):
    fences = [token for token in MarkdownIt().parse(text) if token.type == "fence"]
    return [Block(*_language(token.info), text=token.content, line=token.map[0] + 1) for token in fences]


def _language(info):
    language, *words = info.split() or [""]
    return language, tuple(words)


def shown_numbers(source):
    """The numbers in the comment that ends each print, as text, by the line where the print begins."""
    lines = source.splitlines()
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
    return {
        call.lineno: re.findall(r"-?\d+(?:\.\d+)?", lines[call.end_lineno - 1][call.end_col_offset :])
        for call in calls
        if lines[call.lineno - 1].lstrip().startswith("print(")
    }


def run_python(source, names, filename="example"):
    """The numbers that each print gets: {line: [...]}; ``names`` are kept for the next block of the page."""
    printed = {}

    def record(*values):
        numbers = np.concatenate([np.ravel(value).astype(float) for value in values])
        printed.setdefault(sys._getframe(1).f_lineno, []).extend(numbers.tolist())

    names["print"] = record
    exec(compile(source, filename, "exec"), names)
    return printed


def agrees(text, value):
    """Whether ``value``, rounded to the digits of ``text``, is ``text``; a tie may be rounded either way."""
    digits = len(text.partition(".")[2])
    return abs(float(text) - value) <= 0.5 * 10**-digits + 1e-9


def command_lines(text):
    """The commands of a block as lists of words; a line that ends with a backslash goes on in the next."""
    lines = text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def run_page(path, names):
    """Run all blocks of a page; returns how many numbers were compared."""
    compared = 0
    for block in read_blocks(path.read_text(encoding="utf-8")):
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python" and block.runs:
            source = "\n" * block.line + block.text  # errors then name the line of the page
            expected, printed = shown_numbers(source), run_python(source, names, str(path))
            assert expected.keys() == printed.keys()
            for line, texts in expected.items():
                values = printed[line]
                message = f"{path.name}, line {line}: {source.splitlines()[line - 1].strip()} prints {values}"
                assert len(texts) == len(values), message
                assert all(map(agrees, texts, values)), message
                compared += len(texts)
        elif block.language == "console" and block.runs:
            for words in command_lines(block.text):
                run_command(path, words)
    return compared


def run_page_in_processes(path):
    """Run each Python block and each command of a page in a new process."""
    for block in read_blocks(path.read_text(encoding="utf-8")):
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python" and block.runs:
            run_process(path, ["-c", block.text])
        elif block.language == "console" and block.runs:
            for words in command_lines(block.text):
                assert words[0] == "unweave"
                run_process(path, ["-m", *words])


def run_process(path, arguments):
    ended = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, f"{path.name}: {shlex.join(arguments)}\n{ended.stdout}\n{ended.stderr}"


def run_command(path, words):
    assert words[0] == "unweave", f"{path.name}: {words}: mark the block no-run"
    with pytest.raises(SystemExit) as ended:
        main(words[1:])
    assert not ended.value.code, f"{path.name}: {shlex.join(words)}"


@pytest.fixture
def folder(tmp_path, monkeypatch, prepared_data, dsprites):
    """An empty working folder, with real dSprites and nothing else in the data folder."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "dsprites").symlink_to(prepared_data / "dsprites")
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "data"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yield tmp_path / "work"
    plt.close("all")


@pytest.mark.parametrize("name", sorted(PAGES.keys() - IN_PROCESSES))
def test_a_page_runs_as_written(name, folder):
    compared = run_page(PAGES[name], {})
    if name.startswith("docs/metrics"):
        assert compared > 0
    if name == "docs/theorem1.md":
        assert compared > 30
        assert (folder / "theorem1.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", sorted(IN_PROCESSES))
def test_a_page_runs_by_hand(name, folder):
    run_page_in_processes(PAGES[name])


@pytest.mark.parametrize("name", PAGES)
def test_every_block_says_what_it_is(name):
    blocks = read_blocks(PAGES[name].read_text(encoding="utf-8"))
    assert {block.language for block in blocks} <= {"python", "console", "yaml", "text", "toml"}
    for block in blocks:
        if block.language in ("yaml", "text", "toml"):
            assert not re.search(r"^\s*unweave ", block.text, re.MULTILINE), (
                "a command belongs in a console block"
            )
    assert sum(not block.runs for block in blocks) == NOT_RUN.get(name, 0)


@pytest.mark.parametrize("name", PAGES)
def test_commands_named_in_the_text_exist(name):
    for line in re.findall(r"`unweave ([^`…]+)`", PAGES[name].read_text(encoding="utf-8")):
        command, words = typer.main.get_command(app), shlex.split(line)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        is_group = hasattr(command, "commands")
        assert not is_group or all(word.startswith("-") for word in words), f"unweave {line}: no such command"
        known = {"-h", "--help"}
        known.update(option for each in command.params for option in each.opts + each.secondary_opts)
        given = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert given <= known, f"unweave {line}: no such option"


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    text = PAGES[name].read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (PAGES[name].parent / target).exists(), f"{name} -> {target}"


# --- the runner itself ----------------------------------------------------------------------------------


def test_a_wrong_digit_is_noticed():
    assert agrees("0.82", 0.8249)
    assert not agrees("0.82", 0.8251)
    assert not agrees("1.00", 0.99)
    assert agrees("-3", -2.7)


def test_a_wrong_number_or_command_fails_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 / 3)  # 0.34\n```\n")
    with pytest.raises(AssertionError, match=r"page.md, line 2: .* prints \[0.333"):
        run_page(page, {})
    page.write_text("```console\nunweave data info nothing  # a comment\n```\n")
    with pytest.raises(AssertionError, match="unweave data info nothing"):
        run_page(page, {})
    page.write_text("```python a.py\nx = 1\n```\n```console no-run\nunweave nothing\n```\n")
    assert run_page(page, {}) == 0
    assert (tmp_path / "a.py").read_text() == "x = 1\n"


# --- the page on Theorem 1 ------------------------------------------------------------------------------


def test_the_table_of_theorem_1_has_the_numbers_of_its_example():
    text = PAGES["docs/theorem1.md"].read_text(encoding="utf-8")
    rows = [line.split("|")[2:-1] for line in text.splitlines() if line.startswith("| the ") and "." in line]
    in_table = [cell.strip() for row in rows for cell in row]
    block = next(b for b in read_blocks(text) if b.text.startswith("metrics ="))
    (in_example,) = shown_numbers(block.text).values()
    assert in_table == in_example
