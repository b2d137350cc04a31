"""The card of a published model: what it is, how it was trained, and its scores."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from unweave.errors import ArgumentError, DataError, UnweaveError
from unweave.files import MEGABYTE, read_json, write_text
from unweave.parameters import Count, Natural, Seed, check_arguments, check_value
from unweave.training import RunSpec, resolve
from unweave.training.addresses import packaged_models
from unweave.training.run import SPEC

CARD = "card.json"
_FORMAT = 1


@dataclass(frozen=True)
class Evaluation:
    """Scores, and all that is needed to compute them again: arguments of :func:`unweave.evaluate`.

    Parameters
    ----------
    protocol, seed, num_train, num_test
        as there.
    params
        parameters of single metrics that differ from the protocol's.
    scores
        by metric, or metric and part: {"dci": 0.41, "dci.completeness": 0.38}.

    Examples
    --------
    >>> Evaluation("paper", 0, 1000, 500, {}, {"mig": 0.25}).metrics
    ['mig']
    """

    protocol: Literal["paper", "dlib"]
    seed: Seed
    num_train: Count
    num_test: Count
    params: dict[str, Any]
    scores: dict[str, float]

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics."""
        return list(dict.fromkeys(name.partition(".")[0] for name in self.scores))


@dataclass(frozen=True)
class Card:
    """What a published model is.

    Parameters
    ----------
    name
        of the model, DATA/METHOD.
    summary
        a sentence or two.
    command
        that trains it again; None where no command can.
    steps
        how many it was trained for.
    sha256
        of its weights.
    dtype
        of the numbers in the file of weights.
    change
        the largest difference between a quick score of these numbers and of those that were trained, in 32 bits.
    num_weights
        how many weights there are in the file.
    left_out
        the players of the method whose weights are not in it, since only training needs them.
    full, quick
        the scores by the whole protocol, and by one with few points, which takes seconds.
    pictures
        the names of the files.
    address
        what :func:`unweave.load` takes; no part of the file.

    Examples
    --------
    >>> card = uw.zoo.card("dsprites/beta_tcvae")
    >>> card.spec.method.name, card.dtype
    ('beta_tcvae', 'float16')
    """

    name: str
    summary: str
    command: str | None
    steps: Natural
    sha256: str
    dtype: Literal["float16", "float32"]
    change: float
    num_weights: Natural
    left_out: list[str]
    full: Evaluation
    quick: Evaluation
    pictures: list[str]
    address: str = ""
    folder: Path = Path()

    @property
    def spec(self) -> RunSpec:
        """The spec of the run: the method, the data and the training."""
        return RunSpec.read(self.folder / SPEC)

    def write(self, folder: Path) -> None:
        """Write card.json into a folder."""
        content = {"format": _FORMAT, **asdict(self)}
        del content["address"], content["folder"]
        write_text(folder / CARD, json.dumps(content, indent=1, allow_nan=False) + "\n")

    @staticmethod
    def read(folder: Path, address: str = "") -> Card:
        """The card in a folder, which may be a stranger's: types are checked."""
        path = folder / CARD
        try:
            content = read_json(path, MEGABYTE)
            if content.pop("format", None) != _FORMAT:
                raise DataError(f"{path}: not a card of format {_FORMAT}")
            for name in ("full", "quick"):
                content[name] = _evaluation(name, content.get(name))
            values = check_arguments(Card, content, "key of the card")
            for name, kind in (("left_out", list[str]), ("pictures", list[str]), ("summary", str)):
                check_value(name, content.get(name), kind)
            return Card(**{**values, "address": address or str(folder), "folder": folder})
        except FileNotFoundError as error:
            raise DataError(f"{folder}: has no card ({CARD}): it is not a published model") from error
        except DataError:
            raise
        except (UnweaveError, TypeError) as error:
            raise DataError(f"{path}: not a card of a model ({error})") from error


def names() -> list[str]:
    """The names of the models that come with the package.

    Examples
    --------
    >>> "dsprites/beta_tcvae" in uw.zoo.names()
    True
    """
    return list(packaged_models())


def card(name: str) -> Card:
    """The card of a model.

    Parameters
    ----------
    name
        of a model that comes with the package, or any address that :func:`unweave.load` takes.

    Examples
    --------
    >>> uw.zoo.card("dsprites/beta_tcvae").spec.data["name"]
    'dsprites'
    """
    address = address_of(name)
    return Card.read(resolve(address), address)


def address_of(name: str) -> str:
    """The address of a model: ``zoo:NAME`` for a name of one that comes with the package.

    Examples
    --------
    >>> address_of("dsprites/vae"), address_of("hf://user/name")
    ('zoo:dsprites/vae', 'hf://user/name')
    """
    if not isinstance(name, str):
        raise ArgumentError("name", name, "needs the name of a model, or its address")
    is_address = ":" in name or Path(name).is_dir()
    return name if is_address else f"zoo:{name}"


def _evaluation(name: str, given: Any) -> Evaluation:
    if not isinstance(given, Mapping):
        raise ArgumentError(name, given, "needs a mapping")
    values = check_arguments(Evaluation, given, f"key of {name}")
    for key in ("params", "scores"):
        if not isinstance(given.get(key), dict):
            raise ArgumentError(f"{name}: {key}", given.get(key), "needs a mapping")
    for key, value in given["scores"].items():
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise ArgumentError(f"{name}: {key}", value, "needs a number")
    return Evaluation(**values)
