"""A finished run as a model that others can load: small weights, a card with scores, pictures and checksums."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from unweave.data import Dataset
from unweave.data.files.checksum import sha256_of
from unweave.data.registry import load_described
from unweave.errors import ArgumentError, DataError
from unweave.figures import factor_traversals, reconstructions, save_picture, traversals
from unweave.figures.model_pictures import can_reconstruct
from unweave.figures.traversal import can_traverse
from unweave.files import scratch_folder, write_bytes
from unweave.methods.method import Decodes, Encodes, Method
from unweave.training import Run, load
from unweave.training.checkpoint import save_weights
from unweave.training.manifest import MANIFEST, Manifest
from unweave.training.run import HISTORY, SPEC, WEIGHTS
from unweave.zoo.card import Card, Evaluation
from unweave.zoo.command import command_of
from unweave.zoo.evaluate import FULL, METRICS, QUICK, scores_of

LARGEST_CHANGE = 0.005  # of a score, for which 16 bits are enough
_LATENTS = 10  # rows of the picture of traversals
_IMAGE = 3  # the seed of the image that the factors are moved in


def publish(
    run: Run | Path | str,
    name: str,
    to: Path | str,
    summary: str = "",
    *,
    data: Dataset | None = None,
    metrics: Sequence[str] = METRICS,
    dtype: Literal["auto", "float16", "float32"] = "auto",
    full: Evaluation = FULL,
    quick: Evaluation = QUICK,
) -> Card:
    """Write a finished run as a published model: a folder for a web server, or a repository at Hugging Face.

    It holds spec.yaml, weights.safetensors, history.jsonl, card.json, pictures, and manifest.json with the checksums of
    them all. The card's scores are of the weights in the file, not of those that were trained.

    Parameters
    ----------
    run
        the run, or its directory.
    name
        of the model, as in "dsprites/vae".
    to
        the folder of all models; this one is written to ``to/NAME``, in the place of an earlier one.
    summary
        a sentence for the card.
    data
        the data set of the run; None: it is loaded by its name.
    metrics
        those of the card, as far as they apply to the data.
    dtype
        of the weights in the file. "auto": 16 bits, unless a quick score then moves by more than 0.005.
    full, quick
        the settings of the card's evaluations.

    Returns
    -------
    Card
        as written.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1), np.uint8)
    >>> data = uw.data.from_arrays(images, {"a": np.arange(40) % 2}, name="noise")
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> run = uw.train(method, data, steps=2, out="run", pictures=False)
    >>> small = uw.zoo.Evaluation("paper", 0, 20, 10, {}, {})
    >>> card = uw.zoo.publish(run, "noise/vae", "models", data=data, metrics=["mig"], full=small, quick=small)
    >>> card.dtype, card.pictures
    ('float16', ['reconstructions.png', 'traversals.png'])
    >>> uw.load("models/noise/vae").step
    2
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9_]+/[a-z0-9_]+", name):
        raise ArgumentError("name", name, "needs DATA/METHOD, in small letters, digits and _")
    target = Path(to) / name
    if target.exists() and not (target / MANIFEST).exists():
        raise ArgumentError("to", str(target), "is there already, and is not a published model")
    trained = run if isinstance(run, Run) else load(run)
    if trained.path is None or not trained.finished:
        raise ArgumentError("run", trained, "needs a finished run with a directory")
    if data is None:
        data = load_described(trained.spec.data, trained.spec.folder)
    before = scores_of(trained, data, quick, metrics)
    with scratch_folder() as scratch:
        folder = scratch / "model"
        players = _only_for_training(trained.method)
        kind, loaded, after = "float32", None, before
        for kind in ("float16", "float32") if dtype == "auto" else (dtype,):
            loaded = _write_weights(trained, folder, kind, players)
            after = scores_of(loaded, data, quick, metrics)
            if _change(before, after) <= LARGEST_CHANGE:
                break
        assert loaded is not None
        pictures = _draw(loaded.method, data, folder)
        card = Card(
            name=name,
            summary=summary,
            command=command_of(trained.spec),
            steps=trained.step,
            sha256=sha256_of(folder / WEIGHTS),
            dtype=kind,  # type: ignore[arg-type]
            change=_change(before, after),
            num_weights=_count(loaded.method, players),
            left_out=players,
            full=scores_of(loaded, data, full, metrics),
            quick=after,
            pictures=pictures,
        )
        card.write(folder)
        Manifest.of(folder).write(folder)
        _move(folder, target)
    return replace(card, address=str(target), folder=target)


