import json
import time
from pathlib import Path
from typing import Any

import pytest

from unweave.data import registry
from unweave.errors import UnweaveError
from unweave.evaluation.inception import SECONDS
from unweave.study import estimate as module
from unweave.study.estimate import (
    DataFacts,
    Packing,
    best_packing,
    candidates,
    cores,
    data_facts,
    estimate,
    steps_within,
    training_rates,
)
from unweave.study.folder import StudyFolder
from unweave.study.planning import Job, plan
from unweave.study.scores import units
from unweave.study.source import Source
from unweave.study.spec import Evaluation, check, load_study


def test_the_facts_of_a_data_set_is_known_without_its_files() -> None:
    assert data_facts("dsprites") == DataFacts((64, 64, 1), 737_280, (3, 6, 40, 32, 32))
    assert data_facts("shapes3d") == DataFacts((64, 64, 3), 480_000, (10, 10, 10, 8, 4, 15))
    assert data_facts("cars3d") == DataFacts((64, 64, 3), 17_568, (4, 24, 183))
    assert data_facts("small_norb").factors == (5, 9, 18, 6)
    assert data_facts("mnist").shape == (28, 28, 1)


def test_a_folder_is_opened(images, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    assert data_facts(str(images)) == DataFacts((8, 8, 1), 24, (4, 3, 2))
    assert data_facts(str(images), 32).shape == (32, 32, 1)


@pytest.mark.parametrize("name", registry.names())
def test_every_data_set_has_facts(name: str) -> None:
    found = data_facts(name)
    assert min(found.shape) >= 1
    assert found.images > 0


def test_time_and_disk_grow_with_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "best_packing", lambda root: Packing(2, 1, 1.8))
    monkeypatch.setattr(module, "training_rates", lambda *args: ([320.0, 640.0, 640.0, 1280.0], 2_000_000))
    values = {
        "name": "s",
        "training": {"steps": 3600, "batch_size": 64},
        "runs": {"data": "dsprites", "method": "beta_vae", "beta": [1, 2, 3, 4, 5], "seed": {"range": 2}},
        "evaluation": {"metrics": ["mig"], "num_train": 1000, "num_test": 100},
    }
    study = check(Source(values))
    folder = StudyFolder(tmp_path, "s", plan(study))
    facts = dict(estimate(folder, folder.jobs))
    assert facts["runs left"] == "10"
    # 10 runs x 3,600 steps x 64 images at 640 a second
    assert facts["training"] == "60 min (30 min to 2.0 h) of one core"
    assert facts["here"].endswith("2 processes of 1 threads")
    assert facts["disk"] == "0.0 GB when finished"


@pytest.mark.parametrize(
    ("processes", "rate", "expected"),
    [
        (
            2,
            5_000,
            (7_000, 7_000 * 128 / 5_000),
        ),  # 3 runs are 2 turns of 64 images: 180 s * 5,000 / 128 = 7,031
        (1, 5_000, (4_500, 4_500 * 192 / 5_000)),
        (3, 5_000, (8_000, 8_000 * 64 / 5_000)),
        (1, 500, (1_000, 1_000 * 192 / 500)),
    ],
)
def test_steps_that_fit_into_a_time(
    monkeypatch: pytest.MonkeyPatch, processes: int, rate: float, expected: tuple[int, float]
) -> None:
    rates = iter([4 * rate, rate, 2 * rate])  # the slowest method counts
    monkeypatch.setattr(
        module, "_train_shortly", lambda *given: module.Cost(module.Range(0, 1 / next(rates), 9), 0)
    )
    jobs = plan(*load_study("demo")).jobs
    assert steps_within(jobs, processes, 180, 1_000, 8_000) == (expected[0], pytest.approx(expected[1]))


def test_candidates_fill_the_cores_and_never_more() -> None:
    assert candidates(1) == [(1, 1)]
    assert candidates(2) == [(2, 1), (1, 2)]
    assert candidates(6) == [(6, 1), (3, 2), (1, 4)]
    assert candidates(8) == [(8, 1), (4, 2), (2, 4), (1, 8)]


def test_the_fastest_is_chosen_and_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []
    monkeypatch.setattr(module, "_measure", lambda: measured.append(1) or {"2x1": 1.7, "1x2": 1.9})
    assert best_packing(tmp_path) == Packing(1, 2, 1.9)
    assert best_packing(tmp_path) == Packing(1, 2, 1.9)
    assert measured == [1]


def test_another_machine_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "packing.json").write_text(json.dumps({"elsewhere-64": {"64x1": 50.0}}))
    monkeypatch.setattr(module, "_measure", lambda: {"1x1": 1.0})
    assert best_packing(tmp_path) == Packing(1, 1, 1.0)
    assert "elsewhere-64" in json.loads((tmp_path / "packing.json").read_text())


