"""Shared fixtures: real data sets, and the count of reference values."""

import os
from pathlib import Path

import pytest

import unweave as uw

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def prepared_data():
    """A data folder that outlives the test run: preparing real dSprites takes some 20 seconds."""
    return Path(os.environ.get("UNWEAVE_TEST_CACHE", ROOT / ".cache" / "data"))


@pytest.fixture(scope="session")
def dsprites(prepared_data):
    """The real dSprites."""
    return uw.data.load("dsprites", prepared_data / "dsprites")


# --- how many reference values were compared ---------------------------------------------------------

GOLDEN = "golden_values_compared"
_counts = {}


@pytest.fixture(autouse=True)
def golden_count(request):
    """Note how many reference values a test compared, if its module counts them (``values_compared``)."""
    counted = getattr(request.module, "values_compared", None)
    before = counted() if counted else 0
    yield
    if counted and counted() > before:
        given = getattr(request.node, "callspec", None)
        params = given.params if given else {}
        case = params.get("case_id") or params.get("name") or (params.get("case") or {}).get("id")
        request.node.user_properties.append((GOLDEN, [counted() - before, case]))


def pytest_runtest_logreport(report):
    if report.when == "teardown":  # also comes from other processes
        for name, value in report.user_properties:
            if name == GOLDEN:
                _counts[report.nodeid] = value


def pytest_terminal_summary(terminalreporter):
    if _counts:
        total = sum(count for count, _ in _counts.values())
        cases = {case for _, case in _counts.values() if case}
        terminalreporter.write_line(f"golden: compared {total:,} values in {len(cases)} cases")
