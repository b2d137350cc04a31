"""``unweave discover``: what it prints and how it fails."""

import numpy as np
import pytest
from PIL import Image

from unweave.cli import main


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["discover", *map(str, arguments)])
    return ended.value.code


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, image in enumerate(np.random.default_rng(0).integers(0, 256, (12, 28, 28), np.uint8)):
        Image.fromarray(image).save(folder / f"{number}.png")
    return folder


def test_the_result_and_the_page_are_printed(photos, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(photos, "--steps", 1, "--seeds", 2) == 0
    headline, page = capsys.readouterr().out.splitlines()
    assert headline.startswith("Nothing was discovered")
    assert page == "photos-discovered/page.html"
    assert (tmp_path / page).exists()


@pytest.mark.parametrize(("processes", "logs"), [(1, 0), (2, 2)])
def test_the_number_of_processes(photos, tmp_path, processes, logs):
    options = ["--steps", 1, "--seeds", 2, "--strength", 4, "--processes", processes]
    assert run(photos, *options, "-o", tmp_path / "out") == 0
    assert len(list((tmp_path / "out" / "work" / "workers").glob("*.log"))) == logs


def test_mistakes_are_one_line_and_no_traceback(photos, tmp_path, capsys):
    assert run(tmp_path / "nowhere") == 2
    assert run(photos, "--minutes", 0) == 2
    assert run(photos, "--processes", 0) == 2
    assert run(photos, "--processes", "all") == 2
    shown = capsys.readouterr().err
    assert "needs a folder of images" in shown
    assert "minutes = 0" in shown
    assert "processes = 0: needs a whole number >= 1" in shown
    assert "--processes" in shown
    assert "Traceback" not in shown


def test_after_ctrl_c_it_says_what_is_kept(photos, tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("unweave.discovery.runs.train", interrupted)
    assert run(photos, "--steps", 1, "--seeds", 2, "--processes", 1, "-o", tmp_path / "out") == 130
    assert "the same command goes on" in capsys.readouterr().err
