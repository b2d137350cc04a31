"""A user's file in studies: its methods, metric, term and data set work in worker processes and on a Ray cluster."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from unweave import extensions
from unweave.study.collecting import collect
from unweave.study.folder import open_study
from unweave.study.source import dump

STUDY = {
    "imports": ["./extension.py"],
    "training": {"steps": 30, "batch_size": 4, "architecture": "mlp", "latent_size": 3},
    "runs": {
        "product": [
            {"data": "dots"},
            [
                {"method": "pixel_gaussian"},
                {"method": "small_gan", "weight": [1, 2]},
                {"method": "half_vae", "extra_terms": [[{"name": "sparsity", "weight": 2}]]},
            ],
            {"seed": {"range": 2}},
        ]
    },
    "evaluation": {"metrics": ["mig", {"metric": "spread", "power": 1}], "num_train": 40, "num_test": 20},
}


@pytest.fixture
def file(tmp_path):
    """The study as a user has it: its file and the extension side by side. A process of its own imports them."""
    text = Path(__file__).with_name("extension.py").read_text()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "extension.py").write_text(text)
    path = tmp_path / "mine" / "mine.yaml"
    path.write_text(dump(STUDY))
    return path


@pytest.fixture
def command(tmp_path):
    """``unweave study …`` in another folder."""
    (tmp_path / "elsewhere").mkdir()

    def start(*arguments):
        program = [sys.executable, "-m", "unweave", "study", *map(str, arguments)]
        return subprocess.Popen(
            program, cwd=tmp_path / "elsewhere", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return start


WORKERS = ("--processes", "2", "--threads", "1", "--device", "cpu", "--no-report")


def test_a_users_file_works_with_workers_and_after_a_kill(file, command, tmp_path):
    root = tmp_path / "out"
    first = command("run", file, "-o", root, *WORKERS)
    while not list(root.glob("runs/*/evaluation-*.json")):
        assert first.poll() is None, first.communicate()
    os.kill(first.pid, signal.SIGKILL)
    _, error = first.communicate()
    assert "pixel_gaussian gives images no codes" in error
    second = command("resume", "mine", "-o", root, *WORKERS)
    printed, error = second.communicate(timeout=300)
    assert second.returncode == 0, error
    assert "8 of 8 runs are done" in printed
    folder = open_study(root, "mine")  # imports nothing: it reads the plan
    assert folder.study.imports == [str(file.with_name("extension.py"))]
    table = collect(folder).table
    assert table.groupby("method")["metric"].unique().map(sorted).to_dict() == {
        "half_vae": ["mig", "spread"],
        "small_gan": ["mig", "spread"],
    }
    gans = table[table["method"] == "small_gan"].drop_duplicates("run")
    assert set(gans["latent_size"]) == {2}  # its own hyperparameter, not the study's setting
    assert set(gans["strength"]) == {1.0, 2.0}


def test_a_machine_that_lacks_the_file_loads_its_text(file):
    path = str(file.with_name("extension.py"))
    sources = extensions.sources([path, "a_module"])
    assert list(sources) == [path]
    file.with_name("extension.py").unlink()
    check = f"""
from unweave import extensions
from unweave.methods import METHODS
assert extensions.load([{path!r}], {sources!r}) == [{path!r}]
assert METHODS.origin("small_gan") == {path!r}
assert METHODS["small_gan"].label == "Small GAN"
"""
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


@pytest.mark.parametrize(
    ("axis", "setting", "message"),
    [
        ("correlation: 0", "correlation=[0,0.5]", "pixel_gaussian does not take it: it is not a VAE"),
        ("floor: 1", "reports=[locatelo]", "did you mean 'locatello'?"),
        ("floor: 1", "floor=-1", "floor = -1"),
    ],
)
def test_mistakes_are_known_before_any_run(file, command, axis, setting, message):
    own = "- method: pixel_gaussian\n"
    assert own in file.read_text()
    file.write_text(file.read_text().replace(own, f"{own}      {axis}\n"))
    process = command("run", file, "--set", setting, "-o", file.parent / "out")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    assert message in error
    assert not (file.parent / "out").exists()


def test_a_worker_imports_a_module_of_its_folder_and_none_called_like_one_of_python(
    tiny, opened, tmp_path, monkeypatch
):
    here = tmp_path / "here"
    here.mkdir()
    (here / "own_terms.py").write_text("import colorsys, os\nif 'WORKER' in os.environ:\n    os._exit(17)\n")
    monkeypatch.syspath_prepend(here)
    folder = opened({**tiny, "imports": ["own_terms"]})
    for name in ("queue", "colorsys"):
        (here / f"{name}.py").write_text("1 / 0")
    command = [sys.executable, "-P", "-m", "unweave.study.worker", folder.root, folder.study.name]
    done = subprocess.run(
        command, cwd=here, env={**os.environ, "WORKER": "1"}, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 17, done.stderr


def test_imports_that_are_not_there_are_an_error(tmp_path, command):
    path = tmp_path / "bad.yaml"
    path.write_text(dump({**STUDY, "imports": ["./nowhere.py"]}))
    process = command("plan", path, "--no-measure")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "nowhere.py: there is no such file" in error
