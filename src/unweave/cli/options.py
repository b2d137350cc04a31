"""Options that several commands share, and how their text is read: ``beta=6``, ``dip_ii:lambda_od=5,lambda_d=5``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from unweave.cli import output
from unweave.errors import ArgumentError, unknown_name


def _check_format(value: str | None) -> str | None:
    if value is not None and value not in output.FORMATS:
        raise unknown_name("--format", value, output.FORMATS)
    return value


Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE|FILE.py",
        help="Code of yours that registers methods, metrics, terms or data sets. May be repeated.",
        show_default=False,
    ),
]
ImageSize = Annotated[
    int | None,
    typer.Option("--size", min=1, help="Resize the images to this many pixels.", show_default=False),
]
Split = Annotated[
    str | None,
    typer.Option(
        metavar="PART",
        help="A part of the data: train or test, where it has them; 0.8,0: a random 80 %, by seed 0; "
        "test,0.8,0: the rest.",
        show_default=False,
    ),
]
LabelsCsv = Annotated[
    Path | None,
    typer.Option(
        "--labels-csv",
        metavar="FILE",
        help="Labels of some images, which become the factors: a CSV file, its first column the file names (or row "
        "numbers); what is empty or not there is not known.  [default: factors.csv of a folder]",
        show_default=False,
    ),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out images of a folder that cannot be read.")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="|".join(output.FORMATS),
        callback=_check_format,
        help="How the table is printed.  [default: in columns; in a pipe, separated by tabs]",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Of everything random.")]
Yes = Annotated[bool, typer.Option("--yes", help="Remove it.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")]


def load_extensions(imports: Sequence[str] | None) -> list[str]:
    """Import the user's code, as named by ``--import``; returns the names under which studies remember it."""
    from unweave import extensions

    return extensions.load(imports or ())


def parse_settings(option: str, texts: Sequence[str]) -> dict[str, Any]:
    """``["beta=6", "estimator=weighted"]`` -> {"beta": 6, "estimator": "weighted"}. Values are YAML."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ArgumentError(option, text, "needs NAME=VALUE, as in beta=6")
        if name.strip() in settings:
            raise ArgumentError(option, text, f"{name.strip()} is given twice")
        settings[name.strip()] = _parse_value(option, text, value)
    return settings


def parse_nested_settings(option: str, texts: Sequence[str]) -> dict[str, Any]:
    """``["first.method=vae", "first.steps=9", "beta=6"]`` -> {"first": {"method": "vae", "steps": 9}, "beta": 6}.

    The name before a dot is that of a mapping, to any depth: first.first.beta=4. "method.steps" inside a mapping is a
    hyperparameter of its method whose name the training has, too, and stays one name: first.method.steps=10.
    """
    nested: dict[str, Any] = {}
    for name, value in parse_settings(option, texts).items():
        *outer, last = name.split(".")
        if len(outer) > 1 and outer[-1] == "method":
            last = f"{outer.pop()}.{last}"
        inside = nested
        for key in outer:
            inside = inside.setdefault(key, {})
            if not isinstance(inside, dict):
                raise ArgumentError(option, f"{name}={value}", f"{key} has a value already: {inside}")
        if last in inside:
            raise ArgumentError(option, f"{name}={value}", f"{last} has settings already: {inside[last]}")
        inside[last] = value
    return nested


def parse_term(option: str, text: str) -> dict[str, Any]:
    """``dip_ii:lambda_od=5,lambda_d=5`` -> {"name": "dip_ii", "lambda_od": 5, "lambda_d": 5}; dots nest."""
    name, _, rest = text.partition(":")
    return {
        "name": name.strip(),
        **parse_nested_settings(option, [part for part in rest.split(",") if part.strip()]),
    }


def clean(removables: Sequence[Any], yes: bool, format: str | None = None) -> None:
    """Show what can go and how much space it takes; with ``yes``, remove it."""
    from unweave.cleaning import total_size

    rows = [(output.bytes_text(each.size), each.why, str(each.path)) for each in removables]
    if rows or format is not None:
        output.show_table(["SIZE", "WHAT", "PATH"], rows, format)
    total = output.bytes_text(total_size(removables))
    if format is not None and not yes:
        return
    if not rows:
        print("there is nothing to remove")
    elif yes:
        for each in removables:
            each.remove()
        print(f"removed {len(rows)} files and folders: {total} are free now")
    else:
        print(f"{len(rows)} files and folders take {total}; nothing was removed: --yes does")


def parse_names(text: str) -> list[str]:
    """``"mig, sap"`` -> ["mig", "sap"], each name once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _parse_value(option: str, text: str, value: str) -> Any:
    import yaml

    from unweave.safe_yaml import load_yaml

    try:
        parsed = load_yaml(value)
    except yaml.YAMLError as error:
        raise ArgumentError(option, text, "the value cannot be read") from error
    try:  # YAML 1.1 takes 1e-4 for a string
        return float(parsed) if isinstance(parsed, str) else parsed
    except ValueError:
        return parsed
