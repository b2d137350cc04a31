"""From a study file to its plan: its runs, with every setting resolved, and what is measured of each.

A run may need another: ``{method: ms_vae, first: {method: beta_tcvae, beta: 4}}`` is a run of ``ms_vae`` on top of one
of ``beta_tcvae``, its first stage. That one is a run of the plan like any other, once for all that need it.

The driver plans a study once and writes the plan into the study's folder; workers and Ray tasks read it there.
"""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.errors import ArgumentError, DamagedFileError, DataError, UnweaveError, show, unknown_name
from unweave.study.grid import GridError, Point, below, expand, find_axis
from unweave.study.source import Source
from unweave.study.spec import METHOD_SETTINGS, TRAIN_SETTINGS, Study, Training

if TYPE_CHECKING:
    from unweave.methods.catalogue import MethodInfo
    from unweave.study.scores import Unit

FORMAT = 1
_DEFAULTS = Training().model_dump()
_SEED, _STAGE = uuid.uuid4().hex, uuid.uuid4().hex  # stand for these in what is hashed, and for nothing else
_AXES = {"data set": "data"}  # arguments that a grid calls otherwise
# What an earlier stage takes over from the run that needs it, unless it says otherwise.
SHARED = ("data", "seed", "image_size", "split", "labels_csv", *TRAIN_SETTINGS)


@dataclass(frozen=True)
class Job:
    """One run of a study: a method with all its hyperparameters, trained on a data set in a stated way from a seed.

    Parameters
    ----------
    data
        a data set's name, or a folder of images.
    method
        a method's name.
    hyperparameters
        all of the method's own, defaults included. An earlier stage is given by the identity of its run.
    training
        the fields of :class:`~unweave.study.spec.Training` that the method takes.
    seed
        of everything random.
    identity
        the hash of all settings. It names the run's directory, and is equal in every study that contains the run.
    content
        of a folder of images: a hash of the images, wherever the folder is.
    stages
        by hyperparameter, the runs that must have been trained before: the method's earlier stages.

    Examples
    --------
    >>> study, source = uw.study.load_study("demo")
    >>> job = uw.study.plan(study, source).jobs[0]
    >>> job.method, job.data, job.seed
    ('vae', 'dsprites', 0)
    """

    data: str
    method: str
    hyperparameters: Mapping[str, Any]
    training: Mapping[str, Any]
    seed: int
    identity: str
    content: str = ""
    stages: Mapping[str, Job] = field(default_factory=dict)

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
        """What is common to the runs that differ in their seed, and in those of their earlier stages, only."""
        stages = {name: stage.group for name, stage in self.stages.items()}
        without = replace(self, hyperparameters={**self.hyperparameters, **stages})
        return _hash({**_identifying(without), "seed": None})

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as they are hashed and stored."""
        values = {
            "format": FORMAT,
            "data": self.data,
            "method": self.method,
            "hyperparameters": dict(self.hyperparameters),
            "training": dict(self.training),
            "seed": self.seed,
        }
        return {**values, "content": self.content} if self.content else values

    def settings(self) -> dict[str, Any]:
        """Everything by the name that a grid may give it."""
        own = {name: value for name, value in self.hyperparameters.items() if name not in self.stages}
        qualified = {f"method.{name}": value for name, value in own.items()}
        about = {"data": self.data, "method": self.method, "seed": self.seed}
        settings = {**qualified, **own, **self.training, **about}
        for stage, job in self.stages.items():
            settings |= {f"{stage}.{name}": value for name, value in job.settings().items()}
        return settings

    @property
    def label(self) -> str:
        """The method with its strength, and those of its earlier stages: "ms_vae latent_size 5 after vae"."""
        strength = f" {self.strength_name} {self.strength:g}" if not math.isnan(self.strength) else ""
        stages = " and ".join(stage.label for stage in self.stages.values())
        return f"{self.method}{strength}" + (f" after {stages}" if stages else "")

    def __str__(self) -> str:
        return f"{self.label} on {self.data}, seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    """A study, all its runs and what is measured of each: everything that a worker needs to know.

    Examples
    --------
    >>> study, source = uw.study.load_study("demo")
    >>> plan = uw.study.plan(study, source)
    >>> len(plan.jobs), plan.units[0].label
    (3, 'mig')
    """

    study: Study
    jobs: Sequence[Job]
    units: Sequence[Unit]

    @cached_property
    def done_file(self) -> str:
        """The name of the file of a run that has all the study's scores."""
        from unweave.study.scores import identity

        return f"evaluation-{identity(self.units, self.study.evaluation.labels)}.json"

    def to_json(self) -> str:
        """The plan as text. "done" and "runs" are what watching a study takes, see ``StudyPaths.read_plan``."""
        kinds: dict[str, int] = {}  # runs that differ in their seed only share their settings
        runs = []
        for job in self.jobs:
            own = {name: None if name in job.stages else v for name, v in job.hyperparameters.items()}
            kind = json.dumps([job.data, job.method, own, dict(job.training), job.content])
            number = kinds.setdefault(kind, len(kinds))
            needs = {name: stage.identity for name, stage in job.stages.items()}
            runs.append([job.identity, job.data, job.method, job.strength, job.seed, number])
            runs[-1] += [needs] if needs else []
        parts = {
            "done": self.done_file,
            "study": self.study.as_dict(),
            "units": [unit.as_dict() for unit in self.units],
            "kinds": [json.loads(kind) for kind in kinds],
            "runs": runs,
        }
        return json.dumps(parts, default=str)

    @staticmethod
    def from_json(parts: Mapping[str, Any]) -> Plan:
        """The plan that :meth:`to_json` wrote."""
        from unweave.study.scores import Unit

        try:
            jobs: dict[str, Job] = {}
            for identity, _, _, _, seed, number, *needs in parts["runs"]:
                data, method, hyperparameters, training, content = parts["kinds"][number]
                stages = {
                    name: jobs[stage] for one in needs for name, stage in one.items()
                }  # they come before
                hyperparameters = {
                    **hyperparameters,
                    **{name: stage.identity for name, stage in stages.items()},
                }
                jobs[identity] = Job(data, method, hyperparameters, training, seed, identity, content, stages)
            units = [Unit(**values) for values in parts["units"]]
            return Plan(Study.model_validate(parts["study"]), list(jobs.values()), units)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise DamagedFileError("plan.json", error) from error


