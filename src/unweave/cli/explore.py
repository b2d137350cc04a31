"""``unweave explore``: a trained model as one HTML file. ``unweave names``: what its latents are called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unweave.cli import output
from unweave.cli.data import load_run_data
from unweave.cli.options import ImageSize, Imports, Split, load_extensions
from unweave.errors import ArgumentError, UnweaveError
from unweave.files import read_json

if TYPE_CHECKING:
    from unweave.training import Run


def explore(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN [RUN …]", help="Run directories, of the same data.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--output", "-o", help="The file.")] = Path("explorer.html"),
    data: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FOLDER", help="Show other images than the first run's.", show_default=False
        ),
    ] = None,
    size: ImageSize = None,
    split: Split = None,
    title: Annotated[str | None, typer.Option(help="Of the page.", show_default=False)] = None,
    imports: Imports = None,
) -> None:
    """Write a page in which the codes of models can be moved: one HTML file, without a server or a network."""
    load_extensions(imports)
    if out.is_dir():
        raise ArgumentError("--output", str(out), "is a folder; needs the name of a file")
    from unweave.explorer import write_page
    from unweave.training import load

    loaded = [load(run) for run in runs]
    images = load_run_data(loaded[0], data, size, split)
    path = write_page(loaded, out, images, title)
    print(f"{path}: {output.bytes_text(path.stat().st_size)}. Open it in a browser.")


def names(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="NAMES.json",
            help='Names by label, as the explorer saves them: {"z0": "scale"}. Without it, show those of the run.',
            show_default=False,
        ),
    ] = None,
    imports: Imports = None,
) -> None:
    """Give names to the latents of a run: they appear in its pictures, which are drawn again, and in its explorer."""
    load_extensions(imports)
    from unweave.training import load, write_names
    from unweave.training.names import labels_of

    loaded = load(run)
    if file is not None:
        try:
            content = read_json(file)
        except FileNotFoundError as error:
            raise ArgumentError("NAMES.json", str(file), "there is no such file") from error
        write_names(loaded, content)
        _draw_again(loaded)
    output.show_table(
        ["LATENT", "NAME"], [(label, loaded.names.get(label, "")) for label in labels_of(loaded.method)]
    )


def _draw_again(run: Run) -> None:
    """The run's pictures of traversals with the new names, if it has pictures and its data is here."""
    from unweave.figures import Pictures

    if not (Path(run.path or ".") / "traversals.png").exists():
        return
    try:
        run.data = load_run_data(run, None, None, None)
    except UnweaveError as error:
        output.show_warning(f"the names are kept, but the pictures are as they were: {error}")
        return
    Pictures().on_names(run)
