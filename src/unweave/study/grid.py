"""Grids of settings, by an algebra of four forms: axes, product, zip and chain."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

from unweave.errors import UnweaveError, show

Point = dict[str, Any]
Path = tuple[str | int, ...]
OPERATORS = ("product", "zip", "chain")
_MOST = 1_000_000  # points


class GridError(UnweaveError):
    """A grid that cannot be expanded; ``path`` leads to the part at fault."""

    def __init__(self, path: Path, message: str) -> None:
        self.path = path
        super().__init__(message)


def count_points(grid: Any, shared: Sequence[str] = (), defaults: Mapping[str, Any] | None = None) -> int:
    """How many different points a grid has, with those of the runs that its axes hold.

    Parameters
    ----------
    grid
        as :func:`expand` takes it.
    shared
        what such a run has in common with the one that holds it, unless it says otherwise.
    defaults
        values that make no difference whether a point has them or not.

    Examples
    --------
    >>> count_points([{"beta": [1, 4]}, {"beta": [4, 8]}])
    3
    >>> count_points({"size": [1, 2], "first": {"method": "vae"}, "seed": [0, 1]}, shared=["seed"])
    6
    """
    known: set[Hashable] = set()
    usual = defaults or {}

    @cache
    def stages_of(keys: tuple[str, ...]) -> list[str]:
        """The axes that hold runs; method.steps is a setting of the run's own."""
        names = dict.fromkeys(key.partition(".")[0] for key in keys if "." in key)
        return [name for name in names if name != "method"]

    def count(point: Point) -> None:
        said = point
        if not usual.keys().isdisjoint(point):
            said = {key: value for key, value in point.items() if key not in usual or value != usual[key]}
        try:
            known.add(frozenset(said.items()))
        except TypeError:  # a value that is a list or a mapping
            known.add(repr(sorted(said.items())))
        for name in stages_of(tuple(point)):
            count({**{key: point[key] for key in shared if key in point}, **below(point, name)})

    for point in expand(grid):
        count(point)
    return len(known)


def expand(grid: Any, path: Path = ()) -> list[Point]:
    """All points of a grid, in order.

    - axes: ``{method: beta_vae, beta: [1, 4]}``: every combination, the last axis fastest. An axis is a value, a
      list of values, or ``{range: 5}`` for 0, 1, 2, 3, 4 (also ``[start, stop]`` and ``[start, stop, step]``).
      One whose value is a grid with a method of its own, ``first: {method: vae, steps: [10, 20]}``, is short for the
      axes of that grid, ``{first.method: vae, first.steps: [10, 20]}``.
    - ``{product: [grid, …]}``: every combination of a point of each.
    - ``{zip: [grid, …]}``: the first point of each together, the second of each, …; equally many. Also
      ``{zip: {lambda_od: [1, 2], lambda_d: [10, 20]}}``.
    - ``{chain: [grid, …]}``, or just a list of grids: one after the other.

    Examples
    --------
    >>> expand({"product": [{"method": "beta_vae", "beta": [1, 4]}, {"seed": 0}]})
    [{'method': 'beta_vae', 'beta': 1, 'seed': 0}, {'method': 'beta_vae', 'beta': 4, 'seed': 0}]
    >>> expand({"method": "ms_vae", "first": {"method": "beta_vae", "beta": [1, 4]}})[1]
    {'method': 'ms_vae', 'first.method': 'beta_vae', 'first.beta': 4}
    """
    if isinstance(grid, list) and grid:
        return [point for i, part in enumerate(grid) for point in expand(part, (*path, i))]
    if not isinstance(grid, dict) or not grid:
        raise GridError(path, f"{show(grid)}: a grid is a mapping of axes, or one of {', '.join(OPERATORS)}")
    operators = [key for key in grid if key in OPERATORS]
    if not operators:
        axes = [_axis_points(name, axis, (*path, name)) for name, axis in grid.items()]
        _check_count(math.prod(map(len, axes)), path)
        return [_joined(points, path) for points in product(*axes)]
    if len(grid) > 1:
        raise GridError(path, f"{operators[0]} stands alone; put further axes into its list")
    parts = grid[operators[0]]
    path = (*path, operators[0])
    if operators[0] == "zip" and isinstance(parts, dict):
        parts = [{name: axis} for name, axis in parts.items()]
    if not isinstance(parts, list) or not parts:
        raise GridError(path, f"{operators[0]} needs a list of grids")
    expanded = [expand(part, (*path, i)) for i, part in enumerate(parts)]
    if operators[0] == "product":
        _check_count(math.prod(map(len, expanded)), path)
    if operators[0] == "chain":
        return [point for part in expanded for point in part]
    if operators[0] == "zip" and len({len(part) for part in expanded}) > 1:
        raise GridError(path, f"zip needs grids of one length; these have {[len(p) for p in expanded]}")
    combined = zip(*expanded, strict=True) if operators[0] == "zip" else product(*expanded)
    return [_joined(points, path) for points in combined]


