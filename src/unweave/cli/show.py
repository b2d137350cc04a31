"""``unweave show``: pictures of what a run makes of chosen images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unweave.cli.data import load_run_data
from unweave.cli.options import ImageSize, Imports, LabelsCsv, SkipBad, Split, load_extensions, parse_names
from unweave.cli.run_rows import OtherData, RunFolder, parse_rows
from unweave.errors import ArgumentError


def show(
    run: RunFolder,
    rows: Annotated[
        str,
        typer.Option(metavar="ROWS", help="Images by number, range or file name: 0,7,20:25,cat.png."),
    ] = "0",
    picture: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The picture to write.  [default: rows.png]", show_default=False),
    ] = None,
    latents: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER,…", help="The latents to move.  [default: those used most]", show_default=False
        ),
    ] = None,
    at_most: Annotated[int, typer.Option(min=1, help="So many latents of each part of the code.")] = 10,
    columns: Annotated[int, typer.Option(min=2, max=100, help="Images per row.")] = 11,
    span: Annotated[float, typer.Option(min=0.01, help="The largest value of a latent.")] = 2.0,
    data: OtherData = None,
    size: ImageSize = None,
    split: Split = None,
    labels_csv: LabelsCsv = None,
    skip_bad: SkipBad = False,
    imports: Imports = None,
) -> None:
    """Draw chosen images beside their reconstructions, and what each latent does to them."""
    load_extensions(imports)
    from unweave.figures import check_picture_path, row_pictures, save_picture
    from unweave.training import load

    target = check_picture_path(picture or Path("rows.png"))
    chosen = None if latents is None else _numbers(latents)
    loaded = load(run)
    images = load_run_data(loaded, data, size, split, labels_csv, skip_bad)
    drawn = row_pictures(
        loaded.method, images, parse_rows(rows, images), columns, span, at_most=at_most, latents=chosen
    )
    print(save_picture(drawn, target))


def _numbers(text: str) -> list[int]:
    try:
        return [int(name) for name in parse_names(text)]
    except ValueError as error:
        raise ArgumentError("--latents", text, "needs whole numbers, as in 0,3") from error
