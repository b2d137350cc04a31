"""``unweave data clean`` and ``unweave study clean``: show what can go, and remove it only when asked."""

import json
import os
import time

import numpy as np
import pytest

import unweave as uw
from unweave.cli import main
from unweave.data.storage.lazy import LazyArray
from unweave.study.folder import StudyPaths

LEFT = ".results-0123456789abcdef0123456789abcdef.parquet"


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        return int(caught.value.code or 0), *capsys.readouterr()

    return call


def old(path, content=b"x" * 5000):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    hours_ago = time.time() - 7200
    os.utime(path, (hours_ago, hours_ago))
    return path


def test_data_clean(run, data_folder):
    code, out, _ = run("data", "clean")
    assert (code, out.strip()) == (0, "there is nothing to remove")
    part = old(data_folder / "mnist" / "train-images.gz.part")
    kept = old(data_folder / "mnist" / "train-labels.gz")
    for version in (1, 2):
        array = LazyArray(
            data_folder / "rooms3d", (4, 8), lambda rows: np.ones((len(rows), 8), np.uint8), version=version
        )
        array.take(np.arange(4))
        array.flush()
    code, out, _ = run("data", "clean")
    assert code == 0
    assert "a download that was cut" in out
    assert "images of an older version" in out
    assert "2 files and folders take" in out
    assert "--yes" in out
    assert part.exists()
    code, out, _ = run("data", "clean", "--yes")
    assert "removed 2 files and folders" in out
    assert not part.exists()
    assert kept.exists()
    assert [path.name for path in (data_folder / "rooms3d").glob("rendered*")] == ["rendered-v2"]
    assert "rendered images" in run("data", "clean", "rooms3d", "--drawn")[1]


def test_official_files_of_prepared_data_go_only_when_asked(run, data_folder):
    file = uw.data.find("mnist").files[0]
    source = old(data_folder / "mnist" / file.name)
    np.save(old(data_folder / "mnist" / "prepared" / "images.npy"), np.zeros(3))
    assert "nothing" in run("data", "clean", "mnist", "--yes")[1]
    assert "an official file" in run("data", "clean", "mnist", "--sources")[1]
    run("data", "clean", "mnist", "--sources", "--yes")
    assert not source.exists()


def test_study_clean(run, tmp_path):
    root = tmp_path / "out"
    plan = {"done": "evaluation-1.json", "runs": [["kept", "data", "vae", 1, 0, 0]]}
    old(root / "s" / "plan.json", json.dumps(plan).encode())
    leftover = old(root / "s" / LEFT)
    damaged = old(root / "runs" / "kept" / "evaluation-1.json.damaged")
    codes = old(root / "runs" / "kept" / "codes" / "table" / "images.npy")
    done = old(root / "runs" / "kept" / "evaluation-1.json")
    orphan = old(root / "runs" / "orphan" / "weights.safetensors")
    young = root / "s" / LEFT.replace("0", "1")
    young.write_bytes(b"somebody writes this now")
    _, out, _ = run("study", "clean", "--out", root)
    assert "3 files and folders take" in out
    assert "orphan" not in out
    with StudyPaths(root, "").lock("kept"):  # somebody works on it
        assert "1 files and folders take" in run("study", "clean", "--out", root)[1]
    run("study", "clean", "--out", root, "--yes")
    assert not leftover.exists()
    assert not damaged.exists()
    assert not codes.exists()
    for path in (young, done, orphan):
        assert path.exists()
    run("study", "clean", "--out", root, "--orphans", "--yes")
    assert not orphan.parent.exists()
    assert done.exists()


def test_study_clean_follows_no_links(run, tmp_path):
    root, other = tmp_path / "studies", tmp_path / "other"
    kept = [
        old(other / name) for name in ("codes/images.npy", "evaluation-1.json", "scores.json.damaged", LEFT)
    ]
    (root / "runs" / "own").mkdir(parents=True)
    (root / "runs" / "linked").symlink_to(other)
    (root / "runs" / "own" / "scores").symlink_to(other)
    (root / "runs" / "own" / "codes").symlink_to(other / "codes")
    old(root / "runs" / "own" / "evaluation-1.json")
    code, out, _ = run("study", "clean", "--out", root, "--yes")
    assert (code, out.strip()) == (0, "there is nothing to remove")
    assert all(path.exists() for path in kept)
