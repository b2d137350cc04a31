import json
from pathlib import Path

import pytest

from unweave.study import packing
from unweave.study.packing import Packing, best_packing, candidates, cores, training_rate


def test_candidates_fill_the_cores_and_never_more() -> None:
    assert candidates(1) == [(1, 1)]
    assert candidates(2) == [(2, 1), (1, 2)]
    assert candidates(6) == [(6, 1), (3, 2), (1, 4)]
    assert candidates(8) == [(8, 1), (4, 2), (2, 4), (1, 8)]


def test_the_fastest_is_chosen_and_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []
    monkeypatch.setattr(packing, "_measure", lambda: measured.append(1) or {"2x1": 1.7, "1x2": 1.9})
    assert best_packing(tmp_path) == Packing(1, 2, 1.9)
    assert best_packing(tmp_path) == Packing(1, 2, 1.9)
    assert measured == [1]


def test_another_machine_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "packing.json").write_text(json.dumps({"elsewhere-64": {"64x1": 50.0}}))
    monkeypatch.setattr(packing, "_measure", lambda: {"1x1": 1.0})
    assert best_packing(tmp_path) == Packing(1, 1, 1.0)
    assert "elsewhere-64" in json.loads((tmp_path / "packing.json").read_text())


def test_the_rate_is_of_real_training() -> None:
    rate, size = training_rate("beta_vae", (64, 64, 1), 0.05, beta=2.0, latent_size=4)
    assert rate > 0
    assert 1e6 < size < 1e7  # the papers' network: about half a million weights


@pytest.mark.parametrize("method", ["idvae", "full_vae", "ss_ivae", "ada_gvae"])
def test_methods_that_need_labels_or_pairs_have_a_rate(method: str) -> None:
    assert training_rate(method, (64, 64, 1), 0.05)[0] > 0
    assert training_rate(method, (64, 64, 1), 0.05, latent_size=2)[0] > 0


def test_cores_are_those_of_the_process() -> None:
    assert cores() >= 1
