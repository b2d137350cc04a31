"""``unweave encode``: the codes of images, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unweave.cli.data import load_run_data
from unweave.cli.options import ImageSize, Imports, LabelsCsv, SkipBad, Split, load_extensions
from unweave.cli.run_rows import OtherData, RunFolder, parse_rows
from unweave.errors import ArgumentError
from unweave.files import check_can_write, replacing

_SUFFIXES = (".parquet", ".csv", ".npz")


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

    The arrays of an .npz file are those that 'unweave score' takes.
    """
    load_extensions(imports)
    if target.suffix.lower() not in _SUFFIXES:
        raise ArgumentError("--output", str(target), f"needs a name that ends in {', '.join(_SUFFIXES)}")
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
    log_variance = posterior[:, 1] if table.has_noise else None
    factors = images.factors(chosen) if images.space else None
    files = None if images.files is None else [images.files[row] for row in chosen]
    with replacing(target) as temporary:
        if target.suffix.lower() == ".npz":
            arrays = {
                "codes": posterior[:, 0],
                "log_variance": log_variance,
                "factors": factors,
                "rows": chosen,
            }
            arrays["files"] = None if files is None else np.array(files)
            np.savez(temporary, **{name: array for name, array in arrays.items() if array is not None})
        else:
            frame = _frame(images, chosen, files, posterior[:, 0], log_variance, factors)
            if target.suffix.lower() == ".csv":
                frame.to_csv(temporary, index=False)
            else:
                frame.to_parquet(temporary, index=False)
    print(f"{target}: {len(chosen):,} codes of {posterior.shape[2]} numbers")


def _frame(images: Any, rows: Any, files: Any, codes: Any, log_variance: Any, factors: Any) -> Any:
    """One line per image."""
    import numpy as np
    import pandas as pd

    columns: dict[str, Any] = {"row": rows} | ({} if files is None else {"file": files})
    columns |= {f"code_{number}": codes[:, number] for number in range(codes.shape[1])}
    if log_variance is not None:
        columns |= {f"variance_{n}": np.exp(log_variance[:, n]) for n in range(log_variance.shape[1])}
    for position, name in enumerate(images.space.names if factors is not None else ()):
        values = factors[:, position]
        written = images.space.value_names.get(name)
        if written is not None:
            values = [None if value != value else written[int(value)] for value in values.tolist()]
        columns[name if name not in columns else f"factor_{name}"] = values
    return pd.DataFrame(columns)
