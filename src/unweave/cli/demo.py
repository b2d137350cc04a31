"""``unweave demo``: see what there is, without a download, in a few minutes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from unweave.cli import output
from unweave.data import registry
from unweave.data.storage import data_folder
from unweave.errors import MissingDataError, UnweaveError

METHODS: dict[str, dict[str, Any]] = {"beta_vae": {"beta": 2}, "beta_tcvae": {"beta": 4}}
LEARNING_RATE = 5e-4  # five times the papers': the runs are short
# Fewer points and votes than the papers take (10,000 + 5,000 of each), for the same reason.
VOTES = {"num_train": 300, "num_eval": 150}
EVALUATION: dict[str, Any] = {
    "num_train": 2_000,
    "num_test": 1_000,
    "params": {"beta_vae": VOTES, "factor_vae": {**VOTES, "num_variance_estimate": 2_000}},
}


def demo(
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="The folder that everything is written to.")
    ] = Path("demo"),
    steps: Annotated[int, typer.Option(min=0, help="Training steps of each method; 0: no training.")] = 750,
) -> None:
    """Show every data set that this machine has or can draw, and train two methods on dSprites."""
    print(f"Data is kept in {data_folder()}", flush=True)
    _show_data(folder)
    if steps:
        _train_methods(folder, steps)


def _show_data(folder: Path) -> None:
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


def _train_methods(folder: Path, steps: int) -> None:
    import unweave as uw

    data = uw.data.load("dsprites")
    rows, scores = [], {}
    for name, strength in METHODS.items():
        start = time.monotonic()
        out = folder / "runs" / f"{name}-{steps}"
        run = uw.train(
            uw.methods.create(name, data, **strength), data, steps, learning_rate=LEARNING_RATE, out=out
        )
        last = run.history[-1]
        told = ", ".join(f"{key} {value:g}" for key, value in strength.items())
        numbers = [f"{last[key]:.1f}" for key in ("reconstruction", "kl")]
        rows.append((name, told, *numbers, f"{time.monotonic() - start:.0f} s", str(out)))
        scores[name] = uw.evaluate(run, data, **EVALUATION)
    print(f"Trained on dSprites for {steps:,} steps of 64 images (the papers: 300,000):")
    output.show_table(["METHOD", "STRENGTH", "RECONSTRUCTION", "KL", "TIME", "RUN"], rows)
    print("Each run has reconstructions.png, traversals.png, traversals.gif and loss_curves.png.")
    print(
        "Scores of the mean representation, by a reduced protocol "
        "(2,000 points, 450 votes; the papers: 15,000 of each):"
    )
    table = [(metric, *(f"{scores[name][metric].value:.3f}" for name in METHODS)) for metric in scores[name]]
    output.show_table(["METRIC", *METHODS], table)
