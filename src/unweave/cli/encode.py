"""``unweave encode``: the codes of images, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unweave.cli.code_files import check_suffix, write_codes
from unweave.cli.data import load_run_data
from unweave.cli.options import ImageSize, Imports, LabelsCsv, SkipBad, Split, load_extensions
from unweave.cli.run_rows import OtherData, RunFolder, parse_rows
from unweave.files import check_can_write


def encode(
    run: RunFolder,
    target: Annotated[
        Path,
        typer.Option("--output", "-o", help="The table to write: .parquet, .csv, or arrays, .npz."),
    ] = Path("codes.parquet"),
    rows: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS",
            help="Rows by number, range or file name: 0,7,20:25,cat.png.  [default: all]",
            show_default=False,
        ),
    ] = None,
    data: OtherData = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="How an encoder that takes labels gets them: given, predicted or unknown.",
            show_default=False,
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(help="A named part of the codes: c or z of a multi-stage model.", show_default=False),
    ] = None,
    size: ImageSize = None,
    split: Split = None,
    labels_csv: LabelsCsv = None,
    skip_bad: SkipBad = False,
    imports: Imports = None,
) -> None:
    """Write the codes of a run's images: rows, file names, codes, variances of q(z|x), and factors where known.

    'unweave score' takes the file, in each of its formats.
    """
    load_extensions(imports)
    check_suffix(target, "--output")
    check_can_write(target, "--output")
    import numpy as np

    from unweave.evaluation import RepresentationTable
    from unweave.training import load

    loaded = load(run)
    images = load_run_data(loaded, data, size, split, labels_csv, skip_bad)
    chosen = parse_rows(rows, images)
    table = RepresentationTable(loaded, images, labels, part)  # type: ignore[arg-type]
    posterior = table.posterior(chosen, np.random.default_rng(0))
    table.flush()
    arrays = {"codes": posterior[:, 0], "rows": chosen}
    if table.has_noise:
        arrays["log_variance"] = posterior[:, 1]
    if images.space:
        arrays["factors"] = images.factors(chosen)
    if images.files is not None:
        arrays["files"] = np.array([images.files[row] for row in chosen])
    write_codes(target, arrays, images.space)
    print(f"{target}: {len(chosen):,} codes of {posterior.shape[2]} numbers")
