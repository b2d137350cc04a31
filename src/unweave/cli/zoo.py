"""``unweave zoo …``: trained models that come with the package, or that others have published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unweave.cli import output
from unweave.cli.options import Format, Imports, load_extensions, parse_names

app = typer.Typer(
    help="List, show, check and publish trained models.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="\b\nExamples:\n  unweave zoo list\n  unweave zoo show dsprites/beta_tcvae\n"
    "  unweave zoo evaluate dsprites/beta_tcvae --quick\n"
    "  unweave zoo add runs/first dsprites/mine --to models\n\n"
    "In Python: uw.load('zoo:dsprites/beta_tcvae').",
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME|ADDRESS",
        help="A model: see 'unweave zoo list'; or https://…, hf://USER/NAME, or a folder.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SCORES = {"mig": "MIG", "dci": "DCI", "modularity": "MODULARITY", "sap": "SAP", "downstream": "CLASSIFIED"}


@app.command("list")
def list_models(json: Json = False, format: Format = None) -> None:
    """List the models that come with the package, with scores of their cards.

    In a pipe the columns are separated by tabs. --json prints all that is known, --format json the table.
    """
    from unweave import zoo

    cards = [zoo.card(name) for name in zoo.names()]
    if json:
        output.show_json([_content(card) for card in cards])
        return
    rows = [
        (card.name, f"{card.steps:,}", *(_score(card, name) for name in SCORES), card.summary)
        for card in cards
    ]
    output.show_table(["NAME", "STEPS", *SCORES.values(), "SUMMARY"], rows, format)


@app.command()
def show(name: Name, json: Json = False, format: Format = None) -> None:
    """Show a model's card: how it was trained, its scores, and where its files and pictures are."""
    from unweave import zoo

    card = zoo.card(name)
    if json:
        output.show_json(_content(card))
        return
    spec = card.spec
    left_out = f"; without {', '.join(card.left_out)}, which only training needs" if card.left_out else ""
    facts = [("name", card.name), ("summary", card.summary), ("address", card.address)]
    facts += [("method", spec.method.name), ("settings", output.settings_text(spec.method.hyperparameters))]
    facts += [("data", f"{spec.data['name']}, {'x'.join(map(str, spec.data['image_shape']))}")]
    facts += [("steps", f"{card.steps:,}"), ("command", card.command or "none")]
    facts += [("weights", f"{card.num_weights:,}, {card.dtype}{left_out}"), ("sha256", card.sha256)]
    facts += [("change by 16 bits", f"{card.change:.2g}")] if card.dtype == "float16" else []
    facts += [("protocol", _protocol(card.full))]
    facts += [(f"  {key}", f"{value:.4g}") for key, value in card.full.scores.items()]
    facts += [("folder", str(card.folder)), ("pictures", ", ".join(card.pictures))]
    output.show_facts(facts, format)


@app.command()
def evaluate(
    name: Name,
    quick: Annotated[bool, typer.Option("--quick", help="The scores of few points: seconds.")] = False,
    format: Format = None,
) -> int:
    """Compute the scores of a model's card again, and compare. The exit code is 1 if one differs."""
    from unweave import zoo

    comparisons = zoo.evaluate(name, quick=quick)
    rows = [
        (each.metric, f"{each.card:.6g}", f"{each.value:.6g}", "same" if each.same else "differs")
        for each in comparisons
    ]
    output.show_table(["SCORE", "CARD", "NOW", "COMPARED"], rows, format)
    different = [each for each in comparisons if not each.same]
    if different:
        output.show_error(
            f"{len(different)} of {len(comparisons)} scores differ from the card's by more than "
            f"{different[0].tolerance:g}"
        )
    return 1 if different else 0


@app.command()
def add(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a finished run.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the model: DATA/METHOD.")],
    to: Annotated[Path, typer.Option(help="The folder of all models.")] = Path("models"),
    summary: Annotated[str, typer.Option(help="A sentence for the card.", show_default=False)] = "",
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="The card's, as far as they apply.  [default: a few]", show_default=False
        ),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Of the weights: auto (16 bits if no score moves), float16 or float32.")
    ] = "auto",
    imports: Imports = None,
) -> None:
    """Make a model to publish of a run: weights, a card with scores, pictures, and a manifest with checksums.

    The folder works from any web server, and as a repository at Hugging Face: uw.load("https://…/NAME").
    """
    load_extensions(imports)
    from unweave import zoo
    from unweave.data.files.checksum import sha256_of
    from unweave.errors import unknown_name
    from unweave.evaluation import find_metric
    from unweave.training.manifest import MANIFEST

    kinds = ("auto", "float16", "float32")
    if dtype not in kinds:
        raise unknown_name("--dtype", dtype, kinds)
    options: dict[str, Any] = {"dtype": dtype}
    if metrics is not None:
        options["metrics"] = parse_names(metrics)
        for metric in options["metrics"]:
            find_metric(metric)
    card = zoo.publish(run, name, to, summary, **options)
    output.show_facts([(key, f"{value:.4g}") for key, value in card.full.scores.items()])
    print(f"{card.folder}: {card.dtype}, {card.num_weights:,} weights")
    print(f"its address ends in #sha256={sha256_of(card.folder / MANIFEST)}")


def _score(card: Any, name: str) -> str:
    return f"{card.full.scores[name]:.3f}" if name in card.full.scores else ""


def _protocol(evaluation: Any) -> str:
    points = f"{evaluation.num_train:,} + {evaluation.num_test:,} points"
    changed = [f"{name}: {output.settings_text(values)}" for name, values in evaluation.params.items()]
    return "; ".join([f"{evaluation.protocol}, {points}, seed {evaluation.seed}", *changed])


def _content(card: Any) -> dict[str, Any]:
    from dataclasses import asdict

    content = {**asdict(card), "folder": str(card.folder), "spec": card.spec.as_dict()}
    return content
