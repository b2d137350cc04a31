"""Runs that are stopped in every way, by real signals to real processes, end in the same bits."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import unweave as uw
from unweave.training.run import steps_done

STEPS = 60
PROGRAM = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import torch
torch.set_num_threads(1)
from conftest import small_images
import unweave as uw
data = small_images()
method = uw.methods.create("factor_vae", data, latent_size=2)
options = dict(batch_size=8, seed=2, checkpoint_every=7, log_every=5, pictures=False)
uw.train(method, data, {STEPS}, out=sys.argv[1], **options)
"""


def start(folder):
    with errors_of(folder).open("w") as errors:
        return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], stderr=errors)


def errors_of(folder):
    return folder.with_name("errors.txt")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    process = start(folder)
    assert process.wait(timeout=300) == 0, errors_of(folder).read_text()
    return uw.load(folder)


def assert_same(folder, undisturbed):
    run = uw.load(folder)
    assert run.finished
    for (name, value), expected in zip(
        run.method.state_dict().items(), undisturbed.method.state_dict().values(), strict=True
    ):
        assert torch.equal(value, expected), name
    times = ("images_per_second",)
    for record, expected in zip(run.records, undisturbed.records, strict=True):
        assert {k: v for k, v in record.items() if k not in times} == {
            k: v for k, v in expected.items() if k not in times
        }


def wait_for(condition, process, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_kill_at_random_moments(tmp_path, undisturbed):
    folder = tmp_path / "run"
    state = folder / "state.safetensors"
    chance = random.Random(0)
    kills = 0
    for _ in range(4):
        process = start(folder)
        before = state.stat().st_mtime_ns if state.exists() else 0
        try:
            wait_for(lambda b=before: state.exists() and state.stat().st_mtime_ns > b, process)
        except AssertionError:
            break  # it was quicker than we are
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        process.wait()
        kills += 1
        assert steps_done(folder) > 0
    assert kills >= 2
    final = start(folder)
    assert final.wait(timeout=300) == 0, errors_of(folder).read_text()
    assert_same(folder, undisturbed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_write_a_checkpoint_and_leave(tmp_path, undisturbed, number):
    folder = tmp_path / "run"
    process = start(folder)
    wait_for(
        lambda: (folder / "history.jsonl").exists() and (folder / "history.jsonl").stat().st_size > 0, process
    )
    process.send_signal(number)
    code = process.wait(timeout=60)
    assert code == (143 if number == signal.SIGTERM else -signal.SIGINT)
    done = steps_done(folder)
    assert 5 <= done < STEPS
    assert not (folder / "weights.safetensors").exists()
    loaded = uw.load(folder).method  # an unfinished run can be looked at
    assert not loaded.fresh
    assert start(folder).wait(timeout=300) == 0
    assert_same(folder, undisturbed)
