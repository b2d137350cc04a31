"""``unweave evaluate``: metrics of a trained run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unweave.cli import output
from unweave.cli.data import load_run_data
from unweave.cli.options import Format, ImageSize, Imports, LabelsCsv, Seed, SkipBad, Split, load_extensions
from unweave.cli.run_rows import OtherData, RunFolder
from unweave.cli.score_table import Bootstrap, Json, Protocol, Set, metric_names, metric_params, show_scores
from unweave.errors import UnweaveError
from unweave.files import check_can_write

Metrics = Annotated[
    str,
    typer.Option("--metrics", help="Names separated by commas, or paper, or all (see 'unweave metrics')."),
]


def evaluate(
    run: RunFolder,
    names: Metrics = "paper",
    protocol: Protocol = "paper",
    data: OtherData = None,
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
    format: Format = None,
    imports: Imports = None,
) -> int:
    """Score a trained run on its data set. Each image is encoded at most once, and the codes are kept."""
    load_extensions(imports)
    if json_file is not None:
        check_can_write(json_file, "--json")
    wanted: Any = names.strip() if names.strip() in ("paper", "all") else metric_names(names)
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
    options |= {
        "labels": labels,
        "part": part,
        "bootstrap": bootstrap,
        "params": metric_params(settings or []),
    }
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
        output.show_note(f"labels {mode}{warned}")
    return show_scores(scores, failed, json_file, protocol, format)