def job(method: str, **changes: Any) -> Job:
    runs = {"data": "dsprites", "method": method, "seed": 0, **changes}
    return plan(check(Source({"name": "s", "runs": runs}))).jobs[-1]


def test_the_rate_is_of_real_training() -> None:
    rates, size = training_rates(
        job("beta_vae", beta=2, latent_size=4), (64, 64, 1), 0.02, 3, time.process_time
    )
    assert len(rates) == 3
    assert min(rates) > 0
    assert 1e6 < size < 1e7  # the papers' network: about half a million weights


@pytest.mark.parametrize("method", ["idvae", "full_vae", "ss_ivae", "ada_gvae"])
def test_methods_that_need_labels_or_pairs_have_a_rate(method: str) -> None:
    for changes in ({}, {"latent_size": 2}, {"labels": {"labelled": 0.1}} if method == "ss_ivae" else {}):
        assert training_rates(job(method, **changes), (64, 64, 1), 0.01, 1, time.process_time)[0][0] > 0


def test_both_kinds_of_runs_are_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first stage at 640 images a second, what is on top of it at 320."""
    monkeypatch.setattr(module, "best_packing", lambda root: Packing(1, 1, 1.0))

    def rates(job: Job, *args: object) -> tuple[list[float], int]:
        return [320.0 if job.stages else 640.0], 1_000

    monkeypatch.setattr(module, "training_rates", rates)
    runs = {"data": "dsprites", "method": "ms_vae", "first": {"method": "vae"}, "seed": {"range": 2}}
    study = check(
        Source({"name": "s", "training": {"steps": 3600}, "runs": runs, "evaluation": {"metrics": ["mig"]}})
    )
    folder = StudyFolder(tmp_path, "s", plan(study))
    facts = dict(estimate(folder, folder.jobs))
    assert facts["runs left"] == "4"
    assert facts["training"].startswith("36 min ")  # twice 6 and twice 12 minutes


def test_data_is_told_apart_by_the_size_of_its_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "best_packing", lambda root: Packing(1, 1, 1.0))
    shapes = []
    monkeypatch.setattr(
        module, "training_rates", lambda job, shape, *args: shapes.append(shape) or ([640.0], 1_000)
    )
    runs = {"data": "dsprites", "method": "vae", "image_size": [None, 32], "seed": 0}
    study = check(Source({"name": "s", "runs": runs, "evaluation": {"metrics": ["mig"]}}))
    folder = StudyFolder(tmp_path, "s", plan(study))
    estimate(folder, folder.jobs)
    assert sorted(shapes) == [(32, 32, 1), (64, 64, 1)]


def test_what_cannot_learn_from_random_images_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "best_packing", lambda root: Packing(1, 1, 1.0))

    def refuse(*args: object) -> None:
        raise UnweaveError("needs music")

    monkeypatch.setattr(module, "training_rates", refuse)
    study = check(
        Source(
            {
                "name": "s",
                "runs": {"data": "dsprites", "method": "vae", "seed": 0},
                "evaluation": {"metrics": ["mig"]},
            }
        )
    )
    folder = StudyFolder(tmp_path, "s", plan(study))
    assert dict(estimate(folder, folder.jobs))["not counted"] == "vae: needs music"


def test_cores_are_those_of_the_process() -> None:
    assert cores() >= 1


def test_metrics_of_models_cost_what_they_declare() -> None:
    facts = module.DataFacts((64, 64, 1), 100_000, (3, 4))

    def seconds(metric: str, **params: object) -> float:
        (unit,) = units(Evaluation.model_validate({"metrics": [{"metric": metric, **params}]}))
        return module._seconds(unit, facts, encoding=1000.0)

    assert seconds("reconstruction_error", num_images=2000) == 4.0  # an encoder's and a decoder's pass each
    assert seconds("fid_reconstruction", num_images=1000) == 2.0 + 1000 * SECONDS
    assert seconds("fid_reconstruction", num_images=1000, features="folder") == 2.0
    assert seconds("conditioning") == 120.0


def test_what_is_compiled_at_its_first_use_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, took = [0.0], [100.0, 0.5]

    def score(*_arguments: object, **_options: object) -> None:
        clock[0] += took.pop(0)

    monkeypatch.setattr(module, "score", score)
    monkeypatch.setattr(module.time, "process_time", lambda: clock[0])
    (unit,) = units(Evaluation(metrics=["mig"]))
    assert module._time_metric(unit, (3, 4)) == 0.5 * unit.num_train / 1000
    assert not took
