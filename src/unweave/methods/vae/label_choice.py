"""Which labels a method gets, by what a user says of them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from unweave.data import Dataset
from unweave.data.supervision.labels import Labels, labels_from_spec, labels_of
from unweave.errors import ArgumentError, unknown_name

LabelChoice = Labels | Mapping[str, Any] | str | Sequence[str] | npt.ArrayLike


def choose_labels(data: Dataset, labels: LabelChoice | None) -> Labels:
    """Labels from names of factors, an array by row, or a mapping of ``labels_of``'s arguments; None: all factors."""
    if isinstance(labels, Labels):
        return labels_from_spec(labels.spec, data, labels.array)
    if isinstance(labels, Mapping):
        known = [name for name in inspect.signature(labels_of).parameters if name != "data"]
        for key in labels:
            if key not in known:
                raise unknown_name("labels", str(key), known)
        return labels_of(data, **labels)
    if labels is None or isinstance(labels, str):
        return labels_of(data, labels)
    if isinstance(labels, list | tuple) and all(isinstance(name, str) for name in labels):
        return labels_of(data, [str(name) for name in labels])
    return labels_of(data, array=labels)


def refuse_labels(method: str, labels: LabelChoice) -> ArgumentError:
    """The error for labels that a method has no use for."""
    told = "does not learn from labels; full_vae, ivae, idvae and any method with a prior=… do"
    return ArgumentError("labels", _shown(labels), f"{method} {told}")


def _shown(value: object) -> object:
    """What was given, with the types of arrays in their place."""
    if isinstance(value, Mapping):
        return {key: _shown(entry) for key, entry in value.items()}
    return value if isinstance(value, str | list | tuple | int | float | None) else type(value).__name__
