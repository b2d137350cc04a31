"""The documentation of the metrics is complete, and its examples print the numbers that it shows."""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import unweave as uw

DOCS = Path(__file__).parent.parent / "docs"
OVERVIEW = DOCS / "metrics.md"
PAGES = sorted((DOCS / "metrics").glob("*.md"))
# What the table says a metric needs, by the kind that the registry gives it.
NEEDS = {
    "interventions": {"interventions"},
    "sample": {"", "no factors", "posterior (optional)"},
    "split": {"test split"},
    "posterior": {"posterior"},
    "models": {"several models"},
}


def python_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def shown(block):
    """The numbers in the comment that ends each print, as text, by the line where the print begins."""
    lines = block.splitlines()
    calls = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Expr)]
    return {
        call.lineno: re.findall(r"-?\d+(?:\.\d+)?", lines[call.end_lineno - 1][call.end_col_offset :])
        for call in calls
        if lines[call.lineno - 1].lstrip().startswith("print(")
    }


def run(block, names):
    """The numbers that each print gets: {line: [...]}; ``names`` are kept for the page's next block."""
    printed = {}

    def record(*values):
        numbers = np.concatenate([np.ravel(value).astype(float) for value in values])
        printed.setdefault(sys._getframe(1).f_lineno, []).extend(numbers.tolist())

    names["print"] = record
    exec(compile(block, "example", "exec"), names)
    return printed


def agrees(text, value):
    """Whether ``value``, rounded to the digits of ``text``, is ``text``; a tie may be rounded either way."""
    digits = len(text.partition(".")[2])
    return abs(float(text) - value) <= 0.5 * 10**-digits + 1e-9


@pytest.mark.parametrize("page", [OVERVIEW, *PAGES], ids=lambda page: page.stem)
def test_examples_print_what_they_show(page):
    names = {}
    blocks = python_blocks(page.read_text(encoding="utf-8"))
    assert blocks
    for block in blocks:
        expected, printed = shown(block), run(block, names)
        assert expected
        assert expected.keys() == printed.keys()
        for line, texts in expected.items():
            values = printed[line]
            told = f"{page.name}: {block.splitlines()[line - 1].strip()} prints {values}"
            assert len(texts) == len(values), told
            assert all(map(agrees, texts, values)), told


def test_a_wrong_digit_is_noticed():
    assert agrees("0.82", 0.8249)
    assert not agrees("0.82", 0.8251)
    assert not agrees("1.00", 0.99)
    assert agrees("-3", -2.7)


def test_every_metric_has_a_page_that_the_overview_links():
    linked = re.findall(r"\]\(metrics/(\w+)\.md\)", OVERVIEW.read_text(encoding="utf-8"))
    pages = {page.stem for page in PAGES}
    assert set(uw.metrics.names()) <= pages
    assert pages == set(linked)


def test_links_between_pages_lead_somewhere():
    for page in [OVERVIEW, *PAGES]:
        for target in re.findall(r"\]\(([^)#:]+\.md)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page.name} -> {target}"


def test_the_overview_tells_what_each_metric_needs():
    rows = re.findall(
        r"^\| \[(\w+)\]\(metrics/\w+\.md\) \|.*\| ([^|]*?) ?\|$",
        OVERVIEW.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    table = dict(rows)
    for name, metric in uw.metrics.METRICS.items():
        assert table[name] in NEEDS[metric.kind], name
