"""``--import``: a user's file is loaded where it is named, and nowhere else."""

import subprocess
import sys

import numpy as np
import pytest

EXTENSION = """
import numpy as np
import unweave as uw

print("imported")

@uw.register_data("dots", title="Dots")
def dots():
    return np.eye(4, dtype=np.uint8).reshape(4, 2, 2, 1) * 255, {"corner": [0, 1, 2, 3]}

@uw.register_metric("spread", higher_is_better=False)
def spread(codes, factors, *, power: float = 1.0):
    return (np.abs(codes) ** power).mean()
"""


@pytest.fixture
def extension(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(EXTENSION)
    return tmp_path / "mine.py"


def run(*arguments):
    command = [sys.executable, "-m", "unweave", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def test_what_a_file_registers_is_listed(extension):
    code, printed, errors = run("data", "list", "--import", "./mine.py")
    assert (code, errors) == (0, "")
    assert printed.count("imported\n") == 1
    assert "\ndots\t" in printed
    assert "\nspread\tarrays\tpower=1.0\n" in run("metrics", "--import", extension)[1]
    assert "dots" not in run("data", "list")[1]


def test_a_registered_metric_scores(extension):
    np.savez("codes.npz", codes=np.full((6, 2), -3.0), factors=np.arange(6) % 2)
    options = ["--metrics", "spread", "--import", "./mine.py"]
    code, printed, _ = run("score", "codes.npz", *options, "--set", "spread.power=2")
    assert (code, printed.splitlines()[-1].split("\t")[:2]) == (0, ["spread", "9"])
    code, _, errors = run("score", "codes.npz", "--metrics", "spread")
    assert code == 2
    assert "spread" in errors


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nothing.py", "there is no such file"),
        ("no_such_module", "there is no such module"),
        ("./broken.py", "ZeroDivisionError"),
    ],
)
def test_what_cannot_be_imported_is_an_error(extension, name, message):
    extension.with_name("broken.py").write_text("1 / 0")
    code, printed, errors = run("data", "list", "--import", name)
    assert code in (1, 2)
    assert printed == ""
    assert errors.startswith("error: import ")
    assert message in errors
    assert "Traceback" not in errors
