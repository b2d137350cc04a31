"""What a run is, as data: everything needed to repeat it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from unweave import __version__
from unweave.errors import ArgumentError, DataError, shorten, show
from unweave.files import read_text, write_text
from unweave.methods.spec import MethodSpec
from unweave.parameters import Count, TorchSeed, check_value
from unweave.safe_yaml import TEXT_LIMIT, load_yaml
from unweave.schedules import LearningRate

FORMAT = 1
SPEC = "spec.yaml"  # its file in a run directory
_NOT_DECIDING = ("versions", "imports", "folder")  # fields that are no part of a run's identity
_PACKAGES = ("torch", "numpy", "lightning-fabric")


@dataclass(frozen=True)
class RunSpec:
    """A method, a data set and how the one is trained on the other.

    Equal specs make equal runs, bit for bit, on the same machine and versions.

    Parameters
    ----------
    method
        what is trained.
    data
        what it is trained on, by name, shape and factors.
    steps, batch_size, learning_rate, seed, precision
        the arguments of :func:`~unweave.training.train`.
    versions
        of the packages that the run was started with. No part of its identity.
    imports
        the modules and files of users that registered its method, terms or data. No part of its identity.
    folder
        of images of the user's own: ``given``, ``path`` (absolute), and ``content``, a hash; ``labels``, a table of
        labels that was named, and ``skip_bad``. No part of its identity.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("beta_vae", data, beta=6, architecture="mlp")
    >>> short, long = (uw.training.plan(method, data, steps) for steps in (10, 1000))
    >>> short.identity == long.identity
    False
    """

    method: MethodSpec
    data: dict[str, Any]
    steps: int
    batch_size: int
    learning_rate: float | dict[str, Any]
    seed: int
    precision: str = "32-true"
    versions: dict[str, str] = field(default_factory=dict, compare=False)
    imports: list[str] = field(default_factory=list, compare=False)
    folder: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def identity(self) -> str:
        """A hash of everything that decides what the run becomes, its length in steps included."""
        return hashlib.sha256(json.dumps(self._deciding(), sort_keys=True).encode()).hexdigest()

    @property
    def training(self) -> dict[str, Any]:
        """The arguments of ``train`` in it, by name."""
        return {
            "steps": self.steps,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "seed": self.seed,
            "precision": self.precision,
        }

    @property
    def lineage(self) -> str:
        """A hash of everything but the length: the same for a run that is asked for more steps."""
        values = {key: value for key, value in self._deciding().items() if key != "steps"}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as in spec.yaml; without ``imports`` and ``folder`` where there are none."""
        values = {"format": FORMAT, **asdict(self), "method": self.method.as_dict()}
        return {key: value for key, value in values.items() if value or key not in ("imports", "folder")}

    def write(self, path: Path) -> None:
        """Write spec.yaml, whole or not at all."""
        write_text(path, yaml.safe_dump(self.as_dict(), sort_keys=False))

    @staticmethod
    def read(path: Path) -> RunSpec:
        """Read a spec.yaml."""
        try:
            values = load_yaml(read_text(path, TEXT_LIMIT))
            if values.pop("format") != FORMAT:
                raise DataError(f"{path}: was written by another version of unweave")
            spec = RunSpec(**{**values, "method": MethodSpec.from_dict(values["method"])})
            spec.check()
            return spec
        except FileNotFoundError as error:
            raise DataError(f"{path.parent}: not a run directory (it has no {path.name})") from error
        except (
            OSError,
            yaml.YAMLError,
            AttributeError,
            KeyError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            raise DataError(f"{path}: not a run spec ({shorten(str(error))})") from error

    def check(self) -> None:
        """Refuse values that no run has: of another type, or absurdly large."""
        check_value("steps", self.steps, Count)
        check_value("batch_size", self.batch_size, Count)
        LearningRate.read(self.learning_rate)
        check_value("seed", self.seed, TorchSeed)
        check_value("precision", self.precision, str)
        check_value("imports", self.imports, list[str])
        _check_mapping("folder", self.folder)
        for name, value in self.folder.items():
            check_value(f"folder.{name}", value, str)
        _check_mapping("versions", self.versions)
        _check_mapping("data", self.data)
        check_value("data.name", self.data.get("name"), str)
        self.method.check()
        json.dumps(self._deciding(), sort_keys=True)  # raises for dates, sets and bytes, which YAML has

    def check_same_run(self, saved: RunSpec, folder: Path) -> None:
        """Refuse to go on with a directory that holds a run of another spec. More steps are allowed."""
        ours, theirs = self._flat(), saved._flat()
        different = sorted(
            key for key in ours | theirs if ours.get(key) != theirs.get(key) and key != "steps"
        )
        if different:
            changes = ", ".join(
                f"{key} is {show(theirs.get(key))} there, {show(ours.get(key))} here" for key in different
            )
            raise ArgumentError("out", str(folder), f"holds a run of another spec: {changes}")
        if saved.steps > self.steps:
            raise ArgumentError(
                "steps", self.steps, f"the run in {folder} is for {saved.steps} steps already"
            )

    def _deciding(self) -> dict[str, Any]:
        """The values that decide what the run becomes."""
        return {key: value for key, value in self.as_dict().items() if key not in _NOT_DECIDING}

    def _flat(self) -> dict[str, Any]:
        return _flatten(json.loads(json.dumps(self._deciding())))


def _check_mapping(name: str, value: object) -> None:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ArgumentError(name, value, "needs a mapping of names")


def installed_versions() -> dict[str, str]:
    """The versions of what decides the numbers."""
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"python": platform.python_version(), "unweave": __version__, **versions}


def _flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
