"""From a method, a data set and the arguments of ``train`` to the spec of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unweave.data import Dataset
from unweave.data.registry import RECIPES, describe_data
from unweave.errors import ArgumentError
from unweave.methods.method import Method
from unweave.methods.registry import extensions_of
from unweave.parameters import Count, TorchSeed, check_arguments
from unweave.schedules import LearningRate
from unweave.training.spec import RunSpec, installed_versions


def plan(
    method: Method,
    data: Dataset,
    steps: Count,
    batch_size: Count = 64,
    learning_rate: float | Mapping[str, Any] = 1e-4,
    seed: TorchSeed = 0,
    precision: str = "32-true",
) -> RunSpec:
    """The spec of the run that :func:`train` would make of these arguments, which are checked; nothing is trained.

    An earlier stage that is still to be trained has no weights in it: the spec is complete when that run is finished.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> spec = uw.training.plan(uw.methods.create("vae", data, architecture="mlp"), data, steps=1000)
    >>> spec.steps, spec.method.name, len(spec.identity)
    (1000, 'vae', 64)
    """
    given = {"steps": steps, "batch_size": batch_size, "seed": seed}
    settings: dict[str, Any] = check_arguments(plan, given)
    settings["learning_rate"] = LearningRate.read(learning_rate).as_setting(settings["steps"])
    if not isinstance(method, Method):
        shown = method if isinstance(method, str | None) else type(method).__name__
        raise ArgumentError("method", shown, "needs a method, as unweave.methods.create(name, data) gives it")
    method.check_data(data)
    method.batches(data)
    return RunSpec(
        method=method.spec,
        data=describe_data(data),
        **settings,
        precision=precision,
        versions=installed_versions(),
        imports=_imports(method, data),
        folder=_folder(data),
    )


def run_name(spec: RunSpec) -> str:
    """The name of a run's directory where the user gives none: METHOD-DATA-ID, with _ for what no file is called.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> spec = uw.training.plan(uw.methods.create("vae", data, architecture="mlp"), data, steps=1000)
    >>> run_name(spec).startswith("vae-arrays-")
    True
    """
    data = re.sub(r"[^\w.-]", "_", spec.data["name"])
    return f"{spec.method.name}-{data}-{spec.identity[:10]}"


def _folder(data: Dataset) -> dict[str, str]:
    """Where the user's own images and labels are, and a hash of what is in them."""
    labels = {"labels": data.labels_file} if data.labels_file else {}
    if not data.folder:
        return labels
    from unweave.data.own.folders import FACTORS_FILE, folder_content

    path = Path(data.folder).expanduser().absolute()
    content = folder_content(path, data.labels_file or FACTORS_FILE)
    skip_bad = {"skip_bad": "yes"} if data.skip_bad else {}
    return {"given": data.folder, "path": str(path), "content": content, **labels, **skip_bad}


def _imports(method: Method, data: Dataset) -> list[str]:
    """The user's modules and files that a run needs to be known by name."""
    origins = [*extensions_of(method.spec), RECIPES.origin(data.name)]
    return list(dict.fromkeys(origin for origin in origins if origin is not None))
