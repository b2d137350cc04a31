"""Checks of labels u that are handed to a method."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from unweave.arrays import as_array
from unweave.errors import ArgumentError
from unweave.methods.vae.label_distribution import LabelLayout

_HINT = "method.labels_for(data).known(rows) gives labels as the method learned from them"


def check_shape(given: Tensor | npt.ArrayLike | None, layout: LabelLayout, n: int, method: str) -> Tensor:
    """Labels as a tensor (n, d); refuses None and other shapes."""
    u = given if given is None or isinstance(given, Tensor) else _as_tensor(given)
    wanted = (n, layout.width)
    if u is None or tuple(u.shape) != wanted:
        told = None if u is None else f"a tensor of shape {tuple(u.shape)}"
        names = ", ".join(column.name for column in layout.columns)
        raise ArgumentError("u", told, f"{method} needs labels of shape {wanted} ({names}); {_HINT}")
    return u


def check_entries(u: Tensor, layout: LabelLayout, method: str, may_lack: bool) -> None:
    """Refuse entries outside [0, 1], and NaN in a part of a one-hot label, or anywhere unless labels ``may_lack``."""
    wrong = (u < 0) | (u > 1)
    if wrong.any():
        row, entry = wrong.nonzero()[0].tolist()
        raise ArgumentError(f"u[{row}, {entry}]", u[row, entry].item(), f"needs 0 to 1, or NaN; {_HINT}")
    missing = u.isnan()
    if not missing.any():
        return
    if not may_lack:
        raise ArgumentError("u", "NaN", f"{method} has no q(u|x) to predict missing labels; {_HINT}")
    partly = missing != layout.entries(missing[:, layout.starts])
    if partly.any():
        row, entry = partly.nonzero()[0].tolist()
        name = layout.names[entry]
        told = f"all entries of {name!r} are NaN, or none"
        raise ArgumentError(f"u[{row}, {entry}]", u[row, entry].item(), f"{told}; {_HINT}")


def _as_tensor(u: npt.ArrayLike) -> Tensor:
    """Labels that are an array, or lists of numbers."""
    given = as_array(u, "u")
    if given.dtype.kind not in "biuf":
        raise ArgumentError("u", f"{given.dtype} array of shape {given.shape}", "needs numbers")
    return torch.from_numpy(given.astype(np.float64))
