"""A run of a folder of images remembers the folder."""

import shutil

import numpy as np
import pytest
from PIL import Image

import unweave as uw
from unweave.cli.exits import run as run_command
from unweave.data.own.folders import folder_content
from unweave.data.registry import load_described
from unweave.training.spec import RunSpec


@pytest.fixture
def trained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = ["file,shape"]
    for number in range(12):
        Image.fromarray(rng.integers(0, 256, (20, 20), dtype=np.uint8)).save(folder / f"{number:02}.png")
        lines.append(f"{number:02}.png,{number % 3}")
    (folder / "factors.csv").write_text("\n".join(lines))
    data = uw.data.load("photos", image_size=8)
    method = uw.methods.create("vae", data, architecture="mlp", latent_size=2)
    return uw.train(method, data, steps=2, batch_size=4, out=tmp_path / "run", pictures=False)


def evaluate(*more):
    with pytest.raises(SystemExit) as end:
        run_command(["evaluate", "run", "--metrics", "mig", *more])
    return end.value.code


def test_the_folder_is_as_given_and_absolute_with_its_content(trained, tmp_path):
    spec = uw.load(tmp_path / "run").spec
    assert spec.folder["given"] == "photos"
    assert spec.folder["path"] == str(tmp_path / "photos")
    assert spec.folder["content"] == folder_content("photos")
    assert spec.identity == RunSpec(**{**vars(spec), "folder": {}}).identity


def test_evaluate_needs_no_more(trained, capsys, monkeypatch):
    assert evaluate() == 0
    assert "mig\t" in capsys.readouterr().out
    monkeypatch.chdir("/")
    images = load_described(trained.spec.data, trained.spec.folder)
    assert images.image_shape == (8, 8, 1)
    assert images.space.names == ("shape",)


def test_a_folder_that_has_moved_is_asked_for(trained, tmp_path, capsys):
    shutil.move(tmp_path / "photos", tmp_path / "elsewhere")
    assert evaluate() == 2
    assert "--data" in capsys.readouterr().err
    assert evaluate("--data", "elsewhere", "--size", "8") == 0


def test_changed_images_are_warned_of(trained, tmp_path):
    Image.fromarray(np.zeros((20, 20), np.uint8)).save(tmp_path / "photos" / "00.png")
    with pytest.warns(UserWarning, match="have changed since the run was trained"):
        load_described(trained.spec.data, trained.spec.folder)
