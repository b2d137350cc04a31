"""YAML files whose every value knows the line it came from; one may include another."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from unweave.errors import ArgumentError, DataError, shorten, show
from unweave.files import read_text
from unweave.safe_yaml import TEXT_LIMIT, compose
from unweave.study.grid import OPERATORS, holds_runs

Key = str | int
Keys = tuple[Key, ...]
INCLUDE, IMPORTS = "include", "imports"


@dataclass
class Source:
    r"""Values, and for each path of keys the line that it was written in: "study.yaml, line 3".

    Examples
    --------
    >>> source = parse("training:\n  steps: 300\n", "study.yaml")
    >>> source.values, source.line(("training", "steps"))
    ({'training': {'steps': 300}}, 'study.yaml, line 2')
    """

    values: Any
    lines: dict[Keys, str] = field(default_factory=dict)

    def line(self, path: Keys) -> str:
        """Where a value, or else the nearest one that holds it, was written."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return "study"


class _Loader(yaml.SafeLoader):
    """YAML as people write it: 1e-4 is a number."""


class _Dumper(yaml.SafeDumper):
    """Writes the text "1e-4" in quotes, as the loader would take it for a number."""


for _side in (_Loader, _Dumper):
    _side.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(?:\d[\d_]*\.?[\d_]*|\.[\d_]+)[eE][-+]?\d+$"),
        list("-+0123456789."),
    )


def read(path: Path) -> Source:
    """Read a file. With ``include: other.yaml`` it starts from that file: mappings are merged, the rest replaced.

    The other's name is not taken over. Python files in ``imports`` are relative to the file that names them.
    """
    return _read(path, ())


