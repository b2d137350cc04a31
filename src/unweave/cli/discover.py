"""``unweave discover``: what varies in a folder of photographs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def discover(
    photos: Annotated[
        Path, typer.Argument(metavar="PHOTOS", help="A folder of images, of any kind and size.")
    ],
    labels: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file with labels of some photographs: the file, then the labels. They are compared with what "
            "was discovered; nothing learns from them.",
            show_default=False,
        ),
    ] = None,
    minutes: Annotated[float, typer.Option(help="The time for everything.")] = 30.0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The folder of the results.  [default: NAME-discovered]",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="For experts: training steps of each run, in place of what fits into the time.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="For experts: random beginnings of the chosen setting, 2 or more; below 5, agreement is hard to tell "
            "from chance.",
            show_default=False,
        ),
    ] = None,
    latent_size: Annotated[
        int | None, typer.Option(help="For experts: numbers per photograph.", show_default=False)
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="For experts: pixels of the images, 32 or 64.", show_default=False)
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option(
            help="For experts: the strength of β-TCVAE, in place of a choice by short runs.",
            show_default=False,
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            help="How many runs are trained side by side; fewer leave the machine more free.  "
            "[default: one per core]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Discover what varies in a folder of photographs, and write a page that shows it.

    No knowledge of machine learning is needed. The photographs are examined, models are trained within the time given,
    and what comes back whenever training begins anew is shown. If it was stopped (Ctrl-C, a crash), the same
    command goes on; finished work is not done again.
    """
    from unweave.discovery import discover as discover_factors

    try:
        result = discover_factors(
            photos,
            labels=labels,
            minutes=minutes,
            out=out,
            steps=steps,
            seeds=seeds,
            latent_size=latent_size,
            size=size,
            strength=strength,
            processes=processes,
        )
    except KeyboardInterrupt:
        print("What was trained is kept; the same command goes on from there.", file=sys.stderr)
        raise
    print(result.headline)
    print(result.page)
