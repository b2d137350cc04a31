"""Where in a study file a mistake stands, once it has shown itself in a run or a metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unweave.errors import ArgumentError
from unweave.study.grid import OPERATORS, GridError, Path, axis_values
from unweave.study.source import Source
from unweave.study.spec import Evaluation

_AXES = {"data set": "data"}  # arguments that a grid calls otherwise


def place_in_grid(error: Exception, settings: Mapping[str, Any], source: Source) -> str:
    """The line of the setting that an error names, of a run with these settings; else that of the whole grid."""
    if not isinstance(error, ArgumentError):
        return source.place(("runs",))
    name = _AXES.get(error.argument, error.argument)
    for axis in (
        name,
        f"method.{name}",
        str(error.value),
    ):  # of a name that is not known, the value is the axis
        found = _axis(source.values.get("runs"), settings, axis, ("runs",))
        if found is not None:
            return source.place(found if axis.endswith(name) else found[: found.index(axis) + 1])
    named = [path for path in source.places if path[:1] in (("runs",), ("training",)) and path[-1] == name]
    return source.place(named[0] if len(named) == 1 else ("runs",))


def place_in_evaluation(error: ArgumentError, evaluation: Evaluation, label: str, source: Source) -> str:
    """The line of a metric, by its name in the results, or of the parameter of it that an error names."""
    entries = [entry if isinstance(entry, str) else entry.name for entry in evaluation.metrics]
    metric = next((e.metric for e in evaluation.metrics if not isinstance(e, str) and e.name == label), label)
    for name in (error.argument, str(error.value)):
        path = ("evaluation", "params", metric, name)
        if path in source.places:
            return source.place(path)
    last = len(entries) - 1 - entries[::-1].index(label) if label in entries else None
    return source.place(("evaluation", "metrics") if last is None else ("evaluation", "metrics", last))


def _axis(grid: Any, settings: Mapping[str, Any], name: str, path: Path) -> Path | None:
    """The path of an axis, or of the one of its values that ``settings`` has, in the part of a grid that made them."""
    if isinstance(grid, list):
        parts = [_axis(part, settings, name, (*path, i)) for i, part in enumerate(grid)]
        return next((found for found in parts if found is not None), None)
    if not isinstance(grid, dict):
        return None
    for operator in OPERATORS:
        if operator in grid:
            return _axis(grid[operator], settings, name, (*path, operator))
    values = {axis: _values(given, (*path, axis)) for axis, given in grid.items()}
    if name not in values or any(settings.get(axis) not in found for axis, found in values.items()):
        return None
    listed = isinstance(grid[name], list)
    return (*path, name, values[name].index(settings[name])) if listed else (*path, name)


def _values(axis: Any, path: Path) -> list[Any]:
    try:
        return axis_values(axis, path)
    except GridError:
        return []
