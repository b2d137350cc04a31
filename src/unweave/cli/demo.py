"""``unweave demo``: see what there is, without a download."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from unweave.cli import output
from unweave.data import registry
from unweave.data.storage import data_folder
from unweave.errors import MissingDataError, UnweaveError


def demo(
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="The folder that the pictures are written to.")
    ] = Path("demo"),
) -> None:
    """Write a contact sheet of every data set that this machine has or can draw."""
    from unweave.figures import contact_sheet, gallery, save_picture

    print(f"Data is kept in {data_folder()}", flush=True)
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
