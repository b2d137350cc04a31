"""Mutated files of every format give a clear error or are read as before, within limits of memory and time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHECKED = ("codes", "kept y", "rendered images", "prepared data")
FUZZER = Path(__file__).with_name("fuzzer.py")


def fuzz(folder, files, seed):
    command = [sys.executable, str(FUZZER), str(folder), "--files", str(files), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    outcome = json.loads(done.stdout)
    unclear = [case for case in outcome["bad"] if case["outcome"] != "changed"]
    told = "\n".join(
        f"{case['number']} {case['format']} {case['file']} {case['what']}: {case['trace']}"
        for case in unclear
    )
    assert not unclear, told[-5000:]
    return outcome


def changed(outcome, *formats):
    return sum(outcome["formats"][name].get("changed", 0) for name in formats)


def test_a_few_hundred_mutated_files(tmp_path):
    outcome = fuzz(tmp_path / "fuzz", 320, seed=1)
    assert sum(outcome["total"].values()) == 320
    # What has a checksum is never taken for something else.
    assert changed(outcome, *CHECKED) == 0


@pytest.mark.slow
def test_thousands_of_mutated_files(tmp_path):
    outcome = fuzz(tmp_path / "fuzz", 2400, seed=0)
    print(json.dumps(outcome["total"]), json.dumps(outcome["formats"], indent=1))
    assert changed(outcome, *CHECKED) == 0
