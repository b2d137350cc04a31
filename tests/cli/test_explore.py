"""``unweave explore`` and ``unweave names``."""

import json

import numpy as np
import pytest
from PIL import Image

import unweave as uw
from unweave.cli import main


def call(*arguments):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run on a folder of images, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    rng = np.random.default_rng(0)
    for number in range(8):
        Image.fromarray(rng.integers(0, 256, (8, 8), np.uint8)).save(tmp_path / "photos" / f"{number}.png")
    data = uw.data.load("photos")
    method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    uw.train(method, data, steps=1, batch_size=4, out="run")
    return tmp_path / "run"


def test_explore_writes_one_file(run, capsys):
    assert call("explore", "run", "-o", "page.html", "--title", "My <photos>") == 0
    assert capsys.readouterr().out.startswith("page.html: ")
    assert "<title>My &lt;photos&gt;</title>" in (run.parent / "page.html").read_text(encoding="utf-8")
    assert not list(run.parent.glob(".page*"))


def test_explore_refuses_what_is_no_run(run, capsys):
    assert call("explore", "nothing") == 1
    assert "nothing" in capsys.readouterr().err
    assert call("explore", "run", "-o", "photos") != 0
    assert "--output" in capsys.readouterr().err


def test_explore_of_a_folder_that_has_moved_names_the_option(run, capsys):
    (run.parent / "photos").rename(run.parent / "moved")
    assert call("explore", "run", "-o", "page.html") != 0
    assert "--data" in capsys.readouterr().err
    assert call("explore", "run", "-o", "page.html", "--data", "moved") == 0


def test_names_are_kept_in_the_run_and_drawn_in_its_pictures(run, capsys):
    before = (run / "traversals.png").read_bytes()
    (run.parent / "names.json").write_text(json.dumps({"z1": "<b>size</b>", "z0": " "}))
    assert call("names", "run", "names.json") == 0
    assert capsys.readouterr().out == "LATENT\tNAME\nz0\t\nz1\t<b>size</b>\n"
    assert uw.load("run").names == {"z1": "<b>size</b>"}
    assert (run / "traversals.png").read_bytes() != before
    assert call("explore", "run", "-o", "page.html") == 0
    assert '"name":"\\u003cb\\u003esize\\u003c/b\\u003e"' in (run.parent / "page.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ('{"z9": "far"}', "z9"),
        ('{"z0": 3}', "names"),
        ('{"z0": "' + 101 * "a" + '"}', "100"),
        ("[1]", "JSON object"),
    ],
)
def test_other_names_are_refused(run, capsys, content, word):
    (run.parent / "names.json").write_text(content)
    assert call("names", "run", "names.json") != 0
    assert word in capsys.readouterr().err
    assert uw.load("run").names == {}
    assert call("names", "run", "missing.json") != 0
    assert "no such file" in capsys.readouterr().err
