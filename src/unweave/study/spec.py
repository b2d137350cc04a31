"""What a study file says, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from unweave import extensions
from unweave.errors import ArgumentError, DataError, show, unknown_name
from unweave.study.source import IMPORTS, Source, change_axes, dump, override, read

Precision = Literal[
    "32-true", "64-true", "16-true", "16-mixed", "bf16-true", "bf16-mixed", "transformer-engine"
]
LabelMode = Literal["given", "predicted", "unknown"]  # what an encoder that takes labels u gets as u
LABEL_MODES: tuple[LabelMode, ...] = get_args(LabelMode)
WHOLE_CODE = "all"  # of the parts of a code
_RESERVED = ("runs", "state")  # folders that all studies share
_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):  # YAML reads yes and on as true, which would count as 1
        raise ValueError("true and false are not values for it")
    return value


def _split_as_text(value: Any) -> Any:
    """A part of a data set, written in one way: its name, or the fraction and the seed of a random part."""
    if value is None:
        return None
    from unweave.data.split import parse_split, split_text

    try:
        return split_text(parse_split(value))
    except ArgumentError as error:
        raise ValueError(error.allowed) from error


class Training(BaseModel):
    """How runs are trained, unless the grid says otherwise: the arguments of ``methods.create`` and ``train``."""

    model_config = _STRICT

    steps: int = Field(default=300_000, gt=0, lt=10**12)
    batch_size: int = Field(default=64, gt=0, le=10**6)
    learning_rate: float | dict[str, Any] = 1e-4
    latent_size: int = Field(default=10, gt=0, le=65_536)
    architecture: str | dict[str, Any] = "auto"
    reconstruction: str = "bernoulli"
    correlation: float = Field(default=0.0, ge=0, lt=1)
    correlated: Literal["posterior", "noise"] = "posterior"
    capacity: dict[str, float] | None = None
    extra_terms: list[dict[str, Any]] = []
    precision: Precision = "32-true"
    image_size: int | None = Field(default=None, gt=0, le=4096)
    split: str | None = None
    labels_csv: str | None = Field(
        default=None, description="labels of some images of a folder, which become its factors: a CSV file"
    )
    labels: str | list[str] | dict[str, Any] | None = None
    prior: str | dict[str, Any] | None = None

    _no_bool = field_validator("*", mode="before")(_not_bool)
    _split = field_validator("split", mode="before")(_split_as_text)

    @field_validator("learning_rate")
    @classmethod
    def _is_a_learning_rate(cls, value: Any) -> Any:
        from unweave.schedules import LearningRate

        try:
            LearningRate.read(value)
        except ArgumentError as error:
            raise ValueError(str(error)) from error
        return value


class MetricEntry(BaseModel):
    """A metric with parameters of its own. ``as`` names it in the results, where it is used more than once."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)

    metric: str
    label: str | None = Field(default=None, alias="as", pattern=r"^[a-z][a-z0-9_]*$")

    @property
    def name(self) -> str:
        """The metric's name in the results."""
        return self.label or self.metric

    @property
    def params(self) -> dict[str, Any]:
        """The parameters given here."""
        return dict(self.model_extra or {})


