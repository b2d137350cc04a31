"""``unweave data …``: list, describe, get and show data sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unweave.cli import output
from unweave.cli.options import (
    Format,
    ImageSize,
    Imports,
    LabelsCsv,
    SkipBad,
    Split,
    Yes,
    clean,
    load_extensions,
)
from unweave.errors import ArgumentError, UnweaveError

if TYPE_CHECKING:
    from unweave.data.dataset import Dataset
    from unweave.data.storage.status import FileStatus, Status
    from unweave.training import Run

app = typer.Typer(
    help="List, download, prepare and show data sets.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="\b\nExamples:\n  unweave data list\n  unweave data info dsprites --json\n"
    "  unweave data get dsprites\n  unweave data show dsprites -o sheet.png\n"
    "  unweave data show ./my_images --size 64",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set: see 'unweave data list'.")]
Folder = Annotated[
    Path | None,
    typer.Option(
        help="The folder of all data sets.  [default: $UNWEAVE_DATA, or your cache folder]",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_sets(
    folder: Folder = None, json: Json = False, format: Format = None, imports: Imports = None
) -> None:
    """List all data sets, and whether they are on this machine.

    States: ready (prepared, loads at once), offline (works without a download), files present
    (prepared at the next use), needs download. --json prints all that is known, --format json the table.
    """
    load_extensions(imports)
    from unweave.data import registry
    from unweave.data.storage.status import describe, status

    recipes = [registry.find(name) for name in registry.names()]
    states = [status(recipe, _folder_of(recipe.name, folder)) for recipe in recipes]
    if json:
        output.show_json([describe(*pair) for pair in zip(recipes, states, strict=True)])
        return
    rows = [(r.name, r.images, r.factors, _state_text(s)) for r, s in zip(recipes, states, strict=True)]
    output.show_table(["NAME", "IMAGES", "FACTORS", "STATE"], rows, format)


@app.command()
def info(
    name: Name, folder: Folder = None, json: Json = False, format: Format = None, imports: Imports = None
) -> None:
    """Show everything that is known about a data set."""
    load_extensions(imports)
    from unweave.data import registry
    from unweave.data.storage.elsewhere import kept_elsewhere
    from unweave.data.storage.status import describe, status

    recipe = registry.find(name)
    state = status(recipe, _folder_of(name, folder))
    if json:
        output.show_json(describe(recipe, state))
        return
    facts = [("name", recipe.name), ("title", recipe.title), ("summary", recipe.summary)]
    facts += [("images", recipe.images), ("factors", recipe.factors), ("licence", recipe.licence)]
    facts += [
        ("citation", recipe.citation),
        ("homepage", recipe.homepage),
        ("state", _state_text(state)),
        ("folder", str(state.folder)),
    ]
    known = kept_elsewhere(name, _folder_of(name, folder).parent)
    facts += [("prepared from", f"{originals}, in {kept}") for kept, originals, _ in known]
    for file in state.files:
        size = "not known" if file.source.size is None else f"{file.source.size} bytes"
        facts += [("file", file.source.name), ("  address", file.source.url), ("  size", size)]
        facts += [("  sha256", file.source.sha256 or "not known"), ("  path", str(file.path))]
        facts += [("  on disk", _file_text(file, recipe.package))]
    output.show_facts(facts, format)


@app.command()
def get(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="The data sets to get.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Get every data set.")] = False,
    folder: Folder = None,
    imports: Imports = None,
) -> None:
    """Download data sets and prepare them for use.

    An interrupted download continues where it stopped. If one data set fails, the others are still prepared.
    """
    load_extensions(imports)
    from unweave.data import registry
    from unweave.data.storage.download import obtain
    from unweave.data.storage.status import status

    if bool(names) == everything:
        raise typer.BadParameter("give the names of data sets, or --all", param_hint="NAME")
    recipes = [registry.find(name) for name in dict.fromkeys(names or registry.names())]
    failed = False
    for recipe in recipes:
        path = _folder_of(recipe.name, folder)
        before = status(recipe, path)
        try:
            obtain(recipe, path)
        except UnweaveError as error:
            if len(recipes) == 1:
                raise
            output.show_error(f"{recipe.name}: {error}")
            failed = True
        else:
            print(f"{recipe.name}: {_done_text(before, status(recipe, path))}", flush=True)
    if failed:
        raise typer.Exit(1)


@app.command("clean")
def clean_sets(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Data sets.  [default: all]", show_default=False),
    ] = None,
    sources: Annotated[
        bool, typer.Option("--sources", help="Also official files of data sets that are prepared.")
    ] = False,
    drawn: Annotated[
        bool, typer.Option("--drawn", help="Also rendered images: they are drawn again.")
    ] = False,
    elsewhere: Annotated[
        bool,
        typer.Option(
            "--elsewhere", help="Also what is prepared from files outside this folder: it is prepared again."
        ),
    ] = False,
    yes: Yes = False,
    format: Format = None,
    folder: Folder = None,
    imports: Imports = None,
) -> None:
    """Show what takes space and is not needed any more: cut downloads, leftovers, old versions; --yes removes it."""
    load_extensions(imports)
    from unweave.data import registry
    from unweave.data.storage.clean import removable_data

    recipes = [registry.find(name) for name in dict.fromkeys(names or registry.names())]
    which = {"sources": sources, "drawn": drawn, "elsewhere": elsewhere}
    every = [removable_data(recipe, _folder_of(recipe.name, folder), **which) for recipe in recipes]
    clean([each for removables in every for each in removables], yes, format)


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME|FOLDER", help="A data set, or a folder of your own images.")
    ],
    picture: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The picture to write.  [default: NAME.png]", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which images are drawn.")] = 0,
    columns: Annotated[int, typer.Option(min=1, max=100, help="Images per row.")] = 10,
    size: ImageSize = None,
    split: Split = None,
    labels_csv: LabelsCsv = None,
    skip_bad: SkipBad = False,
    folder: Folder = None,
    imports: Imports = None,
) -> None:
    """Write a picture of a data set: random images, and each factor varied by itself."""
    load_extensions(imports)
    from unweave.data.registry import check_name

    check_name(name)  # before figures are imported
    from unweave.figures import check_picture_path, contact_sheet, save_picture

    target = check_picture_path(picture or Path(f"{Path(name).resolve().name}.png"))
    data = load_data(name, size, folder, split, labels_csv, skip_bad)
    print(save_picture(contact_sheet(data, seed, columns), target))


def load_data(
    name: str,
    size: int | None,
    folder: Path | None,
    split: str | None = None,
    labels_csv: Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    """``unweave.data.load`` with errors that name the options; ``folder`` is that of all data sets."""
    from unweave.data import registry

    path = _folder_of(name, folder) if folder is not None and name in registry.names() else None
    try:
        return registry.load(name, path, image_size=size, split=split, labels=labels_csv, skip_bad=skip_bad)
    except ArgumentError as error:
        options = {
            "image_size": "--size",
            "split": "--split",
            "labels": "--labels-csv",
            "skip_bad": "--skip-bad",
        }
        if error.argument in options:
            raise ArgumentError(options[error.argument], error.value, error.allowed) from error
        raise


def load_run_data(
    run: Run,
    name: str | None,
    size: int | None,
    split: str | None,
    labels_csv: Path | None = None,
    skip_bad: bool = False,
) -> Dataset:
    """The data of a run, or others by name; if the run's folder has moved, the message names the option."""
    from unweave.data.registry import load_described
    from unweave.data.split import part_of_same_split

    described = dict(run.spec.data)
    if name is None and (part := part_of_same_split(described.get("split"), split)) is not None:
        described["split"] = split = part
    if name is not None or size is not None:
        return load_data(name or described["name"], size, None, split, labels_csv, skip_bad)
    try:
        return load_described(described, run.spec.folder, labels=labels_csv, skip_bad=skip_bad)
    except ArgumentError as error:
        if error.argument == "data" and run.spec.folder:
            where = run.spec.folder.get("path")
            message = f"the run was trained on {where}, which is not there any more: say where it is"
            raise ArgumentError("--data", None, message) from error
        if error.argument == "labels":
            raise ArgumentError("--labels-csv", error.value, error.allowed) from error
        raise


