"""``unweave score``: metrics of codes in a file. ``unweave evaluate``: metrics of a trained run."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from unweave.cli import output
from unweave.cli.data import load_run_data
from unweave.cli.options import (
    ImageSize,
    Imports,
    LabelsCsv,
    Seed,
    SkipBad,
    Split,
    load_extensions,
    parse_names,
    parse_settings,
)
from unweave.errors import ArgumentError, DataError, UnweaveError
from unweave.files import check_regular, write_text

Metrics = Annotated[
    str,
    typer.Option("--metrics", help="Names separated by commas, or paper, or all (see 'unweave metrics')."),
]
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


def score(
    codes: Annotated[
        Path,
        typer.Argument(
            metavar="CODES.npz",
            help="Arrays 'codes' (n, D), 'factors' (n, K); perhaps 'log_variance' (n, D).",
        ),
    ],
    names: Metrics,
    test: Annotated[
        Path | None, typer.Option(help="Other points to judge learned metrics on.", show_default=False)
    ] = None,
    protocol: Protocol = "paper",
    seed: Seed = 0,
    bootstrap: Bootstrap = 0,
    settings: Set = None,
    json_file: Json = None,
    imports: Imports = None,
) -> int:
    """Score the codes of any encoder, from an .npz file."""
    load_extensions(imports)
    from unweave import metrics as room

    asked = [] if names.strip() in ("paper", "all") else _names(names)
    for name in asked:
        room.METRICS.check(name)
    arrays = _read(codes)
    factors, log_variance = arrays.get("factors"), arrays.get("log_variance")
    if not asked:
        from unweave.evaluation import metrics_for_arrays

        asked = metrics_for_arrays(names.strip(), factors, log_variance is not None)
    params = _params(settings or [], asked)
    judged: Any = None
    if test is not None:
        others = _read(test)
        judged = others["codes"], others.get("factors")

    def compute(name: str) -> Any:
        own = dict(params.get(name, {}))
        if log_variance is not None and room.METRICS[name].takes_log_variance:
            own.setdefault("log_variance", log_variance)
        options: Any = {"protocol": protocol, "bootstrap": bootstrap, **own}
        return room.score(name, arrays["codes"], factors, judged, seed, **options)

    return _report(asked, compute, json_file, protocol)


def evaluate(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="A run directory, or a model: zoo:NAME, https://…, hf://USER/NAME."
        ),
    ],
    names: Metrics = "paper",
    protocol: Protocol = "paper",
    data: Annotated[
        str | None,
        typer.Option(metavar="NAME|FOLDER", help="Another data set than the run's.", show_default=False),
    ] = None,
    seed: Seed = 0,
    num_train: Annotated[int, typer.Option(help="Points to learn from.")] = 10_000,
    num_test: Annotated[int, typer.Option(help="Points to judge on.")] = 5_000,
    labels: Annotated[
        str | None,
        typer.Option(
            help="How an encoder that takes labels gets them: given, predicted or unknown.",
            show_default=False,
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            help="Score a named part of the codes only: c or z of a multi-stage model.  [default: all]",
            show_default=False,
        ),
    ] = None,
    size: ImageSize = None,
    split: Split = None,
    labels_csv: LabelsCsv = None,
    skip_bad: SkipBad = False,
    bootstrap: Bootstrap = 0,
    settings: Set = None,
    json_file: Json = None,
    imports: Imports = None,
) -> int:
    """Score a trained run on its data set. Each image is encoded at most once, and the codes are kept."""
    load_extensions(imports)
    wanted: Any = names.strip() if names.strip() in ("paper", "all") else _names(names)
    if not isinstance(wanted, str):
        from unweave.evaluation import find_metric

        for name in wanted:
            find_metric(name)  # a mistyped name is refused before torch is imported
    from unweave.training.addresses import resolve
    from unweave.training.spec import SPEC, RunSpec

    RunSpec.read(resolve(run) / SPEC)  # and so is what is no run
    if data is not None:
        from unweave.data.registry import check_name

        check_name(data)
    from unweave import evaluation as room
    from unweave.training import load

    loaded = load(run)
    images = load_run_data(loaded, data, size, split, labels_csv, skip_bad)
    options: Any = {"protocol": protocol, "seed": seed, "num_train": num_train, "num_test": num_test}
    options |= {"labels": labels, "part": part, "bootstrap": bootstrap, "params": _params(settings or [])}
    scores: dict[str, Any] = {}
    failed: list[UnweaveError] = []
    try:
        room.evaluate(loaded, images, wanted, **options, on_score=scores.__setitem__)
    except UnweaveError as error:
        if not scores:
            raise
        failed.append(error)
    modes = {score.params["labels"] for score in scores.values() if "labels" in score.params}
    for mode in modes:
        warned = ": the codes know the factors that they are scored against" if mode == "given" else ""
        print(f"labels {mode}{warned}")
    return _show(scores, failed, json_file, protocol)


def _names(text: str) -> list[str]:
    names = parse_names(text)
    if not names:
        raise ArgumentError("--metrics", text, "needs names separated by commas, or paper, or all")
    return names


def _params(texts: Sequence[str], asked: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
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


def _read(path: Path) -> dict[str, Any]:
    import numpy as np

    if path.exists():
        check_regular(path)
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):  # numpy would take it for a pickle, and say so
                raise DataError(
                    f"{path}: not an .npz file of plain arrays: needs an .npz file with 'codes' and 'factors'"
                )
            file.seek(0)
            arrays = np.load(file, allow_pickle=False)
            if "codes" not in arrays:
                raise DataError(f"{path}: has no array 'codes', only {sorted(arrays)}")
            _check_headers(path)
            return {key: arrays[key] for key in ("codes", "factors", "log_variance") if key in arrays}
    except FileNotFoundError as error:
        raise ArgumentError("file", str(path), "there is no such file") from error
    except (
        OSError,
        ValueError,
        EOFError,
        LookupError,
        MemoryError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise DataError(f"{path}: not an .npz file of plain arrays ({error})") from error


def _check_headers(path: Path) -> None:
    """Refuse arrays with damaged headers, of which NumPy would make what it can."""
    from unweave.data.files.npy import read_npy_header

    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as stream:
                read_npy_header(stream)


def _report(
    names: Sequence[str], compute: Callable[[str], Any], json_file: Path | None, protocol: str
) -> int:
    """Compute one metric after the other: one that fails does not take the others with it."""
    scores: dict[str, Any] = {}
    failed: list[UnweaveError] = []
    for name in names:
        try:
            scores[name] = compute(name)
        except UnweaveError as error:
            if len(names) == 1:
                raise
            failed.append(UnweaveError(f"{name}: {error}"))
    return _show(scores, failed, json_file, protocol)


def _show(
    scores: dict[str, Any], failed: Sequence[UnweaveError], json_file: Path | None, protocol: str
) -> int:
    """The table, the file and the errors; the exit code."""
    from unweave.evaluation.scores import points_text

    rows = []
    columns = ["METRIC", "VALUE", "95 %", "PROTOCOL", "POINTS"]
    columns += ["IMAGES"] if any(score.num_images for score in scores.values()) else []
    for name, score in scores.items():
        interval = score.details.get("interval")
        text = f"{interval[0]:.4g} to {interval[1]:.4g}" if interval else ""
        points = points_text(score.details["points"]) if "points" in score.details else ""
        rows.append((name, f"{score.value:.6g}", text, protocol, points, score.num_images)[: len(columns)])
        for part in score.shown:
            cells = (f"{name}.{part}", f"{score.details[part]:.6g}", "", "", "", score.num_images)
            rows.append(cells[: len(columns)])
    if rows:
        output.show_table(columns, rows)
    if json_file is not None:
        content = {n: {"value": s.value, "params": s.params, "details": s.details} for n, s in scores.items()}
        write_text(json_file, json.dumps(_json_value(content), indent=1, allow_nan=False))
    for error in failed:
        output.show_error(str(error))
    return 1 if failed else 0


def _json_value(value: Any) -> Any:
    """What JSON can hold: arrays as lists, null for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): _json_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(part) for part in value]
    if hasattr(value, "tolist"):
        return _json_value(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