class Evaluation(BaseModel):
    """What is measured of each run, as the arguments of ``unweave.evaluate``."""

    model_config = _STRICT

    metrics: list[str | MetricEntry] = Field(default=["paper"], min_length=1)
    protocol: Literal["paper", "dlib"] = "paper"
    representations: list[Literal["mean", "sampled"]] = ["mean"]
    parts: list[str] = Field(default=[WHOLE_CODE], min_length=1)
    labels: list[LabelMode] = list(LABEL_MODES)
    num_train: int = Field(default=10_000, ge=2, lt=10**9)
    num_test: int = Field(default=5_000, ge=2, lt=10**9)
    seed: int = Field(default=0, ge=0, lt=2**63)
    params: dict[str, dict[str, Any]] = {}
    keep_codes: bool = False
    split: Literal["train", "test"] | None = Field(
        default=None, description="the part that is scored, of data sets that a part of was trained on"
    )

    _no_bool = field_validator("num_train", "num_test", "seed", mode="before")(_not_bool)

    @field_validator("metrics", "representations", "parts", "labels", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return [value] if isinstance(value, (str, Mapping)) else value


class Study(BaseModel):
    """A study: a grid of runs, how they are trained and measured, and which papers' figures to draw of them.

    Examples
    --------
    >>> study, source = uw.study.load_study("demo")
    >>> study.name, study.training.latent_size, study.reports
    ('demo', 10, ['locatello'])
    """

    model_config = _STRICT

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
    title: str = ""
    description: str = ""
    training: Training = Training()
    runs: Any
    evaluation: Evaluation = Evaluation()
    reports: list[str] = Field(default=["locatello", "ranking"], description="papers whose figures are drawn")
    imports: list[str] = Field(default=[], description="modules and files that register methods, metrics, …")
    requires: list[str] = Field(default=[], description="methods that this version may not have yet")

    @field_validator("name")
    @classmethod
    def _not_reserved(cls, value: str) -> str:
        if value in _RESERVED:
            raise ValueError("is the name of a folder that all studies share")
        return value

    def as_dict(self) -> dict[str, Any]:
        """The study as plain values, with everything that it left to defaults."""
        values = self.model_dump(mode="json", by_alias=True)
        values["evaluation"]["metrics"] = [
            {key: value for key, value in entry.items() if value is not None}
            if isinstance(entry, dict)
            else entry
            for entry in values["evaluation"]["metrics"]
        ]
        if not self.imports:  # as studies were written before there were any
            del values["imports"]
        if self.evaluation.parts == [WHOLE_CODE]:
            del values["evaluation"]["parts"]
        return values

    def dump(self) -> str:
        """The study as YAML, with everything that it left to defaults."""
        return dump(self.as_dict())


TRAIN_SETTINGS = ("steps", "batch_size", "learning_rate", "precision")  # of ``train``, for every method
METHOD_SETTINGS = tuple(
    name
    for name in Training.model_fields
    if name not in (*TRAIN_SETTINGS, "image_size", "split", "labels_csv")
)
_PARTS: dict[str, type[BaseModel]] = {"training": Training, "evaluation": Evaluation}


def studies_folder() -> Path:
    """The folder of the papers' studies: in the installed package, or beside its source."""
    package = Path(__file__).resolve().parent.parent
    return next(
        (folder for folder in (package / "studies", package.parent.parent / "studies") if folder.is_dir()),
        package / "studies",
    )


def known_studies() -> list[str]:
    """The names of the studies that come with unweave.

    >>> "locatello" in known_studies()
    True
    """
    return sorted(path.stem for path in studies_folder().glob("*.yaml"))


def load_study(
    study: str | Path, overrides: Mapping[str, Any] | None = None, imports: Sequence[str] = ()
) -> tuple[Study, Source]:
    """A study by name or file, with the line that each of its values was written in.

    The modules and files that it names in ``imports`` are imported.

    Parameters
    ----------
    study
        the name of a study that comes with unweave ("locatello-small"), or the path of a file.yaml.
    overrides
        values by dotted path, as ``--set`` on the command line: {"training.steps": 500, "seed": [0, 1]}.
    imports
        further modules and files to import, as ``--import`` on the command line; workers import them, too.

    Returns
    -------
    Study, Source
        the study, checked; and its values with their lines, which :func:`unweave.study.plan` takes for its messages.

    Examples
    --------
    >>> study, source = uw.study.load_study("demo", {"training.steps": 20})
    >>> study.training.steps, source.line(("training", "steps"))
    (20, '--set training.steps')
    """
    path = study_file(study)
    source = read(path)
    source.values.setdefault("name", path.stem)
    for name, value in (overrides or {}).items():
        source = override(source, name, value)
    if every := [*check(source).imports, *imports]:
        source.values[IMPORTS] = list(dict.fromkeys(extensions.load(every)))
    change_axes(source, "data", _absolute_folders, everywhere=True)
    change_axes(source, "labels_csv", _absolute_file, everywhere=True)
    if isinstance(training := source.values.get("training"), dict) and "labels_csv" in training:
        training["labels_csv"] = _absolute_file(training["labels_csv"])
    return check(source), source


def split_representation(name: str) -> tuple[str, str]:
    """Representation and labels of what older versions wrote as one word.

    >>> split_representation("mean_u_given"), split_representation("sampled")
    (('mean', 'given'), ('sampled', ''))
    """
    representation, _, labels = name.partition("_u_")
    return representation, labels


def study_name(study: str | Path) -> str:
    """The name of a study by name or file; nothing is checked or imported."""
    path = Path(study)
    return str(read(study_file(path)).values.get("name", path.stem)) if _is_file(path) else str(study)


def study_file(study: str | Path) -> Path:
    """The file of a study by name or file."""
    path = Path(study)
    if not _is_file(path):
        path = studies_folder() / f"{study}.yaml"
        if not path.exists():
            raise unknown_name("study", str(study), [*known_studies(), "a file.yaml"])
    elif not path.exists():
        raise DataError(f"{path}: there is no such study file")
    return path


def _is_file(path: Path) -> bool:
    return path.suffix in (".yaml", ".yml")


def _absolute_folders(axis: Any) -> Any:
    """An axis of data with the full paths of folders: the study can be resumed from anywhere."""
    from unweave.data import registry

    if isinstance(axis, list):
        return [_absolute_folders(value) for value in axis]
    if not isinstance(axis, str) or axis in registry.names():
        return axis
    folder = Path(axis).expanduser()
    return str(folder.absolute()) if folder.is_dir() else axis


def _absolute_file(axis: Any) -> Any:
    """An axis of files, or one of them, with their full paths."""
    if isinstance(axis, list):
        return [_absolute_file(value) for value in axis]
    return str(Path(axis).expanduser().absolute()) if isinstance(axis, str) and axis else axis


def check(source: Source) -> Study:
    """A study from its source; the message of a mistake has its line."""
    try:
        return Study.model_validate(source.values)
    except ValidationError as error:
        raise DataError("\n".join(_message(entry, source) for entry in _nearest(error))) from error


_KINDS = ("str", "float", "dict[str,any]", "MetricEntry")  # of which a field's value may be one


def _nearest(error: ValidationError) -> list[Any]:
    """The errors, each once: of a value that may be one thing or another there is one for each, by the thing's name."""
    entries: dict[tuple[Any, ...], Any] = {}
    for entry in error.errors(include_url=False):
        path = tuple(key for key in entry["loc"] if key not in _KINDS)
        entries.setdefault(path, {**entry, "loc": path})
    held = {path[:length] for path in entries for length in range(len(path))}
    return [entry for path, entry in entries.items() if path not in held]


def _message(entry: Any, source: Source) -> str:
    path: Sequence[str | int] = entry["loc"]
    name, line = ".".join(str(key) for key in path), source.line(tuple(path))
    if entry["type"] == "extra_forbidden":
        for field, model in _PARTS.items():
            if len(path) == 1 and name in model.model_fields:
                error = ArgumentError("field", name, f"did you mean '{field}.{name}'?")
                return f"{line}: {error}"
        return f"{line}: {unknown_name('field', name, _fields(path[:-1]))}"
    if entry["type"] == "missing":
        return f"{line}: {name}: is missing"
    return f"{line}: {name} = {show(entry['input'])}: {entry['msg']}"


def _fields(path: Sequence[str | int]) -> list[str]:
    model = _PARTS[str(path[0])] if path else Study
    prefix = "".join(f"{key}." for key in path)
    return [prefix + name for name in model.model_fields]
