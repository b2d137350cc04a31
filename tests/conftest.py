"""Shared fixtures: real data sets, and the count of reference values."""

import errno
import importlib.util
import os
import subprocess
import sys
from contextlib import contextmanager
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
    return uw.data.find("dsprites").load(prepared_data / "dsprites")


@pytest.fixture
def benchmark(monkeypatch):
    """``benchmark(name)``: the script benchmarks/name.py as a module."""
    folder = ROOT / "benchmarks"
    monkeypatch.syspath_prepend(folder)

    def load(name):
        spec = importlib.util.spec_from_file_location(f"benchmark_{name}", folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


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


# --- a disk that gets full ---------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """``small_disk(kilobytes)``: the folder of a file system of that size, where the tests may mount one."""
    mounted = []

    def mount(kilobytes):
        folder = tmp_path / f"disk-{len(mounted)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,nr_inodes=1000", "tmpfs", str(folder)]
        if (
            sys.platform != "linux"
            or os.geteuid() != 0
            or subprocess.run(command, capture_output=True).returncode
        ):
            pytest.skip("mounting a small file system needs root on Linux")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def short_writes(monkeypatch):
    """``with short_writes(total)``: the system takes at most 1,000 bytes at a time, and no more than ``total``."""
    real = os.pwrite

    @contextmanager
    def limit(total):
        left = total

        def pwrite(descriptor, data, offset):
            nonlocal left
            if left == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            count = real(descriptor, data[: min(1000, left)], offset)
            left -= count
            return count

        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", pwrite)
            yield

    return limit
