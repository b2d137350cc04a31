"""The documentation of the metrics is complete: a page for each, and an overview of what each needs."""

import re
from pathlib import Path

import unweave as uw

DOCS = Path(__file__).parents[2] / "docs"
OVERVIEW = DOCS / "metrics.md"
PAGES = sorted((DOCS / "metrics").glob("*.md"))
# What the table says a metric needs, by what its function takes.
NEEDS = {
    "interventions": {"interventions"},
    "sample": {"", "no factors", "posterior (optional)"},
    "split": {"test split"},
    "posterior": {"posterior"},
    "models": {"several models"},
}


def test_every_metric_has_a_page_that_the_overview_links():
    linked = re.findall(r"\]\(metrics/(\w+)\.md\)", OVERVIEW.read_text(encoding="utf-8"))
    pages = {page.stem for page in PAGES}
    assert set(uw.metrics.names()) <= pages
    assert pages == set(linked)


def test_the_overview_tells_what_each_metric_needs():
    rows = re.findall(
        r"^\| \[(\w+)\]\(metrics/\w+\.md\) \|.*\| ([^|]*?) ?\|$",
        OVERVIEW.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    table = dict(rows)
    for name, metric in uw.metrics.METRICS.items():
        needs = {"test split if given"} if metric.in_sample else NEEDS[metric.takes]
        assert table[name] in needs, name