def plan(study: Study, source: Source | None = None) -> Plan:
    """The plan of a study; nothing is trained or loaded.

    Parameters
    ----------
    study, source
        as :func:`unweave.study.load_study` returns them. With ``source``, the message of a mistake has its line.

    Examples
    --------
    >>> study, source = uw.study.load_study("demo", {"seed": 7})
    >>> str(uw.study.plan(study, source).jobs[0])
    'vae on dsprites, seed 7'
    """
    from unweave.study.scores import units

    return Plan(study, plan_jobs(study, source), units(study.evaluation, source))


def plan_jobs(study: Study, source: Source | None = None) -> list[Job]:
    """All runs of a study, in the order of its grid, each once; before a run those that it needs."""
    source = source or Source({})
    try:
        points = expand(study.runs, ("runs",))
    except GridError as error:
        name = ".".join(str(key) for key in error.path)
        raise DataError(f"{source.line(error.path)}: {name}: {error}") from error
    resolver = _Resolver(study)
    jobs: dict[str, Job] = {}
    for point in points:
        try:
            job = resolver.job(point)
        except UnweaveError as error:
            line = line_of_setting(error, point, source)
            raise DataError(f"{line}: in the grid's point {show(point)}: {error}") from error
        for each in with_stages(job):
            jobs.setdefault(each.identity, each)
    return list(jobs.values())


def with_stages(job: Job) -> list[Job]:
    """A run after all that it needs, and that those need."""
    return [*(one for stage in job.stages.values() for one in with_stages(stage)), job]


def without_runs(whole: Plan, runs: Collection[str]) -> Plan:
    """A plan without some of its runs, by their identity; those that others of it need stay.

    >>> from unweave.study import load_study, plan
    >>> whole = plan(*load_study("demo"))
    >>> len(without_runs(whole, [whole.jobs[0].identity]).jobs)
    2
    """
    left = [job for job in whole.jobs if job.identity not in runs]
    needed = {each.identity for job in left for each in with_stages(job)}
    return replace(whole, jobs=[job for job in whole.jobs if job.identity in needed])


def missing_methods(jobs: Sequence[Job]) -> list[str]:
    """The methods of a plan that this version does not have."""
    from unweave.methods.registry import METHODS

    return sorted({job.method for job in jobs} - set(METHODS))


def line_of_setting(error: Exception, settings: Mapping[str, Any], source: Source) -> str:
    """The line of the setting that an error names, of a run with these settings; else that of the whole grid."""
    prefix = ""
    while isinstance(error, _StageError):
        prefix, error = f"{prefix}{error.stage}.", error.error
    if not isinstance(error, ArgumentError):
        return source.line(("runs",))
    name = _AXES.get(error.argument, error.argument)
    for axis in (name, f"method.{name}", str(error.value)):  # of an unknown name, the value is the axis
        path = find_axis(source.values.get("runs"), settings, prefix + axis, ("runs",))
        if path is not None:
            is_name = axis != name and not axis.endswith(name)
            return source.line(path[:-1] if is_name and isinstance(path[-1], int) else path)
    named = [path for path in source.lines if path[:1] in (("runs",), ("training",)) and path[-1] == name]
    return source.line(named[0] if len(named) == 1 else ("runs",))


