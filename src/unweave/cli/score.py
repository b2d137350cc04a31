"""``unweave score``: metrics of codes in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from unweave.cli import output
from unweave.cli.code_files import CODES_KEY, FACTORS_KEY, check_suffix, read_codes
from unweave.cli.options import Format, Imports, Seed, load_extensions
from unweave.cli.score_table import (
    Bootstrap,
    Json,
    Protocol,
    Set,
    as_json,
    metric_names,
    metric_params,
    show_scores,
    show_side_by_side,
    write_json,
)
from unweave.errors import ArgumentError, DataError, UnweaveError
from unweave.files import check_can_write


def score(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="CODES...",
            help="What 'unweave encode' writes (.parquet, .csv), or arrays (.npz) of codes (n, D), factors (n, K), "
            "perhaps 'log_variance' (n, D). Several files are compared.",
        ),
    ],
    names: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            help="Names separated by commas, or paper, or all (see 'unweave metrics').  "
            "[default: paper; without factors, all]",
            show_default=False,
        ),
    ] = None,
    codes_key: Annotated[
        str, typer.Option(help="The name of the array of codes, in .npz files.")
    ] = CODES_KEY,
    factors_key: Annotated[
        str, typer.Option(help="The name of the array of factors, in .npz files.")
    ] = FACTORS_KEY,
    test: Annotated[
        Path | None, typer.Option(help="Other points to judge learned metrics on.", show_default=False)
    ] = None,
    protocol: Protocol = "paper",
    seed: Seed = 0,
    bootstrap: Bootstrap = 0,
    settings: Set = None,
    json_file: Json = None,
    format: Format = None,
    imports: Imports = None,
) -> int:
    """Score codes that any encoder made, kept in .parquet, .csv or .npz files.

    In a table the codes are code_0, code_1, ..., their variances variance_0, ...; every column but these, row and file
    is a factor. Text is numbered, alphabetically where the file does not say in which order.

    What does not apply to the arrays is left out, with the reason. Factors that are NaN are not known: metrics that
    need factors use the other rows.
    """
    load_extensions(imports)
    from unweave import metrics as room

    if json_file is not None:
        check_can_write(json_file, "--json")
    asked = None if names is None or names.strip() in ("paper", "all") else metric_names(names)
    for name in asked or ():
        room.METRICS.check(name)
    if test is not None and len(files) > 1:
        raise ArgumentError("--test", str(test), "is for one file of codes, not for several")
    for path in [*files, *([] if test is None else [test])]:
        check_suffix(path, "file")
    read = {label: _read(path, codes_key, factors_key) for label, path in _labels(files).items()}
    judged: Any = None
    if test is not None:
        others = _read(test, codes_key, factors_key)
        judged = others.codes, others.factors
    metrics: list[str] = []
    scores: dict[str, dict[str, Any]] = {}
    failed: list[UnweaveError] = []
    for label, arrays in read.items():
        of_file = f"{label}: " if len(read) > 1 else ""
        chosen = _applicable(asked, names, arrays, of_file)
        metrics += [name for name in chosen if name not in metrics]
        params = metric_params(settings or [], [*chosen, *(asked or [])])
        scores[label] = {}
        for name in chosen:
            try:
                scores[label][name] = _score(
                    name,
                    arrays,
                    judged,
                    seed,
                    {"protocol": protocol, "bootstrap": bootstrap, **params.get(name, {})},
                )
            except UnweaveError as error:
                if len(chosen) == 1 and len(read) == 1:
                    raise
                failed.append(UnweaveError(f"{of_file}{name}: {error}"))
    if not metrics:
        output.show_error("none of these metrics applies to these arrays")
        return 1
    if len(read) == 1:
        return show_scores(next(iter(scores.values())), failed, json_file, protocol, format)
    show_side_by_side(scores, metrics, format)
    if json_file is not None:
        write_json(json_file, {label: as_json(of_file) for label, of_file in scores.items()})
    for failure in failed:
        output.show_error(str(failure))
    return 1 if failed else 0


class _Arrays(NamedTuple):
    """The arrays of a file; ``labelled`` are the rows whose factors are known, None for all of them."""

    codes: Any
    factors: Any
    log_variance: Any
    labelled: Any


def _applicable(asked: list[str] | None, names: str | None, arrays: _Arrays, of_file: str) -> list[str]:
    """The metrics that can be computed from the arrays; those that cannot are named, with the reason."""
    from unweave.evaluation import metrics_of, why_not_arrays
    from unweave.metrics import METRICS

    which = names.strip() if names is not None else "paper" if arrays.factors is not None else "all"
    wanted = asked or [name for name in metrics_of(which) if name in METRICS]
    chosen = []
    for name in wanted:
        reason = why_not_arrays(METRICS[name], arrays.factors, arrays.log_variance is not None)
        if not reason:
            chosen.append(name)
        elif asked is not None or METRICS[name].takes not in ("models", "method"):
            output.show_note(f"{of_file}{name} is left out: it {reason}")
    return chosen


def _score(name: str, arrays: _Arrays, judged: Any, seed: int, options: dict[str, Any]) -> Any:
    from unweave import metrics as room

    metric = room.METRICS[name]
    rows = arrays.labelled if metric.uses_factors and arrays.labelled is not None else slice(None)
    if arrays.log_variance is not None and metric.takes_log_variance:
        options.setdefault("log_variance", arrays.log_variance[rows])
    factors = arrays.factors if metric.uses_factors or arrays.labelled is None else None
    return room.score(name, arrays.codes[rows], factors, judged, seed, **options)


def _labels(files: list[Path]) -> dict[str, Path]:
    """Files by what their columns are called: their names, or as many parts of their paths as tell them apart."""
    if len({path.absolute() for path in files}) != len(files):
        raise ArgumentError("CODES", [str(path) for path in files], "names a file twice")
    depth = 1
    while True:
        labels = [str(Path(*path.absolute().parts[-depth:])) for path in files]
        if len(set(labels)) == len(files):
            return dict(zip(labels, files, strict=True))
        depth += 1


def _read(path: Path, codes_key: str, factors_key: str) -> _Arrays:
    """The arrays of a file; rows of which a factor is NaN are not labelled."""
    import numpy as np

    arrays = read_codes(path, codes_key, factors_key)
    codes, factors, log_variance = arrays["codes"], arrays.get("factors"), arrays.get("log_variance")
    labelled = None
    if factors is not None and factors.dtype.kind == "f" and len(factors) == len(codes):
        known = ~np.isnan(factors.reshape(len(factors), -1)).any(axis=1)
        if not known.any():
            raise DataError(f"{path}: no row of its factors is without NaN")
        if not known.all():
            labelled, factors = np.flatnonzero(known), factors[known]
            output.show_note(f"{path}: {len(labelled):,} of {len(codes):,} rows have factors")
    return _Arrays(codes, factors, log_variance, labelled)
