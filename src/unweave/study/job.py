"""A job: one run of a study, with every setting resolved. Its name is the hash of them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from unweave.errors import ArgumentError, DataError, UnweaveError, unknown_name
from unweave.study.faults import place_in_grid
from unweave.study.grid import GridError, Point, expand
from unweave.study.source import Source
from unweave.study.spec import Study, Training

FORMAT = 1
_DEFAULTS = Training().model_dump()


@dataclass(frozen=True)
class Job:
    """A method with all its hyperparameters, trained on a data set in a stated way from a seed."""

    data: str
    method: str
    hyperparameters: Mapping[str, Any]
    training: Mapping[str, Any]
    seed: int
    identity: str  # names the run's directory; equal in every study that contains the run
    content: str = ""  # of a folder of images: a hash of what is in it, wherever it is

    @property
    def strength_name(self) -> str:
        """The method's first hyperparameter, by which the papers vary it."""
        return next(iter(self.hyperparameters), "")

    @property
    def strength(self) -> float:
        """Its value; NaN for a method without any."""
        value = self.hyperparameters.get(self.strength_name)
        return float(value) if isinstance(value, (int, float)) else math.nan

    @property
    def group(self) -> str:
        """What is common to the runs that differ in their seed only."""
        return _hash({**_identifying(self), "seed": None})

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as they are hashed and written down."""
        told = {
            "format": FORMAT,
            "data": self.data,
            "method": self.method,
            "hyperparameters": dict(self.hyperparameters),
            "training": dict(self.training),
            "seed": self.seed,
        }
        return {**told, "content": self.content} if self.content else told

    def settings(self) -> dict[str, Any]:
        """Everything by the name that a grid may give it."""
        own = {f"method.{name}": value for name, value in self.hyperparameters.items()}
        told = {"data": self.data, "method": self.method, "seed": self.seed}
        return {**own, **self.hyperparameters, **self.training, **told}

    def __str__(self) -> str:
        strength = f" {self.strength_name} {self.strength:g}" if self.strength_name else ""
        return f"{self.method}{strength} on {self.data}, seed {self.seed}"


def plan(study: Study, source: Source | None = None) -> list[Job]:
    """All runs of a study, in the order of its grid, each once; nothing is trained or loaded."""
    source = source or Source({})
    try:
        points = expand(study.runs, ("runs",))
    except GridError as error:
        name = ".".join(str(key) for key in error.path)
        raise DataError(f"{source.place(error.path)}: {name}: {error}") from error
    defaults = study.training.model_dump()
    checked: dict[str, Any] = {}
    contents: dict[str, str] = {}
    jobs: dict[str, Job] = {}
    for point in points:
        try:
            job = _job(point, defaults, study.requires, checked, contents)
        except UnweaveError as error:
            place = place_in_grid(error, point, source)
            raise DataError(f"{place}: in the grid's point {point}: {error}") from error
        jobs.setdefault(job.identity, job)
    return list(jobs.values())


def missing_methods(jobs: list[Job]) -> list[str]:
    """The methods of a plan that this version does not have."""
    from unweave.methods import METHODS

    return sorted({job.method for job in jobs} - set(METHODS))


def _job(
    point: Point,
    defaults: dict[str, Any],
    later: list[str],
    checked: dict[str, Any],
    contents: dict[str, str],
) -> Job:
    settings = dict(point)
    for name in ("data", "method", "seed"):
        if name not in settings:
            raise ArgumentError(name, None, "every run needs data, method and seed")
    data, method, seed = (settings.pop(name) for name in ("data", "method", "seed"))
    if type(seed) is not int or seed < 0:
        raise ArgumentError("seed", seed, "needs a whole number >= 0")
    training = {name: settings.pop(name, default) for name, default in defaults.items()}
    # "method.steps" is a hyperparameter whose name the training takes for itself.
    given = {name.removeprefix("method."): value for name, value in settings.items()}
    key = json.dumps([data, method, given, training], sort_keys=True, default=str)
    if key not in checked:  # seeds repeat the same settings many times
        checked[key] = _resolved(data, method, given, training, point.keys() & defaults.keys(), later)
    hyperparameters, training = checked[key]
    if data not in contents:
        contents[data] = _content(data)
    job = Job(data, method, hyperparameters, training, seed, "", contents[data])
    return replace(job, identity=_hash(_identifying(job))[:20])


def _resolved(
    data: Any, method: Any, given: dict[str, Any], training: dict[str, Any], own: Any, later: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hyperparameters with their defaults, and checked settings; equal runs come out equal (4 is 4.0)."""
    from unweave.methods import METHODS, hyperparameters
    from unweave.methods.registry import label_need

    _check_data(data)
    _check_names(training)
    if not isinstance(method, str):
        raise ArgumentError("method", method, "needs a method's name")
    if own:
        training = _checked_training(training)
    if method not in METHODS:
        if method in later:
            return given, training
        raise unknown_name("method", str(method), [*METHODS, *later])
    known = hyperparameters(method)
    for name in given:
        if name not in known:
            raise unknown_name(
                f"hyperparameter of {method}", name, [*known, *(f for f in Training.model_fields)]
            )
    need = label_need(method, training["prior"], training["extra_terms"], **given)
    if need == "none" and "labels" not in own:  # the study's labels are for those that learn from them
        training = {**training, "labels": None}
    return {name: _typed(given.get(name, default), default) for name, default in known.items()}, training


def _typed(value: Any, default: Any) -> Any:
    """A number in the type of its default (None stands for one)."""
    if type(value) is int and (default is None or isinstance(default, float)):
        return float(value)
    is_count = type(default) is int and isinstance(value, float) and value.is_integer()
    return int(value) if is_count else value


def _checked_training(values: dict[str, Any]) -> dict[str, Any]:
    from pydantic import ValidationError

    try:
        return Training.model_validate(values).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        raise ArgumentError(str(first["loc"][0]), first["input"], first["msg"]) from error


def _check_data(data: Any) -> None:
    from pathlib import Path

    from unweave.data import registry

    if not isinstance(data, str):
        raise ArgumentError("data", data, "needs a data set's name or a folder of images")
    if data not in registry.names() and not Path(data).is_dir():
        raise unknown_name("data set", data, [*registry.names(), "a folder"])


def _check_names(training: Mapping[str, Any]) -> None:
    from unweave.methods.vae.likelihoods import LIKELIHOODS
    from unweave.networks.create import ENCODERS

    known = {"architecture": ("auto", *ENCODERS), "reconstruction": LIKELIHOODS}
    for name, names in known.items():
        if training[name] not in names:
            raise unknown_name(name, training[name], names)


def _content(data: str) -> str:
    """Of a folder of images a hash of what is in it; a data set by name is always the same."""
    from unweave.data import registry
    from unweave.data.own.folders import folder_content

    return "" if data in registry.names() else folder_content(data)


def _identifying(job: Job) -> dict[str, Any]:
    """What is hashed: of a folder what is in it, not where it is.

    Settings at their default are left out: one that a later version adds changes nothing. A default that changes
    needs another ``FORMAT``.
    """
    own = {name: value for name, value in job.training.items() if value != _DEFAULTS[name]}
    told = {**job.as_dict(), "training": own}
    return {**told, "data": ""} if job.content else told


def _hash(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