def axis_values(axis: Any, path: Path) -> list[Any]:
    """The values of an axis, however it was written."""
    if isinstance(axis, dict) and set(axis) == {"range"}:
        bounds = axis["range"] if isinstance(axis["range"], list) else [axis["range"]]
        if not 1 <= len(bounds) <= 3 or not all(type(bound) is int for bound in bounds):
            raise GridError(path, f"range: {show(axis['range'])}: needs one to three whole numbers")
        try:
            _check_count(len(range(*bounds)), path)
            axis = list(range(*bounds))
        except (ValueError, OverflowError) as error:
            raise GridError(path, f"range: {show(bounds)}: {error}") from error
    if isinstance(axis, list) and not axis:
        raise GridError(path, "an axis needs at least one value")
    return axis if isinstance(axis, list) else [axis]


def holds_runs(value: Any) -> bool:
    """Whether the value of an axis is a grid itself, of runs with a method of their own.

    Examples
    --------
    >>> holds_runs({"method": "beta_vae", "beta": [1, 4]}), holds_runs({"range": 5})
    (True, False)
    """
    return isinstance(value, dict) and ("method" in value or any(key in value for key in OPERATORS))


def below(point: Mapping[str, Any], name: str) -> Point:
    """What a point says of the runs that one of its axes holds.

    Examples
    --------
    >>> below({"method": "ms_vae", "first.method": "beta_vae", "first.beta": 4}, "first")
    {'method': 'beta_vae', 'beta': 4}
    """
    prefix = f"{name}."
    return {key.removeprefix(prefix): value for key, value in point.items() if key.startswith(prefix)}


def find_axis(grid: Any, settings: Mapping[str, Any], name: str, path: Path = ()) -> Path | None:
    """The path of an axis in the part of a grid that has a point with these settings; of its value, if it has several.

    Examples
    --------
    >>> find_axis([{"beta": [1, 4]}, {"beta": 16}], {"beta": 4}, "beta")
    (0, 'beta', 1)
    >>> grid = {"first": {"method": "beta_vae", "beta": 16}}
    >>> find_axis(grid, {"first.method": "beta_vae", "first.beta": 16}, "first.beta")
    ('first', 'beta')
    """
    if isinstance(grid, list):
        parts = (find_axis(part, settings, name, (*path, i)) for i, part in enumerate(grid))
        return next((part for part in parts if part is not None), None)
    if not isinstance(grid, dict):
        return None
    for operator in OPERATORS:
        if operator in grid:
            return find_axis(grid[operator], settings, name, (*path, operator))
    for axis, given in grid.items():
        if not _has_point(axis, given, settings):
            return None
    for axis, given in grid.items():
        values = given if isinstance(given, list) else [given]
        for number, value in enumerate(values):
            here = (*path, axis, number) if isinstance(given, list) else (*path, axis)
            if axis == name and (value == settings.get(name) or not isinstance(given, list)):
                return here
            if holds_runs(value) and name.startswith(f"{axis}."):
                inner = find_axis(value, below(settings, axis), name.removeprefix(f"{axis}."), here)
                if inner is not None:
                    return inner
    return None


def _check_count(count: int, path: Path) -> None:
    """Refuse a grid that no study can have meant, before its points are listed."""
    if count > _MOST:
        raise GridError(path, f"has {show(count)} points; a study has at most {_MOST:,} runs")


def _axis_points(name: str, axis: Any, path: Path) -> list[Point]:
    """An axis as points: one per value, or those of the grids that it holds."""
    points: list[Point] = []
    for number, value in enumerate(axis_values(axis, path)):
        if holds_runs(value):
            inner = expand(value, (*path, number) if isinstance(axis, list) else path)
            points += [{f"{name}.{key}": setting for key, setting in point.items()} for point in inner]
        else:
            points.append({name: value})
    return points


def _has_point(name: str, axis: Any, settings: Mapping[str, Any]) -> bool:
    """Whether an axis has a point with these settings."""
    try:
        points = _axis_points(name, axis, ())
    except GridError:
        return False
    return any(all(settings.get(key) == value for key, value in point.items()) for point in points)


def _joined(points: tuple[Point, ...], path: Path) -> Point:
    joined: Point = {}
    for point in points:
        twice = joined.keys() & point.keys()
        if twice:
            raise GridError(path, f"{sorted(twice)[0]!r} is set by two of its parts")
        joined |= point
    return joined