def _read(path: Path, includers: tuple[Path, ...]) -> Source:
    if path.resolve() in includers:
        raise DataError(f"{path}: includes itself")
    try:
        text = read_text(path.resolve(), TEXT_LIMIT)  # a link to a study's file is as good
    except (OSError, RuntimeError, DataError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    source = parse(text, path.name)
    if not isinstance(source.values, dict):
        raise DataError(f"{path}: needs a mapping at the top, as in 'name: my-study'")
    if isinstance(source.values.get(IMPORTS), list):
        source.values[IMPORTS] = [_absolute(name, path.parent) for name in source.values[IMPORTS]]
    included = source.values.pop(INCLUDE, None)
    if included is None:
        return source
    if not isinstance(included, str):
        raise DataError(f"{source.line((INCLUDE,))}: include: needs the name of one file")
    base = path.parent / included
    if not base.exists():
        raise DataError(f"{source.line((INCLUDE,))}: include: there is no file {base}")
    start = _read(base, (*includers, path.resolve()))
    start.values.pop("name", None)  # another study, and another folder for it
    return merge(start, source)


def parse(text: str, name: str) -> Source:
    """Parse YAML text; ``name`` is the file's, for messages."""
    parsed = _parse(text, name)
    return Source(deepcopy(parsed.values), dict(parsed.lines))


@lru_cache(maxsize=32)  # a file that several others include is parsed once
def _parse(text: str, name: str) -> Source:
    # Not libyaml: deep nesting overflows its stack, which ends the process.
    lines: dict[Keys, str] = {(): name}
    try:
        loader = _Loader(text)
        node = compose(loader)
        values = {} if node is None else _build(loader, node, (), name, lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise DataError(f"{name}{line}: not valid YAML ({error.problem or error.context})") from error
    except yaml.YAMLError as error:
        raise DataError(f"{name}: not valid YAML ({shorten(str(error))})") from error
    except RecursionError as error:
        raise DataError(f"{name}: not valid YAML (a value that holds itself)") from error
    return Source(values, lines)


def dump(values: Any) -> str:
    """Values as YAML that :func:`parse` reads back as they were."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def merge(base: Source, changes: Source) -> Source:
    """``changes`` over ``base``: mappings key by key, everything else as a whole."""
    lines = dict(base.lines)
    values = _merge(base.values, changes.values, (), lines, changes)
    return Source(values, lines)


def override(source: Source, name: str, value: Any) -> Source:
    """Set one field by its dotted path (``training.steps``, ``runs.product.0.data``), as from a command line.

    A name that does not begin with a field of the study sets the axis of that name (``beta``, ``method.steps``,
    ``first.beta``) wherever its grid has it.
    """
    changed = Source(deepcopy(source.values), dict(source.lines))
    keys: list[Key] = [int(part) if re.fullmatch("-?[0-9]+", part) else part for part in name.split(".")]
    axes = [] if keys[0] in changed.values else change_axes(changed, name, lambda axis: value)
    if axes:
        for path in axes:
            _set_line(changed.lines, path, f"--set {name}")
        changed.lines["runs",] = f"{source.line(('runs',))} with --set {name}"
        return changed
    target = changed.values
    for depth, key in enumerate(keys[:-1]):
        try:
            target = target[key] if isinstance(key, int) else target.setdefault(key, {})
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            missing = ".".join(map(str, keys[: depth + 1]))
            raise ArgumentError("--set", f"{name}={value}", f"the study has nothing at {missing}") from error
    if isinstance(target, dict) == isinstance(keys[-1], int):
        raise ArgumentError("--set", f"{name}={value}", "the study has no such field")
    try:
        target[keys[-1]] = value
    except (IndexError, TypeError) as error:
        raise ArgumentError("--set", f"{name}={value}", "the study has no such field") from error
    _set_line(changed.lines, tuple(keys), f"--set {name}")
    return changed


def change_axes(
    source: Source, name: str, change: Callable[[Any], Any], *, everywhere: bool = False
) -> list[Keys]:
    """Change every axis of this name in a study's grid; their paths.

    ``everywhere``: also where it is an axis of the runs that others need, such as ``first.data``.
    """
    return _change_axes(source.values.get("runs"), name, change, ("runs",), everywhere)


def _build(loader: Any, node: yaml.Node, path: Keys, name: str, lines: dict[Keys, str]) -> Any:
    """The value of a node; its lines, and those of all that it holds, go to ``lines``."""
    lines[path] = f"{name}, line {node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode):
        _check_keys(loader, node)  # before "<<" brings in keys that may well be given again
        loader.flatten_mapping(node)
        node.value = list({pair[0].value: pair for pair in node.value}.values())
        values: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            values[key] = _build(loader, value_node, (*path, key), name, lines)
            lines[(*path, key)] = f"{name}, line {key_node.start_mark.line + 1}"
        return values
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, child, (*path, i), name, lines) for i, child in enumerate(node.value)]
    return _construct(loader, node)


def _construct(loader: Any, node: yaml.Node) -> Any:
    """The value of a node that holds no others; of a date such as 2024-13-01, and of a tag that does not fit, none."""
    try:
        return loader.construct_object(node, deep=True)
    except (ValueError, AttributeError, KeyError) as error:
        raise _error(str(error), node) from error


def _absolute(name: Any, folder: Path) -> Any:
    """The full path of a Python file; the name of a module as it is."""
    is_file = isinstance(name, str) and name.endswith(".py")
    return str((folder / Path(name).expanduser()).resolve()) if is_file else name


def _check_keys(loader: Any, node: yaml.MappingNode) -> None:
    given: set[str] = set()
    for key_node, _ in node.value:
        merges = key_node.tag == "tag:yaml.org,2002:merge"
        key = key_node.value if merges else _construct(loader, key_node)
        if not isinstance(key, str):
            raise _error(f"the key {show(key)} is not a name", key_node)
        if key in given:
            raise _error(f"{show(key)} is given twice", key_node)
        given.add(key)


def _error(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _merge(base: Any, changes: Any, path: Keys, lines: dict[Keys, str], source: Source) -> Any:
    # A grid is an expression: half of one and half of another make no sense.
    if isinstance(base, Mapping) and isinstance(changes, Mapping) and path != ("runs",):
        merged = dict(base)
        for key, value in changes.items():
            merged[key] = (
                _merge(base[key], value, (*path, key), lines, source)
                if key in base
                else _take(value, (*path, key), lines, source)
            )
        return merged
    return _take(changes, path, lines, source)


def _take(value: Any, path: Keys, lines: dict[Keys, str], source: Source) -> Any:
    _set_line(lines, path, "")
    lines |= {below: line for below, line in source.lines.items() if below[: len(path)] == path}
    return value


def _set_line(lines: dict[Keys, str], path: Keys, line: str) -> None:
    """A value is now from elsewhere, with all that it holds."""
    for stale in [below for below in lines if below[: len(path)] == path]:
        del lines[stale]
    lines[path] = line


def _change_axes(
    grid: Any, name: str, change: Callable[[Any], Any], path: Keys, everywhere: bool
) -> list[Keys]:
    if isinstance(grid, list):
        parts = [_change_axes(part, name, change, (*path, i), everywhere) for i, part in enumerate(grid)]
        return [axis for axes in parts for axis in axes]
    if not isinstance(grid, dict):
        return []
    paths = []
    for key, part in grid.items():
        if key == name or (everywhere and key.endswith(f".{name}")):
            grid[key] = change(part)
            paths.append((*path, key))
        elif key in OPERATORS:
            paths += _change_axes(part, name, change, (*path, key), everywhere)
        elif everywhere or name.startswith(f"{key}."):
            below = name if everywhere else name.removeprefix(f"{key}.")
            for i, value in enumerate(part if isinstance(part, list) else [part]):
                if holds_runs(value):
                    where = (*path, key, i) if isinstance(part, list) else (*path, key)
                    paths += _change_axes(value, below, change, where, everywhere)
    return paths
