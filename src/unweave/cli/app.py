"""The command line as a whole: its options, its help, and the groups of commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from unweave import __version__
from unweave.cli import data, study, zoo
from unweave.cli.demo import demo
from unweave.cli.discover import discover
from unweave.cli.encode import encode
from unweave.cli.evaluate import evaluate
from unweave.cli.explore import explore, names
from unweave.cli.listing import methods, metrics
from unweave.cli.score import score
from unweave.cli.show import show
from unweave.cli.train import train


@dataclass
class Session:
    """The options given before the command."""

    debug: bool = False


EPILOG = """\b
Examples:
  unweave demo                      a small study, without a download
  unweave discover PHOTOS/          what varies in a folder of your images, on one page
  unweave data list                 the data sets, and which are on this machine
  unweave data get dsprites         download and prepare one
  unweave data show dsprites        write a picture of what it holds
  unweave methods                   the methods and their hyperparameters
  unweave train beta_vae --data dsprites --steps 5000 --set beta=4
  unweave evaluate runs/RUN         every metric of the papers
  unweave explore runs/RUN          move its codes, in a page of one file
  unweave encode runs/RUN -o codes.csv  the codes of all images
  unweave show runs/RUN --rows 0,7  what the model makes of chosen images
  unweave study run locatello-small  a whole study, with the paper's figures
  unweave zoo list                  trained models that come with unweave

Data is kept in the folder $UNWEAVE_DATA, or else in your cache folder.
"""

app = typer.Typer(
    name="unweave",
    help="Learn, measure and compare disentangled representations.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help, the same on a terminal and in a file
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(discover)
app.command()(train)
app.command()(methods)
app.command()(evaluate)
app.command()(encode)
app.command()(show)
app.command()(score)
app.command()(metrics)
app.command()(explore)
app.command()(names)
app.add_typer(data.app, name="data")
app.add_typer(study.app, name="study")
app.add_typer(zoo.app, name="zoo")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"unweave {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error happened.")] = False,
) -> None:
    """Learn, measure and compare disentangled representations."""
    if isinstance(context.obj, Session):
        context.obj.debug = debug
