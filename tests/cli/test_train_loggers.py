"""The real command with each logger: a fresh run, one that was stopped and goes on, one that was finished before."""

import importlib.util
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

STEPS, STOPPED = 8, 3
# Ctrl-C at a step that is known: after the third record of the history.
INTERRUPTED = f"""
import signal, sys
from unweave.cli import main
from unweave.training import loop
append = loop.append_record
def append_and_stop(path, record):
    append(path, record)
    if record["step"] == {STOPPED}:
        signal.raise_signal(signal.SIGINT)
loop.append_record = append_and_stop
main(sys.argv[1:])
"""


@pytest.fixture
def command(tmp_path):
    """``command(logger, *program)``: the command in a process of its own, as a shell would start it."""
    (tmp_path / "images").mkdir()
    rng = np.random.default_rng(0)
    for number in range(4):
        pixels = rng.integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / f"{number}.png")

    def call(logger, program=("-m", "unweave"), steps=STEPS):
        line = [
            "train",
            "vae",
            "--data",
            "images",
            "--steps",
            str(steps),
            "--batch-size",
            "2",
            "--log-every",
            "1",
        ]
        line += [
            "--architecture",
            "mlp",
            "--latent-size",
            "2",
            "--no-pictures",
            "--out",
            "run",
            "--logger",
            logger,
        ]
        environment = {
            **os.environ,
            "UNWEAVE_DATA": str(tmp_path / "store"),
            "WANDB_MODE": "offline",
            "WANDB_SILENT": "true",
            "OMP_NUM_THREADS": "1",
        }
        environment.pop("MLFLOW_TRACKING_URI", None)
        return subprocess.run(
            [sys.executable, *program, *line], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    return call


def _skip_without(command, logger):
    """Without its package a logger is refused before anything is done: checked, and then skipped."""
    if importlib.util.find_spec(logger) is not None:
        return
    done = command(logger)
    assert done.returncode != 0
    assert f"needs the package {logger}: pip install 'unweave[loggers]'" in done.stderr
    pytest.skip(f"{logger} is not installed: pip install 'unweave[loggers]'. That it is missed was checked")


@pytest.mark.filterwarnings("ignore")  # of the packages that read what was logged
@pytest.mark.parametrize("logger", ["tensorboard", "wandb", "mlflow"])
def test_a_run_that_stops_goes_on_and_is_not_logged_again(command, tmp_path, logger):
    _skip_without(command, logger)
    stopped = command(logger, ("-c", INTERRUPTED))
    assert stopped.returncode == 128 + signal.SIGINT, stopped.stderr
    assert f"kept up to step {STOPPED} in run; the same command goes on from there" in stopped.stderr
    resumed = command(logger)
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.splitlines()[-1] == "run"
    assert resumed.stdout.splitlines()[0].startswith(f"step {STEPS}, loss ")
    finished = command(logger)
    assert finished.returncode == 0, finished.stderr
    assert f"was finished before, at step {STEPS}; nothing was trained" in finished.stderr
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    READERS[logger](tmp_path, {record["step"]: record["loss"] for record in history})
    further = command(logger, steps=STEPS + 2)
    assert further.returncode == 0, further.stderr


def _check_tensorboard(folder, losses):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "run" / "tensorboard"))
    events.Reload()
    assert {"loss", "reconstruction", "kl", "images_per_second"} == set(events.Tags()["scalars"])
    logged = [(event.step, event.value) for event in events.Scalars("loss")]
    assert [step for step, _ in logged] == list(range(1, STEPS + 1))
    assert dict(logged) == pytest.approx(losses)
    assert len(list((folder / "run" / "tensorboard").iterdir())) == 2  # none of the run that was finished


def _check_wandb(folder, losses):
    identifier = (folder / "run" / "wandb.txt").read_text().strip()
    parts = sorted((folder / "wandb").glob("offline-run-*"))
    assert len(parts) == 2  # none of the run that was finished
    for part in parts:  # the second goes on with the first
        assert part.name.endswith(f"-{identifier}")
        assert next(part.glob("*.wandb")).stat().st_size > 0


def _check_mlflow(folder, losses):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder}/mlflow.db")
    experiment = client.get_experiment_by_name("unweave")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.run_id == (folder / "run" / "mlflow.txt").read_text().strip()
    assert (run.info.run_name, run.info.status) == ("run", "FINISHED")
    logged = client.get_metric_history(run.info.run_id, "loss")
    assert sorted(metric.step for metric in logged) == list(range(1, STEPS + 1))
    assert {metric.step: metric.value for metric in logged} == pytest.approx(losses)


READERS = {"tensorboard": _check_tensorboard, "wandb": _check_wandb, "mlflow": _check_mlflow}
