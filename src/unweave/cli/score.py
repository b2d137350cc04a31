"""``unweave score``: metrics of codes in a file. ``unweave evaluate``: metrics of a trained run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from unweave.cli import output
from unweave.cli.data import load_data
from unweave.errors import ArgumentError, DataError
from unweave.files import write_text

Metrics = Annotated[
    str,
    typer.Option("--metrics", help="Names separated by commas, or paper, or all (see 'unweave metrics')."),
]
Json = Annotated[
    Path | None,
    typer.Option("--json", help="Also write values and details to this file.", show_default=False),
]


def metrics() -> None:
    """List the metrics and their parameters."""
    from unweave.metrics import METRICS

    rows = []
    for name, metric in METRICS.items():
        told = ", ".join(f"{key}={value}" for key, value in metric.parameters.items())
        rows.append((name, metric.kind, told))
    output.show_table(["METRIC", "WORKS ON", "PARAMETERS"], rows)


def score(
    codes: Annotated[
        Path, typer.Argument(metavar="CODES.npz", help="Arrays 'codes' (n, D), 'factors' (n, K).")
    ],
    names: Annotated[str, typer.Option("--metrics", help="Names separated by commas.")],
    test: Annotated[
        Path | None, typer.Option(help="Other points to judge learned metrics on.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamplings for 95 % intervals.")] = 0,
    json_file: Json = None,
) -> None:
    """Score codes that any encoder made, kept in an .npz file."""
    from unweave import metrics as room

    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        room.find(name)
    train = _read(codes)
    judged = _read(test) if test is not None else None
    _show(
        {name: room.score(name, *train, test=judged, seed=seed, bootstrap=bootstrap) for name in wanted},
        json_file,
    )


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    names: Metrics = "paper",
    protocol: Annotated[str, typer.Option(help="paper or dlib, where the two differ.")] = "paper",
    data: Annotated[
        str | None,
        typer.Option(metavar="NAME|FOLDER", help="Another data set than the run's.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    num_train: Annotated[int, typer.Option(help="Points to learn from.")] = 10_000,
    num_test: Annotated[int, typer.Option(help="Points to judge on.")] = 5_000,
    labels: Annotated[
        str | None,
        typer.Option(
            help="How an encoder that takes labels gets them: given, predicted or unknown.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[
        int | None, typer.Option(min=1, help="Resize your own images to this.", show_default=False)
    ] = None,
    json_file: Json = None,
) -> None:
    """Score a trained run on its data set. Each image is encoded at most once, and the codes are kept."""
    from unweave import metrics as room
    from unweave.training import load_run

    loaded = load_run(run)
    images = load_data(data or loaded.spec.data["name"], size, None)
    wanted: Any = names if names in ("paper", "all") else [n.strip() for n in names.split(",") if n.strip()]
    options: Any = {"protocol": protocol, "seed": seed, "num_train": num_train, "num_test": num_test}
    found = room.evaluate(loaded, images, wanted, **options, labels=labels)  # type: ignore[arg-type]
    modes = {score.params["labels"] for score in found.values() if "labels" in score.params}
    for mode in modes:
        warned = ": the codes know the factors that they are scored against" if mode == "given" else ""
        print(f"labels {mode}{warned}")
    _show(found, json_file)


def _read(path: Path) -> tuple[Any, Any]:
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            missing = [key for key in ("codes", "factors") if key not in arrays]
            if missing:
                raise DataError(f"{path}: has no array {missing[0]!r}, only {sorted(arrays)}")
            return arrays["codes"], arrays["factors"]
    except FileNotFoundError as error:
        raise ArgumentError("file", str(path), "there is no such file") from error
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: not an .npz file of plain arrays ({error})") from error


def _show(scores: dict[str, Any], json_file: Path | None) -> None:
    rows = []
    for name, found in scores.items():
        interval = found.details.get("interval")
        rows.append(
            (name, f"{found.value:.6g}", f"{interval[0]:.4g} to {interval[1]:.4g}" if interval else "")
        )
    output.show_table(["METRIC", "VALUE", "95 %"], rows)
    if json_file is not None:
        told = {n: {"value": s.value, "params": s.params, "details": s.details} for n, s in scores.items()}
        write_text(json_file, json.dumps(told, default=_plain, indent=1))


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