def _folder_of(name: str, folder: Path | None) -> Path:
    from unweave.data.storage.prepared import data_folder

    return (data_folder() if folder is None else folder) / name


def _state_text(status: Status) -> str:
    """A data set's state in a few words, with its size."""
    if status.state == "needs download":
        size = "size not known" if status.download_bytes is None else output.bytes_text(status.download_bytes)
        return f"{status.state}, {size}"
    if status.disk_bytes:
        return f"{status.state}, {output.bytes_text(status.disk_bytes)} on disk"
    return status.state


def _file_text(file: FileStatus, package: str | None) -> str:
    """Whether an official file is on this machine, in a few words."""
    if file.size_differs:
        return f"present, but has {file.size:,} bytes: not the official size"
    if file.present:
        return "present"
    if file.alternative is not None:
        return f"not needed: {file.alternative} is there"
    if package is not None:
        return f"not needed: comes with the package {package}"
    return f"absent, {output.bytes_text(file.partial)} downloaded" if file.partial else "absent"


def _done_text(before: Status, after: Status) -> str:
    """What ``get`` has done, in a few words."""
    new = sum(not old.usable and now.usable for old, now in zip(before.files, after.files, strict=True))
    done = [f"downloaded {new} file{'s' * (new > 1)}"] if new else []
    if after.prepared and not before.prepared:
        done.append("prepared")
    if done:
        return f"{' and '.join(done)} in {after.folder} ({output.bytes_text(after.disk_bytes)})"
    return (
        f"was ready in {after.folder}" if after.prepared else "ready, there is nothing to download or prepare"
    )
