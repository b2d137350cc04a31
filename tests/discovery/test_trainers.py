"""Runs in processes side by side: the same bits, through interruptions, deaths and full disks."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.discovery import trainers as module
from unweave.discovery.choices import Setting, choose
from unweave.discovery.photographs import read_photographs
from unweave.discovery.runs import Job, pilot_jobs, train_runs
from unweave.discovery.trainers import Orders, SideBySide, ThisProcess, create_trainer, measure_seconds
from unweave.errors import DataError, DiskFullError, UnweaveError

QUICK = {"steps": 2, "seeds": 2, "latent_size": 3, "strength": 4.0}
PATIENCE = 120.0


@pytest.fixture
def photos(save, squares):
    return save("photos", squares(12))


@pytest.fixture
def plan(photos, tmp_path):
    """``plan(steps)``: for the photographs that are kept in tmp_path / "work"; two runs to choose from."""
    photographs = read_photographs(photos, tmp_path / "work")

    def make(steps):
        chosen = choose(photographs, 1, steps=steps, seeds=2, latent_size=3, seconds_per_step=None)
        return replace(chosen, settings=chosen.settings[:1])

    return make


def two_jobs(plan):
    return [Job(plan.settings[0], seed, plan.steps, True) for seed in range(2)]


def data_of(work):
    return uw.data.from_arrays(np.array(module.stored_images(work)), name="photos")


def weights(folder):
    """The bytes of all weights below a folder, by run."""
    return {path.parent.name: path.read_bytes() for path in folder.rglob("weights.safetensors")}


def workers_of(work):
    """The processes that were started for a work folder and are still there."""
    living = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if str(work).encode() in words and b"unweave.discovery.worker" in words:
                living.append(int(process.name))
        except OSError:  # it ended just now
            continue
    return living


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_results_do_not_depend_on_the_number_of_processes(photos, tmp_path, capsys):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        one, two = (uw.discover(photos, out=tmp_path / str(n), processes=n, **QUICK) for n in (1, 2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert weights(tmp_path / "1") == weights(tmp_path / "2") != {}
    np.testing.assert_array_equal(one.selected.measured.mean, two.selected.measured.mean)
    for name in ("page.html", "codes.csv", "discovery.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    assert workers_of(tmp_path / "2" / "work") == []
    shown = capsys.readouterr().err
    assert shown.count("Training anew, run 1 of 2: β-TCVAE, strength 4") == 2


def test_this_process_trains_with_one_thread(photos, tmp_path, monkeypatch):
    seen = []
    real = torch.optim.Adam.step

    def step(self, *arguments, **options):
        seen.append(torch.get_num_threads())
        return real(self, *arguments, **options)

    monkeypatch.setattr(torch.optim.Adam, "step", step)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        uw.discover(photos, out=tmp_path / "out", processes=1, **QUICK)
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}


def test_a_folder_is_gone_on_with_another_number_and_nothing_is_started_for_what_is_done(
    photos, tmp_path, monkeypatch
):
    uw.discover(photos, out=tmp_path / "out", processes=1, **QUICK)
    before = weights(tmp_path / "out")
    monkeypatch.setattr(module, "start_worker", None)
    uw.discover(photos, out=tmp_path / "out", processes=2, **QUICK)
    assert weights(tmp_path / "out") == before


def test_the_default_is_the_cores_of_this_process(monkeypatch):
    monkeypatch.setattr(module, "cores", lambda: 7)
    has_gpu = torch.cuda.is_available() or torch.backends.mps.is_available()
    assert module.default_processes() == (1 if has_gpu else 7)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert module.default_processes() == 1


def test_one_process_is_this_one(tmp_path):
    assert isinstance(create_trainer(tmp_path, 1), ThisProcess)
    assert isinstance(create_trainer(tmp_path, 2), SideBySide)


def test_the_speed_is_measured_in_all_processes_at_once(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    work = tmp_path / "work"
    assert 0 < measure_seconds(plan(1), module.stored_images(work)) < 60
    with SideBySide(work, 2) as trainer:
        assert 0 < trainer.seconds_per_step(plan(1)) < 60
        assert len(workers_of(work)) == 2
    assert workers_of(work) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_after_any_end_of_the_command_the_same_one_goes_on_to_the_same_bits(photos, tmp_path, number):
    options = {**QUICK, "steps": 300}
    whole = uw.discover(photos, out=tmp_path / "whole", processes=1, **options)
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, "-m", "unweave", "discover", str(photos), *words, "--processes", "2"]
    work = tmp_path / "parts" / "work"
    with subprocess.Popen(
        [*command, "-o", str(tmp_path / "parts")],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        wait_for(lambda: list(work.glob("runs/*/history.*")))  # it trains
        process.send_signal(number)
        shown = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    assert "Traceback" not in shown
    if number == signal.SIGINT:
        assert "the same command goes on" in shown
    if number != signal.SIGKILL:
        assert workers_of(work) == []
        assert list(work.glob("runs/*/state.*"))  # they have written checkpoints
    parts = uw.discover(photos, out=tmp_path / "parts", processes=2, **options)
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    np.testing.assert_array_equal(whole.selected.measured.mean, parts.selected.measured.mean)
    assert (tmp_path / "whole/page.html").read_bytes() == (tmp_path / "parts/page.html").read_bytes()
    wait_for(lambda: not workers_of(work))


def test_a_worker_that_is_killed_is_replaced(plan, tmp_path, monkeypatch):
    work, chosen = tmp_path / "work", plan(60)
    with ThisProcess(tmp_path / "alone") as trainer:
        train_runs(chosen, two_jobs(chosen), data_of(work), None, trainer)
    killed, real = [], module._Stage.show

    def show(self, job, *others):
        if not killed:
            killed.append(next(w for w in trainer.workers if w and w.job is job))
            killed[0].process.kill()
        real(self, job, *others)

    monkeypatch.setattr(module._Stage, "show", show)
    with SideBySide(work, 2) as trainer:
        result = train_runs(chosen, two_jobs(chosen), data_of(work), None, trainer)
    assert killed[0].process.returncode == -signal.SIGKILL
    assert len(result.runs) == 2
    assert result.notes == ()
    assert weights(work) == weights(tmp_path / "alone") != {}


def test_a_run_that_kills_its_worker_twice_is_an_error_that_says_what_to_do(plan, tmp_path, monkeypatch):
    work, chosen = tmp_path / "work", plan(2)
    real, started = module.start_worker, []

    def start(*arguments, **options):
        started.append(real(*arguments, **options))
        started[-1].kill()
        return started[-1]

    monkeypatch.setattr(module, "start_worker", start)
    message = r"β-TCVAE, strength 8, seed [01]: the process that trained it was killed \(SIGKILL: perhaps out of memory"
    with pytest.raises(UnweaveError, match=message) as caught, SideBySide(work, 2) as trainer:
        train_runs(chosen, two_jobs(chosen), data_of(work), None, trainer)
    assert "fewer processes than 2" in str(caught.value)
    assert all(process.returncode is not None for process in started)
    with (
        pytest.raises(UnweaveError, match="a process that measured this machine was killed"),
        SideBySide(work, 2) as trainer,
    ):
        trainer.seconds_per_step(chosen)


def test_a_run_that_fails_is_noted_and_the_others_go_on(plan, tmp_path):
    """The strength of one setting is beyond any number that a loss may have."""
    work, chosen = tmp_path / "work", plan(3)
    bad = Setting("beta_vae", {"beta": 1e30}, "β-VAE, strength 1e30")
    both = replace(chosen, settings=(bad, *chosen.settings), pilot_seeds=2, pilot_steps=3)
    with SideBySide(work, 2) as trainer:
        result = train_runs(both, pilot_jobs(both), data_of(work), None, trainer)
        again = train_runs(both, pilot_jobs(both), data_of(work), None, trainer)
    assert [(one.setting, one.seed) for one in result.runs] == [(chosen.settings[0], seed) for seed in (0, 1)]
    assert "2 runs failed: their numbers grew without bound" in result.notes[0]
    assert again.notes == result.notes
    failed = json.loads((work / "runs" / "notes.json").read_text())["failed"]
    assert set(failed) == {f"pilot-beta_vae-1e+30-seed-{seed}" for seed in (0, 1)}


def test_what_is_wrong_with_a_run_is_said_as_the_worker_says_it(plan, tmp_path):
    work, chosen = tmp_path / "work", plan(2)
    folder = work / "runs" / two_jobs(chosen)[0].name
    folder.mkdir(parents=True)
    (folder / "thesis.tex").write_text("")
    with pytest.raises(UnweaveError, match="a folder with other files in it"), SideBySide(work, 2) as trainer:
        train_runs(chosen, two_jobs(chosen), data_of(work), None, trainer)
    assert workers_of(work) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_a_full_disk_is_one_clear_message(photos, small_disk, processes):
    disk = small_disk(1500)
    with pytest.raises(DiskFullError, match=r"the disk is full\. What was finished is safe"):
        uw.discover(photos, out=disk / "out", processes=processes, **QUICK)
    assert workers_of(disk / "out" / "work") == []


def test_a_script_needs_no_main_guard(photos, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import unweave as uw\nprint('begin')\n"
        f"uw.discover({str(photos)!r}, out={str(tmp_path / 'out')!r}, processes=2, **{QUICK!r})\nprint('end')\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["begin", "end"]
    assert list((tmp_path / "out" / "work" / "workers").glob("*.log"))  # workers were started


def test_files_of_the_current_folder_are_not_imported(photos, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    for name in ("numpy", "torch", "random"):
        (here / f"{name}.py").write_text("raise SystemExit('imported from here')")
    words = ["--steps", "1", "--seeds", "2", "--strength", "4", "--processes", "2"]
    command = [sys.executable, "-P", "-m", "unweave", "discover", str(photos), *words]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


def test_a_worker_ends_when_there_are_no_more_orders(tmp_path):
    command = [sys.executable, "-m", "unweave.discovery.worker", str(tmp_path), "--parent", str(os.getpid())]
    assert subprocess.run(command, input=b"", timeout=PATIENCE).returncode == 0


def test_a_worker_that_loses_an_interruption_ends_all_the_same(tmp_path, monkeypatch):
    """As one does whose run cannot be kept on a full disk, or ends at that moment."""
    (tmp_path / "workers").mkdir()
    monkeypatch.setattr("unweave.processes.signal.SIGINT", 0)  # a signal that does nothing
    start = time.monotonic()
    with SideBySide(tmp_path, 1) as trainer:
        process = trainer._worker(0).process
    assert process.returncode == 0
    assert time.monotonic() - start < 60  # processes that do not end are killed after two minutes


def test_a_list_of_jobs_that_is_none_is_refused(plan, tmp_path):
    work, chosen = tmp_path / "work", plan(2)
    jobs = {job.name: job for job in two_jobs(chosen)}
    Orders("photos", chosen, jobs).write(work)
    assert Orders.read(work) == Orders("photos", chosen, jobs)
    for content in ("{}", '{"data": "a", "plan": {}, "jobs": {}}', '{"data": "a", "plan": 3, "jobs": []}'):
        (work / "jobs.json").write_text(content)
        with pytest.raises(DataError, match=r"jobs\.json: not the jobs of a discovery"):
            Orders.read(work)


def test_the_bar_counts_the_steps_of_all_runs_and_what_is_left(plan, tmp_path):
    chosen = plan(10)
    jobs = [Job(chosen.settings[0], seed, 10, True) for seed in range(3)]
    shown = []
    stage = module._Stage(jobs, tmp_path, 2)
    for job in jobs[:2]:
        stage.begin(job)
    stage.show(jobs[0], 4.0, 4, lambda *given: shown.append(given))
    stage.show(jobs[1], 4.0, 8, lambda *given: shown.append(given))
    # Steps left: 6 and 2, then 10 in the process that is free first; 8 seconds were 12 steps.
    assert shown[1] == (8, "runs 1, 2", pytest.approx((2 + 10) * 8 / 12))
    stage.end(jobs[1])
    stage.show(jobs[0], 10.0, 10, lambda *given: shown.append(given))
    assert shown[2][:2] == (6, "run 1")