def _write_weights(run: Run, folder: Path, kind: str, players: Sequence[str]) -> Run:
    """The run in a folder, with weights of this kind; as it is loaded from there."""
    assert run.path is not None
    folder.mkdir(exist_ok=True)
    replace(run.spec, folder={}).write(folder / SPEC)  # where the user's images are is nobody else's business
    if (run.path / HISTORY).exists():
        write_bytes(folder / HISTORY, (run.path / HISTORY).read_bytes())
    dtype = torch.float16 if kind == "float16" else None
    save_weights(
        folder / WEIGHTS,
        run.method,
        run.spec,
        run.step,
        dtype=dtype,
        left_out=_names_of(run.method, players),
    )
    return load(folder)


def _only_for_training(method: Method) -> list[str]:
    """The players whose weights neither encode nor decode: the adversaries of a method that does both."""
    if not (isinstance(method, Encodes) and isinstance(method, Decodes)):
        return []
    return [player.name for player in method.players() if player.name != "model"]


def _names_of(method: Method, players: Sequence[str]) -> list[str]:
    """The names of the weights of players that no other player moves."""
    theirs = {
        id(weight) for player in method.players() if player.name in players for weight in player.parameters
    }
    others = {
        id(weight)
        for player in method.players()
        if player.name not in players
        for weight in player.parameters
    }
    return [name for name, weight in method.named_parameters() if id(weight) in theirs - others]


def _count(method: Method, players: Sequence[str]) -> int:
    left_out = set(_names_of(method, players))
    return sum(tensor.numel() for name, tensor in method.state_dict().items() if name not in left_out)


def _change(before: Evaluation, after: Evaluation) -> float:
    """The largest difference of two evaluations; of scores larger than 1, relative to them."""
    return max(
        (abs(after.scores[name] - value) / max(1.0, abs(value)) for name, value in before.scores.items()),
        default=0.0,
    )


def _draw(method: Method, data: Dataset, folder: Path) -> list[str]:
    """Reconstructions and traversals, as far as the method and the data can; the names of the files."""
    pictures = {}
    if can_reconstruct(method):
        pictures["reconstructions.png"] = reconstructions(method, data)
    if can_traverse(method):
        pictures["traversals.png"] = traversals(method, data, columns=9, at_most=_LATENTS)
    if can_reconstruct(method) and _has_factors(data):
        pictures["factors.png"] = factor_traversals(method, data, seed=_IMAGE)
    for name, picture in pictures.items():
        save_picture(
            picture.convert("RGB").quantize(256), folder / name
        )  # a third of the bytes; grey is as it was
    return list(pictures)


def _has_factors(data: Dataset) -> bool:
    """Whether there are factors to tell apart: a class alone is none."""
    return bool(data.finite and data.space and data.space.discrete and len(data.space.names) > 1)


def _move(folder: Path, target: Path) -> None:
    """Put a complete folder into the place of an earlier one."""
    aside = target.with_name(f".{target.name}-before")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        complete = target.with_name(f".{target.name}-complete")
        shutil.rmtree(complete, ignore_errors=True)
        names = [*Manifest.read(folder / MANIFEST).files, MANIFEST]
        for name in names:
            write_bytes(complete / name, (folder / name).read_bytes())
        if target.exists():
            target.replace(aside)
        complete.replace(target)
    except OSError as error:
        raise DataError(f"{target}: cannot be written ({error.strerror or error})") from error
    shutil.rmtree(aside, ignore_errors=True)
