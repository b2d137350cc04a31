from pathlib import Path

import pytest

from unweave.data import registry
from unweave.study import estimate as module
from unweave.study.estimate import Look, estimate, look
from unweave.study.job import plan
from unweave.study.packing import Packing
from unweave.study.source import Source
from unweave.study.spec import check
from unweave.study.store import StudyFolder


def test_the_look_of_a_data_set_is_known_without_its_files() -> None:
    assert look("dsprites") == Look((64, 64, 1), 737_280, (3, 6, 40, 32, 32))
    assert look("shapes3d") == Look((64, 64, 3), 480_000, (10, 10, 10, 8, 4, 15))
    assert look("cars3d") == Look((64, 64, 3), 17_568, (4, 24, 183))
    assert look("small_norb").factors == (5, 9, 18, 6)
    assert look("mnist").shape == (28, 28, 1)


def test_a_folder_is_opened(images, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    assert look(str(images)) == Look((8, 8, 1), 24, (4, 3, 2))
    assert look(str(images), 32).shape == (32, 32, 1)


@pytest.mark.parametrize("name", registry.names())
def test_every_data_set_has_a_look(name: str) -> None:
    found = look(name)
    assert min(found.shape) >= 1
    assert found.images > 0


def test_time_and_disk_grow_with_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "best_packing", lambda root: Packing(2, 1, 1.8))
    monkeypatch.setattr(module, "training_rate", lambda *args, **settings: (640.0, 2_000_000))
    values = {
        "name": "s",
        "training": {"steps": 3600, "batch_size": 64},
        "runs": {"data": "dsprites", "method": "beta_vae", "beta": [1, 2, 3, 4, 5], "seed": {"range": 2}},
        "evaluation": {"metrics": ["mig"], "num_train": 1000, "num_test": 100},
    }
    study = check(Source(values))
    jobs = plan(study)
    facts = dict(estimate(StudyFolder(tmp_path, "s", study, jobs), jobs))
    assert facts["runs left"] == "10"
    assert facts["training"] == "60 min of one core"  # 10 runs x 3,600 steps x 64 images at 640 a second
    assert facts["here"].endswith("2 processes of 1 threads")
    assert facts["disk"] == "0.0 GB when finished"
