"""``unweave demo``: what disentangled means, in some five minutes and without a download; or all data sets in pictures.

A few thousand steps of three methods on small images, and a model of the package at full size: their scores side by
side, and what each of their latents does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from unweave.cli import output
from unweave.errors import MissingDataError, UnweaveError

STUDY = "demo"
LOADED = "dsprites/beta_tcvae"
SEED = 3  # of the image in the pictures
TRAINING_SECONDS = 180  # for all runs together, from which the steps of each follow
FEWEST_STEPS, MOST_STEPS = 1_000, 8_000


def demo(
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="The folder that everything is written to.")
    ] = Path("demo"),
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Training steps of each run.  [default: what this machine can do in three minutes]",
            show_default=False,
        ),
    ] = None,
    gallery: Annotated[
        bool, typer.Option("--gallery", help="Instead, draw every data set that this machine has.")
    ] = False,
) -> None:
    """Train three methods on small dSprites, load a model of the package, and show what their latents do."""
    from unweave.data.storage.prepared import data_folder

    print(f"Data is kept in {data_folder()}", flush=True)
    if gallery:
        _show_data(folder)
    else:
        _run_demo(folder, steps)


def _run_demo(folder: Path, steps: int | None) -> None:
    import unweave as uw
    from unweave.cli.study import run
    from unweave.study.folder import open_study
    from unweave.study.results import load_results

    start = time.monotonic()
    small, large = uw.data.load("dsprites", image_size=32), uw.data.load("dsprites")
    expected = ""
    if steps is None:
        steps, expected = _plan_steps(folder)
    print(
        f"1. Training a plain VAE, a beta-VAE and a beta-TCVAE on dSprites at 32 pixels: {steps:,} steps each"
        f"{expected}",
        flush=True,
    )
    run(STUDY, _settings(steps), folder, processes=_processes(), threads=1)
    study = open_study(folder, STUDY)
    trained = {job.method: uw.load(study.run(job.identity)) for job in study.jobs}

    card = uw.zoo.card(LOADED)
    print(f"2. Loading {card.address}, trained for {card.steps:,} steps at 64 pixels", flush=True)
    loaded = uw.load(card.address)
    settings = study.study.evaluation
    compared = [name for name in settings.metrics if isinstance(name, str) and name != "unsupervised"]
    options: Any = {"num_train": settings.num_train, "num_test": settings.num_test}
    scores = _medians(load_results(study.path), compared)
    scores[card.address] = {
        name: score.value for name, score in uw.evaluate(loaded, large, compared, **options).items()
    }

    print("3. Pictures: from a real image, the latent that knows most about each factor is moved by itself")
    pictures = []
    for name, one in trained.items():
        title = f"{name}, trained just now: {steps:,} steps at 32 pixels"
        pictures.append(uw.figures.factor_traversals(one.method, small, seed=SEED, title=title))
    title = f"{card.address}, loaded: {card.steps:,} steps at 64 pixels"
    pictures.append(uw.figures.factor_traversals(loaded.method, large, seed=SEED, title=title))
    path = uw.figures.save_picture(uw.figures.stack(pictures), folder / "traversals.png")
    page = uw.explorer.write_page([loaded], folder / "explorer.html", large, f"{card.address}, loaded")

    print(
        f"Scores of {options['num_train']:,} + {options['num_test']:,} points (the papers: 10,000 + 5,000); "
        "1 is best:"
    )
    rows = [(name, *(f"{of[name]:.3f}" for of in scores.values())) for name in compared]
    output.show_table(["SCORE", *scores], rows)
    print("A latent that knows little about a factor (its per cent stand in the picture) has not learned it.")
    print(f"Trained just now: {', '.join(trained)}, {steps:,} steps each (the papers: 300,000).")
    print(f"Loaded: {card.address}. Its card: unweave zoo show {LOADED}")
    print(f"What the latents do: {path}")
    print(f"Move them yourself, in a browser: {page}")
    print(f"The report of what was trained: {study.path / 'report' / 'report.html'}")
    print(f"All this took {(time.monotonic() - start) / 60:.1f} minutes.")


def _settings(steps: int) -> list[str]:
    """Those that differ from the study file's."""
    return [f"training.steps={steps}", f"training.learning_rate.warmup={min(200, steps // 5)}"]


def _plan_steps(folder: Path) -> tuple[int, str]:
    """The steps of each run, and a text that says how long all take: as in this folder before, or else as measured."""
    from unweave.errors import DataError
    from unweave.study.estimate import steps_within
    from unweave.study.folder import open_study
    from unweave.study.planning import plan
    from unweave.study.spec import load_study

    try:
        steps = int(open_study(folder, STUDY).study.training.steps)
        return steps, ", as this folder has begun (another number: --steps, or another folder: --output)"
    except DataError:
        jobs = plan(*load_study(STUDY)).jobs
    steps, seconds = steps_within(jobs, _processes(), TRAINING_SECONDS, FEWEST_STEPS, MOST_STEPS)
    return steps, f", about {max(1, round(seconds / 60))} min at this machine's speed now (fewer: --steps)"


def _processes() -> int:
    """Runs at a time: one for each core, as none gains from a second thread at this size."""
    from unweave.processes import cores

    return min(3, cores())


def _medians(table: Any, metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """Scores by method and metric, of mean codes."""
    wanted = table[table["metric"].isin(metrics) & (table["representation"] == "mean")]
    return {
        str(method): {
            str(name): float(value) for name, value in rows.groupby("metric")["value"].median().items()
        }
        for method, rows in wanted.groupby("method", sort=False)
    }


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
