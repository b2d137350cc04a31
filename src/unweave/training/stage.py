"""Earlier stages of a method: a trained run as a stage, and the training of those that are still planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from unweave.errors import ArgumentError
from unweave.methods.method import LearnsFromLabels, Method
from unweave.methods.registry import build, create
from unweave.methods.spec import MethodSpec
from unweave.training.checkpoint import weights_hash
from unweave.training.planning import plan, run_name
from unweave.training.run import Run, load

# What a run's spec says besides: no part of what the stage is.
_BESIDES = ("format", "versions", "imports")


def read_stage(name: str, given: Any) -> tuple[dict[str, Any], Method]:
    """What a finished run was, as plain data, and its method with the trained weights: a copy, on the CPU.

    Parameters
    ----------
    name
        of the argument, for errors.
    given
        a run, or its folder.

    Returns
    -------
    spec
        the run's spec, and a hash of its weights.
    method
        as trained.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> run = uw.train(uw.methods.create("vae", data, latent_size=2, architecture="mlp"), data, steps=1)
    >>> spec, method = read_stage("first", run)
    >>> spec["method"]["name"], spec["steps"], type(method).__name__
    ('vae', 1, 'VAE')
    """
    if not isinstance(given, Run | str | Path):
        raise ArgumentError(name, given, "needs a run, its folder, or a mapping of settings with a method")
    run = given if isinstance(given, Run) else load(given)
    if not run.finished:
        raise ArgumentError(
            name, run, "is not finished: the weights of a stage are those after its last step"
        )
    method = build(run.spec.method)
    method.load_state_dict(run.method.state_dict())
    labels = run.method.label_array if isinstance(run.method, LearnsFromLabels) else None
    if labels is not None and isinstance(method, LearnsFromLabels):
        method.remember_labels(labels)
    method.fresh = False
    method.eval()
    spec = {key: value for key, value in run.spec.as_dict().items() if key not in _BESIDES}
    return {**spec, "weights": weights_hash(method)}, method


def train_stages(
    method: Method,
    train: Callable[..., Run],
    settings: Mapping[str, Any],
    folder: Path | None,
    **options: Any,
) -> None:
    """Train the stages that a method was created with as mappings, deepest first; the method then holds them trained.

    Each is a run like any other: with a folder it is ``folder/METHOD-DATA-ID``, where later stages that need the same
    run find it, and where it goes on if it was interrupted.

    Parameters
    ----------
    method
        with planned stages; its spec is completed, and its planned stages get their weights.
    train
        :func:`unweave.training.train`.
    settings
        steps, batch_size, learning_rate, seed and precision of the later stage: defaults for what a mapping leaves out.
    folder
        that holds the runs; None: in memory.
    **options
        of ``train``, such as the device.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    >>> method = uw.methods.create("ms_vae", data, first={"method": "vae", "latent_size": 3}, width=2)
    >>> train_stages(method, uw.train, {"steps": 1, "batch_size": 2}, None)
    >>> method.planned, method.spec.hyperparameters["first"]["steps"]
    ({}, 1)
    """
    completed = {}
    for name, stage in method.planned.items():
        earlier = create(stage.name, stage.data, **stage.settings)
        own = {**settings, **stage.training}
        train_stages(earlier, train, own, folder, **options)
        out = None if folder is None else folder / run_name(plan(earlier, stage.data, **own))
        run = train(earlier, stage.data, **own, out=out, **options)
        completed[name], trained = read_stage(name, run)
        stage.method.load_state_dict(trained.state_dict())
    method.spec = replace(method.spec, hyperparameters={**method.spec.hyperparameters, **completed})
    method.planned = {}


def take_saved_stages(method: Method, settings: Mapping[str, Any], saved: MethodSpec) -> bool:
    """Whether a saved run of the same settings has a method's planned stages, trained; if so, none is left to train.

    A run's weights are those of all its stages: it goes on even where the earlier stages' own runs are gone.

    Parameters
    ----------
    method
        with planned stages; if they are there, it gets the spec of the saved one, and its weights are to be loaded.
    settings
        steps, batch_size, learning_rate, seed and precision of the method's own training.
    saved
        the spec of the saved run's method.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    >>> create = lambda beta: uw.methods.create("ms_vae", data, first={"method": "beta_vae", "beta": beta}, width=2)
    >>> run = uw.train(create(4), data, steps=1, batch_size=2)
    >>> [take_saved_stages(create(beta), run.spec.training, run.spec.method) for beta in (4, 6)]
    [True, False]
    """
    expected = _without_weights({**method.spec.as_dict(), "hyperparameters": _expected(method, settings)})
    if _without_weights(saved.as_dict()) != expected:
        return False
    method.spec, method.planned = saved, {}
    return True


def _expected(method: Method, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The hyperparameters that a method's spec will have when its planned stages are trained, but for their weights."""
    expected = dict(method.spec.hyperparameters)
    for name, stage in method.planned.items():
        own = {**settings, **stage.training}
        spec = {**stage.method.spec.as_dict(), "hyperparameters": _expected(stage.method, own)}
        expected[name] = {**stage.spec, **own, "method": spec}
    return expected


def _without_weights(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A method's spec without the hashes of its stages' weights."""
    plain = {
        name: {
            key: _without_weights(entry) if key == "method" else entry
            for key, entry in value.items()
            if key != "weights"
        }
        if isinstance(value, Mapping) and "method" in value
        else value
        for name, value in spec["hyperparameters"].items()
    }
    return {**spec, "hyperparameters": plain}
