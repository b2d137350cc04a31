import sys
import types

import pytest

import unweave as uw
from unweave.errors import UnweaveError
from unweave.training import Callback, MLflow, TensorBoard, WeightsAndBiases, train


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
            id="abc",
            config=types.SimpleNamespace(update=lambda values, allow_val_change: None),
            log=lambda values, step: logged.append(("wandb", step, set(values))),
            finish=lambda exit_code: logged.append(("finished", exit_code)),
        )
    )
    mlflow = types.SimpleNamespace(
        active_run=lambda: "the user's",
        log_dict=lambda values, name: logged.append((name, values["method"]["name"])),
        log_metrics=lambda values, step: logged.append(("mlflow", step, set(values))),
    )
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    method = uw.methods.create("factor_vae", squares, latent_size=2)
    callbacks = [WeightsAndBiases(project="p"), MLflow()]
    train(method, squares, steps=2, batch_size=4, log_every=2, callbacks=callbacks)
    names = {"loss", "reconstruction", "kl", "total_correlation", "discriminator_loss", "images_per_second"}
    assert logged == [("spec.yaml", "factor_vae"), ("wandb", 2, names), ("mlflow", 2, names), ("finished", 0)]


def test_what_a_service_refuses_is_one_error_before_the_first_step(monkeypatch, squares, tmp_path):
    def refuse(**arguments):
        raise RuntimeError("no account\nlog in first")

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=refuse))
    method = uw.methods.create("vae", squares, latent_size=2)
    with pytest.raises(UnweaveError, match="Weights & Biases cannot log this run: no account log in first"):
        train(method, squares, 2, 4, out=tmp_path / "run", callbacks=[WeightsAndBiases()], pictures=False)
    run = train(method, squares, 2, 4, out=tmp_path / "run", pictures=False)
    assert run.finished


class Recorder(Callback):
    def __init__(self):
        self.calls = []

    def on_start(self, run):
        self.calls.append("start")

    def on_log(self, step, values):
        self.calls.append(step)
        if step == 2:
            raise KeyboardInterrupt

    def on_stop(self, run):
        self.calls.append(f"stop at {run.step}")

    def on_end(self, run):
        self.calls.append("end")


def test_callbacks_hear_of_a_run_that_stops(squares):
    recorder = Recorder()
    method = uw.methods.create("vae", squares, latent_size=2)
    with pytest.raises(KeyboardInterrupt):
        train(method, squares, steps=3, batch_size=4, log_every=1, callbacks=[recorder])
    assert recorder.calls == ["start", 1, 2, "stop at 2"]


def test_a_callback_that_cannot_stop_does_not_hide_why_the_run_did(squares):
    class Failing(Recorder):
        def on_stop(self, run):
            raise OSError("disk full")

    method = uw.methods.create("vae", squares, latent_size=2)
    with pytest.raises(KeyboardInterrupt) as caught:
        train(method, squares, steps=3, batch_size=4, log_every=1, callbacks=[Failing()])
    assert caught.value.__notes__ == ["Failing could not stop: disk full"]