class _StageError(UnweaveError):
    """An earlier stage is at fault."""

    def __init__(self, stage: str, error: UnweaveError) -> None:
        self.stage, self.error = stage, error
        super().__init__(f"{stage}: {error}")


class _Resolver:
    """Turns points of a grid into jobs. Points that differ in their seed only are checked and written out once."""

    def __init__(self, study: Study) -> None:
        self.defaults, self.later = study.training.model_dump(), study.requires
        self.kinds: dict[
            str, tuple[Job, str]
        ] = {}  # a run of each, and what is hashed, with marks for the rest
        self.contents: dict[tuple[str, str | None], str] = {}

    def job(self, point: Point) -> Job:
        """The run at a point of the grid."""
        for name in ("data", "method", "seed"):
            if name not in point:
                raise ArgumentError(name, None, "every run needs data, method and seed")
        names = _stage_names(point)
        settings = {key: value for key, value in point.items() if key.partition(".")[0] not in names}
        seed = settings.pop("seed")
        if type(seed) is not int or not 0 <= seed < 2**63:
            raise ArgumentError("seed", seed, "needs a whole number >= 0 of at most 63 bits")
        key = repr((settings, names))
        if key not in self.kinds:
            kind = self._kind(settings, names)
            text = json.dumps({**_identifying(kind), "seed": _SEED}, sort_keys=True)
            self.kinds[key] = kind, text
        kind, text = self.kinds[key]
        stages = {name: self._stage(name, point) for name in names}
        identities = {name: stage.identity for name, stage in stages.items()}
        text = text.replace(f'"{_SEED}"', str(seed))
        for name in names:
            text = text.replace(f'"{_STAGE}{name}"', f'"{identities[name]}"')
        return replace(
            kind,
            hyperparameters={**kind.hyperparameters, **identities},
            seed=seed,
            identity=hashlib.sha256(text.encode()).hexdigest()[:20],
            stages=stages,
        )

    def _stage(self, name: str, point: Point) -> Job:
        """The run that is an earlier stage of the one at a point."""
        shared = {key: point[key] for key in SHARED if key in point}
        try:
            return self.job({**shared, **below(point, name)})
        except UnweaveError as error:
            raise _StageError(name, error) from error

    def _kind(self, settings: dict[str, Any], stages: Sequence[str]) -> Job:
        """The run with these settings, without its seed; marks stand for the identities of its stages."""
        axes = settings.keys() & self.defaults.keys()
        settings = dict(settings)
        data, method = settings.pop("data"), settings.pop("method")
        training = {name: settings.pop(name, default) for name, default in self.defaults.items()}
        # "method.steps" is a hyperparameter whose name the training takes for itself.
        given = {name.removeprefix("method."): value for name, value in settings.items()}
        given |= {name: _STAGE + name for name in stages}
        hyperparameters, training = _resolve(data, method, given, training, axes, self.later)
        key = data, training["labels_csv"]
        if key not in self.contents:
            self.contents[key] = _content(*key)
        return Job(data, method, hyperparameters, training, 0, "", self.contents[key])


def _stage_names(point: Point) -> list[str]:
    """The axes of a point that hold runs, checked: hyperparameters of its method that are earlier stages."""
    from unweave.methods.registry import METHODS, describe

    names = dict.fromkeys(name for name, dot, _ in (key.partition(".") for key in point) if dot)
    names.pop("method", None)  # method.steps is a hyperparameter of the run's own
    method = point["method"]
    known = describe(method).stages if isinstance(method, str) and method in METHODS else tuple(names)
    for name in names:
        if name not in known:
            given = below(point, name)
            raise ArgumentError(name, given.get("method"), f"{method} has no earlier stage of this name")
        if name in point:
            raise ArgumentError(name, point[name], f"is given with settings of its own: {below(point, name)}")
    for name in known:
        if point.get(name) is not None:
            raise ArgumentError(name, point[name], "needs a mapping in a study: {method: …}")
    return list(names)


