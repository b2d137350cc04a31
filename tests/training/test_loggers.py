import sys
import types

import numpy as np
import pytest

import unweave as uw
from unweave.errors import UnweaveError
from unweave.training import MLflow, TensorBoard, WeightsAndBiases, train


@pytest.mark.parametrize(
    ("logger", "package"),
    [(lambda: TensorBoard("x"), "tensorboard"), (WeightsAndBiases, "wandb"), (MLflow, "mlflow")],
)
def test_a_missing_package_is_named(monkeypatch, logger, package):
    for name in ("tensorboard", "torch.utils.tensorboard", "wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnweaveError, match=rf"needs the package {package}: pip install 'unweave\[loggers\]'"):
        logger()


def test_loggers_get_every_term(monkeypatch, squares):
    logged = []
    wandb = types.SimpleNamespace(
        init=lambda **arguments: types.SimpleNamespace(
            config={},
            log=lambda values, step: logged.append(("wandb", step, set(values))),
            finish=lambda: logged.append("finished"),
        )
    )
    mlflow = types.SimpleNamespace(
        log_dict=lambda values, name: logged.append((name, values["method"]["name"])),
        log_metrics=lambda values, step: logged.append(("mlflow", step, set(values))),
    )
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    method = uw.methods.create("factor_vae", squares, latent_size=2)
    train(
        method,
        squares,
        steps=2,
        batch_size=4,
        log_every=2,
        callbacks=[WeightsAndBiases(project="p"), MLflow()],
    )
    names = {"loss", "reconstruction", "kl", "total_correlation", "discriminator_loss", "images_per_second"}
    assert logged == [("spec.yaml", "factor_vae"), ("wandb", 2, names), ("mlflow", 2, names), "finished"]


def test_the_command_logs_to_tensorboard_in_a_fresh_run(tmp_path, monkeypatch):
    """The event files lie in the run's directory, which must not be there before the run."""
    from unweave.cli.exits import run as run_command

    pytest.importorskip("tensorboard")
    rng = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    from PIL import Image

    for number in range(4):
        Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(
            tmp_path / "images" / f"{number}.png"
        )
    out = tmp_path / "run"
    command = ["train", "vae", "--data", str(tmp_path / "images"), "--steps", "2", "--batch-size", "2"]
    command += ["--architecture", "mlp", "--logger", "tensorboard", "--no-pictures", "--out", str(out)]
    for _ in range(2):  # fresh, then finished before
        with pytest.raises(SystemExit) as end:
            run_command(command)
        assert end.value.code == 0
    assert list((out / "tensorboard").glob("events.*"))
    assert (out / "spec.yaml").exists()
