"""What ``unweave score`` and ``unweave evaluate`` share: their options, and how scores are printed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from unweave.cli import output
from unweave.cli.options import parse_names, parse_settings
from unweave.errors import ArgumentError, UnweaveError
from unweave.files import write_text

Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        help="Also write values and details to this file; null is a value that is not a number.",
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="METRIC.NAME=VALUE",
        help="A metric's parameter: dci.learner=forest.",
        show_default=False,
    ),
]
Protocol = Annotated[
    str, typer.Option(help="paper, or dlib for disentanglement_lib's code, where the two differ.")
]
Bootstrap = Annotated[int, typer.Option(min=0, help="Resamplings for 95 % intervals.")]


def metric_names(text: str) -> list[str]:
    """``"mig, sap"`` -> ["mig", "sap"]."""
    names = parse_names(text)
    if not names:
        raise ArgumentError("--metrics", text, "needs names separated by commas, or paper, or all")
    return names


def metric_params(texts: Sequence[str], asked: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """``["dci.learner=forest"]`` -> {"dci": {"learner": "forest"}}."""
    params: dict[str, dict[str, Any]] = {}
    for key, value in parse_settings("--set", texts).items():
        metric, dot, name = key.partition(".")
        if not dot or not metric or not name:
            raise ArgumentError("--set", key, "needs METRIC.NAME=VALUE, as in dci.learner=forest")
        if asked is not None and metric not in asked:
            raise ArgumentError("--set", key, f"{metric} is not among the metrics: {', '.join(asked)}")
        params.setdefault(metric, {})[name] = value
    return params


def show_scores(
    scores: Mapping[str, Any],
    failed: Sequence[UnweaveError],
    json_file: Path | None,
    protocol: str,
    format: str | None = None,
) -> int:
    """The table, the file and the errors; returns the exit code."""
    from unweave.evaluation.scores import points_text

    rows: list[tuple[Any, ...]] = []
    columns = ["METRIC", "VALUE", "95 %", "PROTOCOL", "POINTS"]
    columns += ["IMAGES"] if any(score.num_images for score in scores.values()) else []
    for name, score in scores.items():
        interval = score.details.get("interval")
        text = f"{interval[0]:.4g} to {interval[1]:.4g}" if interval else ""
        points = points_text(score.details["points"]) if "points" in score.details else ""
        rows.append((name, score.value, text, protocol, points, score.num_images)[: len(columns)])
        for part, value in parts_of(name, score).items():
            rows.append((f"{name}.{part}", value, "", protocol, points, score.num_images)[: len(columns)])
    if rows:
        output.show_table(columns, rows, format, keys=2)
    if json_file is not None:
        write_json(json_file, as_json(scores))
    for error in failed:
        output.show_error(str(error))
    return 1 if failed else 0


def show_side_by_side(
    scores: Mapping[str, Mapping[str, Any]], metrics: Sequence[str], format: str | None = None
) -> None:
    """A row per metric and part, a column per file."""
    names: dict[str, list[str]] = {metric: [metric] for metric in metrics}
    cells: dict[tuple[str, str], float] = {}
    for file, of_file in scores.items():
        for metric, score in of_file.items():
            parts = {f"{metric}.{part}": value for part, value in parts_of(metric, score).items()}
            for name, value in {metric: score.value, **parts}.items():
                cells[name, file] = value
                if name not in names[metric]:
                    names[metric].append(name)
    rows = [
        (name, *(cells.get((name, file)) for file in scores))
        for metric in metrics
        for name in names[metric]
        if any((name, file) in cells for file in scores)
    ]
    output.show_table(["METRIC", *scores], rows, format)


def parts_of(name: str, score: Any) -> dict[str, float]:
    """The numbers that a metric is made of, by name: disentanglement, completeness and informativeness of DCI."""
    from unweave.evaluation import find_metric

    try:
        known = list(find_metric(name).parts)
    except ArgumentError:  # a function of the user's own
        known = []
    numbers = {key: value for key, value in score.details.items() if type(value) is float}
    value = [key for key in numbers if known and key not in known and numbers[key] == score.value]
    return {
        part: numbers[part] for part in dict.fromkeys([*value[:1], *known, *score.shown]) if part in numbers
    }


def as_json(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Values, parameters and details by metric."""
    return {n: {"value": s.value, "params": s.params, "details": s.details} for n, s in scores.items()}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write it, whole or not at all; what JSON cannot hold is null."""
    write_text(path, json.dumps(_json_value(content), indent=1, allow_nan=False))


def _json_value(value: Any) -> Any:
    """What JSON can hold: arrays as lists, null for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): _json_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(part) for part in value]
    if hasattr(value, "tolist"):
        return _json_value(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
