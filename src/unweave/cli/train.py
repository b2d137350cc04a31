"""``unweave train``: train a method on a data set."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unweave.cli.data import load_data
from unweave.cli.options import (
    Device,
    ImageSize,
    Imports,
    LabelsCsv,
    SkipBad,
    Split,
    load_extensions,
    parse_names,
    parse_nested_settings,
    parse_settings,
    parse_term,
)
from unweave.errors import ArgumentError

if TYPE_CHECKING:
    from unweave.training import Callback

_RECORDS = 20  # of a short run: a curve, not a dot


def train(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="See 'unweave methods'.")],
    data: Annotated[
        str, typer.Option(metavar="NAME|FOLDER", help="A data set, or a folder of your own images.")
    ] = "dsprites",
    steps: Annotated[int, typer.Option(help="Training steps.")] = 300_000,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A hyperparameter, as in beta=6; of an earlier stage, first.beta=6.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of weights, batches and noise.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="The run directory.  [default: runs/METHOD-DATA-ID]", show_default=False),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Images per step.")] = 64,
    learning_rate: Annotated[float, typer.Option(help="Of Adam; the largest one.")] = 1e-4,
    warmup: Annotated[int, typer.Option(help="Steps over which the learning rate rises from 0.")] = 0,
    decay: Annotated[
        str, typer.Option(help="How it falls to 0 afterwards: constant (not), linear or cosine.")
    ] = "constant",
    latent_size: Annotated[
        int | None, typer.Option(help="Code dimensions of a VAE.  [default: 10]", show_default=False)
    ] = None,
    architecture: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:NAME=VALUE,…]",
            help="auto, conv, conv_dlib, adain or mlp; with options, conv:width=2.  [default: auto]",
            show_default=False,
        ),
    ] = None,
    reconstruction: Annotated[
        str | None,
        typer.Option(
            help="bernoulli, gaussian, gaussian_learned, laplace or mse.  [default: bernoulli]",
            show_default=False,
        ),
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(
            help="s of a correlated posterior: noise covariance (1-s) I + s 11^T.  [default: 0]",
            show_default=False,
        ),
    ] = None,
    correlated: Annotated[
        str | None,
        typer.Option(
            help="What is correlated: posterior (every term knows it) or noise (the draws of z alone).  "
            "[default: posterior]",
            show_default=False,
        ),
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option(
            metavar="c_max=25,…",
            help="Hold the method's KL to a growing capacity: c_max, gamma, steps.",
            show_default=False,
        ),
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TERM:NAME=VALUE,…", help="A further term, as in dip_ii:lambda_od=5,lambda_d=5."
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:NAME=VALUE,…]",
            help="A prior given labels, for any method: conditional, label_vae.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FACTOR,…",
            help="The factors that full_vae, ivae, idvae, … learn from.  [default: all]",
            show_default=False,
        ),
    ] = None,
    label_encoding: Annotated[
        str | None,
        typer.Option(help="scaled, one_hot or mixed.  [default: scaled]", show_default=False),
    ] = None,
    labelled: Annotated[
        str | None,
        typer.Option(
            metavar="COUNT|PART",
            help="How many rows have labels: 1000, or 0.1 of all.  [default: all]",
            show_default=False,
        ),
    ] = None,
    label_bins: Annotated[
        int | None, typer.Option(help="At most so many values per label.", show_default=False)
    ] = None,
    label_noise: Annotated[
        float | None,
        typer.Option(help="The probability that a label is a random one.  [default: 0]", show_default=False),
    ] = None,
    label_seed: Annotated[
        int | None,
        typer.Option(
            help="Which rows have labels, and which labels are random.  [default: 0]", show_default=False
        ),
    ] = None,
    device: Device = "auto",
    devices: Annotated[int, typer.Option(help="How many devices share a batch.")] = 1,
    precision: Annotated[str, typer.Option(help="As Lightning Fabric names it: bf16-mixed, …")] = "32-true",
    compile: Annotated[bool, typer.Option("--compile", help="torch.compile the method (for GPUs).")] = False,
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads.  [default: all cores]", show_default=False)
    ] = None,
    log_every: Annotated[
        int | None,
        typer.Option(
            help="Steps between two records of the history.  [default: 100; fewer, for 20 records, in short runs]",
            show_default=False,
        ),
    ] = None,
    checkpoint_seconds: Annotated[float, typer.Option(help="Seconds between two checkpoints.")] = 300.0,
    logger: Annotated[
        list[str] | None, typer.Option(help="Also log to tensorboard, wandb or mlflow.")
    ] = None,
    pictures: Annotated[bool, typer.Option(help="Write pictures at the end.")] = True,
    size: ImageSize = None,
    split: Split = None,
    labels_csv: LabelsCsv = None,
    skip_bad: SkipBad = False,
    imports: Imports = None,
) -> None:
    """Train a method on a data set.

    The run directory holds the spec, weights, history and pictures. If a run was stopped (Ctrl-C, a crash),
    the same command continues it, to the same result; a finished run is not trained again.

    A multi-stage method takes the run of its earlier stage, --set first=RUN, or that run's settings, --set
    first.method=beta_tcvae --set first.beta=4 --set first.steps=1000: then that run is trained before it, beside it.
    """
    load_extensions(imports)
    from unweave.data.registry import check_name
    from unweave.methods import describe

    hyperparameters = parse_nested_settings("--set", settings or [])
    describe(method).check_settings(hyperparameters)  # before torch is imported and data are prepared
    check_name(data)
    import torch

    import unweave as uw
    from unweave.training.loggers import check_logger, create_logger

    loggers = list(dict.fromkeys(logger or []))
    for name in loggers:
        check_logger(name, "--logger")
    _check_size(size, method, _architecture(architecture))
    loaded = load_data(data, size, None, split, labels_csv, skip_bad)
    given: dict[str, Any] = {
        "latent_size": latent_size,
        "architecture": _architecture(architecture),
        "reconstruction": reconstruction,
        "correlation": correlation,
        "correlated": correlated,
        "capacity": None if capacity is None else parse_settings("--capacity", capacity.split(",")),
        "extra_terms": [parse_term("--add", text) for text in add or []] or None,
        "prior": None if prior is None else parse_term("--prior", prior),
        "labels": _labels(
            labels, labelled, encoding=label_encoding, bins=label_bins, noise=label_noise, seed=label_seed
        ),
    }
    given = {name: value for name, value in given.items() if value is not None}
    created = uw.methods.create(method, loaded, **given, **hyperparameters)
    if threads is not None:
        torch.set_num_threads(threads)
    rate = {"peak": learning_rate, "warmup": warmup, "shape": decay}
    with _options_in_errors(peak="--learning-rate", warmup="--warmup", shape="--decay"):
        spec = uw.training.plan(created, loaded, steps, batch_size, rate, seed, precision)
    options: dict[str, Any] = {
        "device": device,
        "pictures": pictures,
        "log_every": max(1, min(100, steps // _RECORDS)) if log_every is None else log_every,
        "checkpoint_seconds": checkpoint_seconds,
        "devices": devices,
        "compile": compile,
        "keep_memory": True,
    }
    if created.planned and out is None:  # the folder's name is known when the earlier stages are trained
        uw.training.train_stages(created, uw.train, spec.training, Path("runs"), **options)
        spec = uw.training.plan(created, loaded, steps, batch_size, rate, seed, precision)
    folder = out or Path("runs") / uw.training.run_name(spec)
    callbacks = [create_logger(name, folder) for name in loggers]
    callbacks.append(_finished_before(folder))
    try:
        run = uw.train(created, loaded, **spec.training, out=folder, callbacks=callbacks, **options)
    except KeyboardInterrupt:
        _say_what_is_kept(folder)
        raise
    if run.records:
        last = {
            name: f"{value:,}" if name == "step" else f"{value:,.4g}"
            for name, value in run.records[-1].items()
        }
        print(", ".join(f"{name} {value}" for name, value in last.items()))
    for problem in run.problems:
        print(f"warning: {problem}")
    print(folder)


@contextmanager
def _options_in_errors(**options: str) -> Iterator[None]:
    """Errors about these arguments name the options that they come from."""
    try:
        yield
    except ArgumentError as error:
        if error.argument in options:
            raise ArgumentError(options[error.argument], error.value, error.allowed) from error
        raise


def _check_size(size: int | None, name: str, architecture: str | dict[str, Any] | None) -> None:
    """Refuse a size that no convolutional network takes before all images are reduced to it."""
    from unweave.methods import METHODS
    from unweave.networks.shapes import check_conv_shape

    network = architecture["name"] if isinstance(architecture, dict) else architecture
    if size is None or network == "mlp" or "architecture" not in METHODS[name].settings:
        return
    try:
        check_conv_shape((size, size, 1))
    except ArgumentError as error:
        raise ArgumentError("--size", size, error.allowed) from error


def _labels(names: str | None, labelled: str | None, **given: Any) -> dict[str, Any] | None:
    """The arguments of ``unweave.data.supervision.labels.labels_of`` that were given; None if none was."""
    given["names"] = None if names is None else parse_names(names)
    if labelled is not None:
        try:
            given["labelled"] = _number(labelled)
        except ValueError as error:
            raise ArgumentError(
                "--labelled", labelled, "needs a number of rows, or a part as in 0.1"
            ) from error
    return {key: value for key, value in given.items() if value is not None} or None


def _architecture(text: str | None) -> str | dict[str, Any] | None:
    """``conv``, or with options ``conv:width=2``."""
    return parse_term("--architecture", text) if text is not None and ":" in text else text


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _finished_before(folder: Path) -> Callback:
    """Says that there was nothing to train."""
    from unweave.training import Callback as Base

    class FinishedBefore(Base):
        def on_already_finished(self, run: Any) -> None:
            print(
                f"{folder}: was finished before, at step {run.step:,}; nothing was trained", file=sys.stderr
            )

    return FinishedBefore()


def _say_what_is_kept(folder: Path) -> None:
    """After Ctrl-C: what is on disk, and how to go on."""
    from unweave.training.run import steps_done

    done = steps_done(folder)
    if done:
        print(f"kept up to step {done:,} in {folder}; the same command goes on from there", file=sys.stderr)
    else:
        print(f"nothing was kept in {folder}: the same command begins anew", file=sys.stderr)
