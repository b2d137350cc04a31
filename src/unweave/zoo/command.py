"""The command that trains a run again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from unweave.data.registry import RECIPES
from unweave.methods.spec import VAESpec
from unweave.training import RunSpec

_DEFAULTS = {"latent_size": 10, "architecture": "auto", "reconstruction": "bernoulli", "correlation": 0.0}


def command_of(spec: RunSpec) -> str | None:
    """The command ``unweave train …`` of a run; None where there is none, as for networks or arrays of the user's own.

    Examples
    --------
    >>> data = uw.data.load("pendulum")
    >>> method = uw.methods.create("beta_vae", data, beta=4, latent_size=3, reconstruction="mse")
    >>> print(command_of(uw.training.plan(method, data, steps=1000, learning_rate={"peak": 1e-3, "warmup": 50})))
    unweave train beta_vae --data pendulum --steps 1000 --learning-rate 0.001 --warmup 50 --latent-size 3
        --reconstruction mse --set beta=4
    """
    try:
        words = [f"unweave train {spec.method.name} --data {spec.data['name']}", *_data(spec)]
        words += [f"--steps {spec.steps}", *_training(spec), *_method(spec.method)]
        return " ".join([*words, *_settings(spec.method.hyperparameters)])
    except _NoCommandError:
        return None


class _NoCommandError(Exception):
    """Something in the spec has no option."""


def _data(spec: RunSpec) -> Iterator[str]:
    name, shape = spec.data["name"], spec.data["image_shape"]
    if not RECIPES.is_builtin(name) or spec.imports:
        raise _NoCommandError
    if RECIPES[name].image_shape != tuple(shape):
        yield f"--size {shape[0]}"
    if "split" in spec.data:
        split = spec.data["split"]
        yield f"--split {split if isinstance(split, str) else ','.join(map(str, split))}"


def _training(spec: RunSpec) -> Iterator[str]:
    if spec.batch_size != 64:
        yield f"--batch-size {spec.batch_size}"
    rate = spec.learning_rate
    if isinstance(rate, Mapping):
        if rate.get("end", 0.0) != 0.0 or rate.get("over", spec.steps) != spec.steps:
            raise _NoCommandError
        yield f"--learning-rate {rate['peak']}"
        yield f"--warmup {rate.get('warmup', 0)}"
        if rate.get("shape", "constant") != "constant":
            yield f"--decay {rate['shape']}"
    else:
        yield f"--learning-rate {rate}"
    if spec.seed != 0:
        yield f"--seed {spec.seed}"
    if spec.precision != "32-true":
        yield f"--precision {spec.precision}"


def _method(spec: Any) -> Iterator[str]:
    if spec.labels is not None:
        yield from _labels(spec.labels)
    if not isinstance(spec, VAESpec):
        return
    if spec.capacity or spec.extra_terms or spec.prior or spec.architecture == "custom":
        raise _NoCommandError
    for name, default in _DEFAULTS.items():
        value = getattr(spec, name)
        if value != default:
            yield f"--{name.replace('_', '-')} {shlex.quote(_text(value))}"
    if spec.correlated is not None:
        yield f"--correlated {spec.correlated}"


def _labels(labels: Mapping[str, Any]) -> Iterator[str]:
    if set(labels) - {"columns", "encoding"}:
        raise _NoCommandError
    yield f"--labels {','.join(shlex.quote(column['name']) for column in labels['columns'])}"
    if labels["encoding"] != "scaled":
        yield f"--label-encoding {labels['encoding']}"


def _settings(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            if "method" in value:  # an earlier stage
                raise _NoCommandError
            yield from _settings(value, f"{prefix}{name}.")
        else:
            yield f"--set {shlex.quote(f'{prefix}{name}={_text(value)}')}"


def _text(value: Any) -> str:
    """A value as an option takes it; a mapping as NAME:KEY=VALUE,…."""
    if isinstance(value, Mapping):
        rest = ",".join(f"{key}={_text(part)}" for key, part in value.items() if key != "name")
        return f"{value['name']}:{rest}"
    return str(value)
