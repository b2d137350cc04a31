"""Compiled functions work whatever became of the files in which numba keeps them."""

import os
import subprocess
import sys

import pytest

KERNEL = """
from unweave.compiled import compiled
@compiled
def square(x):
    return x * x
"""


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Call a compiled function in a process of its own, with numba's files in a folder."""
    (tmp_path / "kernel.py").write_text(KERNEL)

    def call(folder):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
        command = [sys.executable, "-c", "import kernel; print(kernel.square(3.0))"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-1000:]
        assert done.stdout == "9.0\n"

    return call


def test_damaged_files_are_made_again(call, tmp_path):
    folder = tmp_path / "kept"
    call(folder)
    (index,) = folder.rglob("*.nbi")
    whole = index.read_bytes()
    index.write_bytes(whole[:20])
    call(folder)
    assert len(index.read_bytes()) == len(whole)


def test_a_full_disk_takes_none(call, small_disk):
    folder = small_disk(200)
    free = os.statvfs(folder)
    (folder / "other").write_bytes(bytes(free.f_bavail * free.f_frsize))
    call(folder)
