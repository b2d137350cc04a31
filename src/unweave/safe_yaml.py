"""YAML of strangers: parsed in bounded time and memory."""

from __future__ import annotations

from typing import Any

import yaml

NODES = 100_000  # values in a file, each counted as often as aliases repeat it
TEXT_LIMIT = 1 << 20  # bytes of a file
_NUMBER = 100  # characters of a number, a date or anything else that is not text
_TEXT = "tag:yaml.org,2002:str"
_TOO_MANY = f"stands for more than {NODES:,} values"


def load_yaml(text: str) -> Any:
    """The value of a YAML text.

    An alias (``*name``) repeats a value, and aliases of aliases multiply: nine lines can stand for a billion values.
    So values are counted before they are built, with all their repetitions.

    Raises
    ------
    yaml.YAMLError
        for a text that is no YAML, holds itself, or stands for more than 100,000 values.

    Examples
    --------
    >>> load_yaml("steps: 300")
    {'steps': 300}
    >>> load_yaml("a: &a [0, 0]\\nb: &b [*a, *a]\\nc: &c {b: *b}")
    {'a': [0, 0], 'b': [[0, 0], [0, 0]], 'c': {'b': [[0, 0], [0, 0]]}}
    """
    loader = yaml.SafeLoader(text)
    try:
        node = compose(loader)
        return None if node is None else loader.construct_document(node)
    except (ValueError, RecursionError, AttributeError, KeyError, ArithmeticError) as error:
        # Of a date such as 2024-13-01, of brackets in brackets in brackets, of a tag whose value does not fit it.
        raise yaml.YAMLError(str(error) or "too deep") from error
    finally:
        loader.dispose()


def compose(loader: Any) -> yaml.Node | None:
    """The one document of a loader as nodes, from which nothing is built yet, and which stand for a bounded number."""
    compose_node, count = loader.compose_node, 0

    def compose_counted(parent: yaml.Node | None, index: Any) -> yaml.Node:
        nonlocal count
        count += 1
        if count > NODES:  # the rest of a long text is not even parsed
            raise _error(_TOO_MANY, loader.peek_event())
        node: yaml.Node = compose_node(parent, index)
        return node

    loader.compose_node = compose_counted
    try:
        node: yaml.Node | None = loader.get_single_node()
        if node is not None:
            _count(node, {}, set())
    except RecursionError as error:
        raise yaml.YAMLError("a value that holds itself, or is too deep") from error
    return node


def _count(node: yaml.Node, known: dict[int, int], open_nodes: set[int]) -> int:
    """How many values a node stands for."""
    key = id(node)
    if key in known:
        return known[key]
    if key in open_nodes:
        raise _error("a value that holds itself", node)
    total = 1
    if isinstance(node, yaml.ScalarNode):
        if node.tag != _TEXT and len(node.value) > _NUMBER:
            raise _error(f"a number of {len(node.value):,} characters", node)
    else:
        open_nodes.add(key)
        for child in node.value:
            for each in child if isinstance(child, tuple) else (child,):
                total += _count(each, known, open_nodes)
        open_nodes.remove(key)
    if total > NODES:
        raise _error(_TOO_MANY, node)
    known[key] = total
    return total


def _error(problem: str, where: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=where.start_mark)