def _resolve(
    data: Any, method: Any, given: dict[str, Any], training: dict[str, Any], axes: Any, later: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hyperparameters with their defaults, and checked settings; equal runs come out equal (4 is 4.0)."""
    from unweave.methods.registry import METHODS, describe, label_need

    _check_data(data)
    _check_names(training)
    if not isinstance(method, str):
        raise ArgumentError("method", method, "needs a method's name")
    if axes:
        training = _check_training(training)
    _check_image_size(data, training["image_size"])
    _check_split(data, training["split"])
    _check_labels_csv(data, training["labels_csv"])
    if method not in METHODS:
        if method in later:
            return given, training
        raise unknown_name("method", str(method), [*METHODS, *later])
    info = describe(method)
    known = dict(sorted(info.hyperparameters.items(), key=lambda entry: entry[0] != info.strength))
    for name in given:
        if name not in known:
            raise unknown_name(f"hyperparameter of {method}", name, [*known, *Training.model_fields])
    if not info.is_vae:
        given, training = _split_settings(info, given, training, axes)
        info.check(given)
    else:
        need = label_need(method, training["prior"], training["extra_terms"], **given)
        if need == "none" and "labels" not in axes:  # the study's labels are for those that learn from them
            training = {**training, "labels": None}
    return {name: _typed(given.get(name, default), default) for name, default in known.items()}, training


def _split_settings(
    info: MethodInfo, given: dict[str, Any], training: dict[str, Any], axes: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hyperparameters and settings of a method that is no VAE, without the settings that it does not take.

    A hyperparameter that is called as a setting, such as ``latent_size``, may be given by the grid as either.
    """
    given, training = dict(given), dict(training)
    for name in METHOD_SETTINGS:
        if name in info.hyperparameters:
            if name in axes:
                given.setdefault(name, training[name])
            training[name] = given.get(name, info.hyperparameters[name])
        elif name in info.settings:
            continue
        elif name in axes:
            why = "it does not learn from labels" if name == "labels" else "it is not a VAE"
            raise ArgumentError(name, training[name], f"{info.name} does not take it: {why}")
        else:
            del training[name]
    return given, training


def _typed(value: Any, default: Any) -> Any:
    """A number in the type of its default (None counts as one)."""
    if type(value) is int and (default is None or isinstance(default, float)):
        return float(value)
    is_count = type(default) is int and isinstance(value, float) and value.is_integer()
    return int(value) if is_count else value


def _check_training(values: dict[str, Any]) -> dict[str, Any]:
    from pydantic import ValidationError

    try:
        return Training.model_validate(values).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        raise ArgumentError(str(first["loc"][0]), first["input"], first["msg"]) from error


def _check_data(data: Any) -> None:
    from unweave.data import registry

    if not isinstance(data, str):
        raise ArgumentError("data", data, "needs a data set's name or a folder of images")
    if data not in registry.names() and not Path(data).is_dir():
        raise unknown_name("data set", data, [*registry.names(), "a folder"])


def _check_split(data: str, split: str | None) -> None:
    from unweave.data.registry import RECIPES
    from unweave.data.split import LABELLED

    recipe = RECIPES.get(data)
    known = recipe.splits if recipe is not None else {}
    if split is not None and "," not in split and split not in known and split != LABELLED:
        allowed = " or ".join(known) or "no parts by name"
        raise ArgumentError("split", split, f"{data} has {allowed}; of any, [0.8, 0] is a random part")


def _check_labels_csv(data: str, labels_csv: str | None) -> None:
    from unweave.data import registry

    if labels_csv is not None and data in registry.names():
        raise ArgumentError("labels_csv", labels_csv, f"{data} has its own factors: needs a folder of images")
    if labels_csv is not None and not Path(labels_csv).is_file():
        raise ArgumentError("labels_csv", labels_csv, "there is no such file")


def _check_image_size(data: str, image_size: int | None) -> None:
    from unweave.data.image_size import check_image_size
    from unweave.data.registry import RECIPES

    recipe = RECIPES.get(data)
    if image_size is not None and recipe is not None and recipe.image_shape is not None:
        check_image_size(data, recipe.image_shape, image_size)


def _check_names(training: Mapping[str, Any]) -> None:
    if all(training[name] == _DEFAULTS[name] for name in ("architecture", "reconstruction")):
        return  # so that torch, which the names come with, is not imported for most studies
    from unweave.methods import LIKELIHOODS
    from unweave.networks.create import architecture_name

    architecture_name(training["architecture"])
    if training["reconstruction"] not in LIKELIHOODS:
        raise unknown_name("reconstruction", training["reconstruction"], LIKELIHOODS)


def _content(data: str, labels_csv: str | None) -> str:
    """Of a folder of images a hash of what is in it, and in its labels; a data set by name is always the same."""
    from unweave.data import registry
    from unweave.data.own.folders import FACTORS_FILE, folder_content

    return "" if data in registry.names() else folder_content(data, labels_csv or FACTORS_FILE)


def _identifying(job: Job) -> dict[str, Any]:
    """What is hashed: of a folder, and of a file of labels, what is in it, not where it is.

    Settings at their default are left out: one that a later version adds changes nothing. A default that changes
    needs another ``FORMAT``.
    """
    changed = {name: value for name, value in job.training.items() if value != _DEFAULTS[name]}
    values = {**job.as_dict(), "training": changed}
    if not job.content:
        return values
    return {**values, "data": "", "training": {k: v for k, v in changed.items() if k != "labels_csv"}}


def _hash(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
