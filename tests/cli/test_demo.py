"""The demo: how many steps it plans, and, with few of them, all that it promises."""

import re

import pytest

from unweave.cli import demo
from unweave.cli.app import app
from unweave.study import StudyFolder, estimate, load_study, plan


def test_steps_are_measured_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(estimate, "steps_within", lambda *given: (3500, 170.0))
    assert demo._plan_steps(tmp_path) == (
        3500,
        ", about 3 min at this machine's speed now (fewer: --steps)",
    )
    study, source = load_study("demo", {"training.steps": 1500})
    StudyFolder(tmp_path, "demo", plan(study, source)).write()
    steps, text = demo._plan_steps(tmp_path)
    assert steps == 1500
    assert "as this folder has begun" in text


@pytest.mark.slow
def test_it_trains_loads_scores_and_draws(tmp_path, monkeypatch, capfd, prepared_data):
    monkeypatch.setenv("UNWEAVE_DATA", str(prepared_data))
    app(["demo", "--steps", "5", "-o", str(tmp_path / "demo")], standalone_mode=False)
    out = capfd.readouterr().out
    paths = dict(
        re.findall(r"^(What the latents do|Move them yourself|The report)[^:]*: (.+)$", out, re.MULTILINE)
    )
    assert len(paths) == 3
    for path in paths.values():
        assert (tmp_path / path).stat().st_size > 10_000
    lines = [line.split("\t") for line in out.splitlines()]
    header = next(line for line in lines if line[0] == "SCORE")
    assert header == ["SCORE", "vae", "beta_vae", "beta_tcvae", "zoo:dsprites/beta_tcvae"]
    scores = {row[0]: [float(cell) for cell in row[1:]] for row in lines if row[0] in ("mig", "dci")}
    assert scores["mig"][3] > max(scores["mig"][:3])
    assert scores["dci"][3] > max(scores["dci"][:3])
    assert "Trained just now: vae, beta_vae, beta_tcvae, 5 steps each" in out
    assert "Loaded: zoo:dsprites/beta_tcvae" in out
