import sys
import types

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
