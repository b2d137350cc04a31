"""``unweave demo``: a whole study in a few minutes, without a download; or pictures of all data sets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from unweave.cli import output
from unweave.errors import MissingDataError, UnweaveError

STUDY = "demo"


def demo(
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="The folder that everything is written to.")
    ] = Path("demo"),
    steps: Annotated[int, typer.Option(min=1, help="Training steps of each run.")] = 300,
    gallery: Annotated[
        bool, typer.Option("--gallery", help="Instead, draw every data set that this machine has.")
    ] = False,
) -> None:
    """Run a small study on dSprites: three methods, two seeds, every metric of the papers, and its report."""
    from unweave.data.storage.prepared import data_folder

    print(f"Data is kept in {data_folder()}", flush=True)
    if gallery:
        _show_data(folder)
    else:
        _run_study(folder, steps)


def _run_study(folder: Path, steps: int) -> None:
    from unweave.cli.study import run
    from unweave.study.results import load_results

    run(STUDY, [f"training.steps={steps}"], folder)
    _show_scores(load_results(folder / STUDY), steps)
    print(f"The report: {folder / STUDY / 'report' / 'report.html'}")


def _show_scores(table: Any, steps: int) -> None:
    from unweave.analyses import grouped_intervals

    runs = table["run"].nunique()
    print(
        f"Medians over seeds of {runs} runs of {steps:,} steps (the papers: 300,000), by a reduced protocol "
        "(1,500 points, 300 votes of 16 images; the papers: 15,000 of each, of 64): an impression, not a result."
    )
    main = table[~table["metric"].str.contains(".", regex=False)]
    medians = grouped_intervals(main, ["metric", "representation", "method"])
    methods = list(dict.fromkeys(main["method"]))
    medians["score"] = medians["metric"] + " (" + medians["representation"] + ")"
    wide = medians.pivot(index="score", columns="method", values="value")[methods]
    rows = [(str(name), *(f"{value:.3f}" for value in values)) for name, *values in wide.itertuples()]
    output.show_table(["METRIC", *methods], rows)


def _show_data(folder: Path) -> None:
    from unweave.data import registry
    from unweave.figures import contact_sheet, gallery, save_picture

    sets, rows = [], []
    for name in registry.names():
        start = time.monotonic()
        try:
            data = registry.load(name)
        except MissingDataError:
            continue
        except UnweaveError as error:
            output.show_error(str(error))
            continue
        path = save_picture(contact_sheet(data), folder / f"{name}.png")
        sets.append(data)
        rows.append((name, registry.find(name).images, f"{time.monotonic() - start:.1f} s", str(path)))
        print(f"{name}: {path}", flush=True)
    overview = save_picture(gallery(sets), folder / "overview.png")
    output.show_table(["DATA SET", "IMAGES", "TIME", "CONTACT SHEET"], rows)
    left_out = len(registry.names()) - len(sets)
    print(f"All {len(sets)} in one picture: {overview}")
    print(f"{left_out} more data sets need a download: see 'unweave data list'.")
