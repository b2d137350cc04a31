"""YAML files whose every value knows the line it came from; one may include another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from unweave.errors import ArgumentError, DataError

Key = str | int
INCLUDE = "include"


@dataclass
class Source:
    """Plain values, and for each path of keys the place ("study.yaml, line 3") that it was written at."""

    values: Any
    places: dict[tuple[Key, ...], str] = field(default_factory=dict)

    def place(self, path: tuple[Key, ...]) -> str:
        """Where a value, or else the nearest one that holds it, was written."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return "study"


class _Loader(yaml.SafeLoader):
    """YAML as people write it: 1e-4 is a number."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\d[\d_]*\.?[\d_]*|\.[\d_]+)[eE][-+]?\d+$"),
    list("-+0123456789."),
)


def read(path: Path) -> Source:
    """Read a file. With ``include: other.yaml`` it starts from that file: mappings are merged, the rest replaced."""
    return _read(path, ())


def _read(path: Path, includers: tuple[Path, ...]) -> Source:
    if path.resolve() in includers:
        raise DataError(f"{path}: includes itself")
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    own = parse(text, path.name)
    if not isinstance(own.values, dict):
        raise DataError(f"{path}: needs a mapping at the top, as in 'name: my-study'")
    included = own.values.pop(INCLUDE, None)
    if included is None:
        return own
    if not isinstance(included, str):
        raise DataError(f"{own.place((INCLUDE,))}: include: needs the name of one file")
    base = path.parent / included
    if not base.exists():
        raise DataError(f"{own.place((INCLUDE,))}: include: there is no file {base}")
    return merge(_read(base, (*includers, path.resolve())), own)


def parse(text: str, name: str) -> Source:
    """Parse YAML text; ``name`` is the file's, for messages."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        places: dict[tuple[Key, ...], str] = {}
        values = {} if node is None else _build(loader, node, (), name, places)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise DataError(f"{name}{line}: not valid YAML ({error.problem or error.context})") from error
    except yaml.YAMLError as error:
        raise DataError(f"{name}: not valid YAML ({error})") from error
    finally:
        loader.dispose()
    return Source(values, places)


def merge(base: Source, own: Source) -> Source:
    """``own`` over ``base``: mappings key by key, everything else as a whole."""
    places = dict(base.places)
    values = _merge(base.values, own.values, (), places, own)
    return Source(values, places)


def override(source: Source, name: str, value: Any) -> Source:
    """Set one field by its dotted path (``training.steps``, ``runs.product.0.data``), as from a command line.

    A name without dots that is not a field of the study sets the axis of that name wherever its grid has it.
    """
    changed = Source(_copy(source.values), dict(source.places))
    keys: list[Key] = [int(part) if part.lstrip("-").isdigit() else part for part in name.split(".")]
    if len(keys) == 1 and name not in changed.values and "runs" in changed.values:
        found = _replace_axes(changed.values["runs"], name, value)
        if found:
            return changed
    target = changed.values
    for depth, key in enumerate(keys[:-1]):
        try:
            target = target[key] if isinstance(key, int) else target.setdefault(key, {})
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            told = f"the study has nothing at {'.'.join(map(str, keys[: depth + 1]))}"
            raise ArgumentError("--set", f"{name}={value}", told) from error
    try:
        target[keys[-1]] = value
    except (IndexError, TypeError) as error:
        raise ArgumentError("--set", f"{name}={value}", "the study has no such place") from error
    path = tuple(keys)
    changed.places = {place: told for place, told in changed.places.items() if place[: len(path)] != path}
    changed.places[path] = f"--set {name}"
    return changed


def _build(
    loader: Any, node: yaml.Node, path: tuple[Key, ...], name: str, places: dict[tuple[Key, ...], str]
) -> Any:
    places[path] = f"{name}, line {node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        values: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} is not a name", problem_mark=key_node.start_mark
                )
            if key in values:
                raise yaml.MarkedYAMLError(
                    problem=f"{key!r} is given twice", problem_mark=key_node.start_mark
                )
            values[key] = _build(loader, value_node, (*path, key), name, places)
            places[(*path, key)] = f"{name}, line {key_node.start_mark.line + 1}"
        return values
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, child, (*path, i), name, places) for i, child in enumerate(node.value)]
    return loader.construct_object(node, deep=True)


def _merge(
    base: Any, own: Any, path: tuple[Key, ...], places: dict[tuple[Key, ...], str], source: Source
) -> Any:
    # A grid is an expression: half of one and half of another make no sense.
    if isinstance(base, Mapping) and isinstance(own, Mapping) and path != ("runs",):
        merged = dict(base)
        for key, value in own.items():
            merged[key] = (
                _merge(base[key], value, (*path, key), places, source)
                if key in base
                else _take(value, (*path, key), places, source)
            )
        return merged
    return _take(own, path, places, source)


def _take(value: Any, path: tuple[Key, ...], places: dict[tuple[Key, ...], str], source: Source) -> Any:
    for stale in [place for place in places if place[: len(path)] == path]:
        del places[stale]
    places |= {place: told for place, told in source.places.items() if place[: len(path)] == path}
    return value


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _replace_axes(grid: Any, name: str, value: Any) -> int:
    """Set every axis called ``name`` in a grid; how many there were."""
    if isinstance(grid, list):
        return sum(_replace_axes(part, name, value) for part in grid)
    if not isinstance(grid, dict):
        return 0
    found = 0
    for key, part in grid.items():
        if key == name:
            grid[key] = value
            found += 1
        elif key in ("product", "zip", "chain"):
            found += _replace_axes(part, name, value)
    return found
