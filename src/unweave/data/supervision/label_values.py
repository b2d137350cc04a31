"""The numbers of labels: replacing some at random, binning, and encoding as u."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
LabelArray = npt.NDArray[np.float32]
Sizes = Sequence[int | None]


@dataclass(frozen=True)
class LabelColumn:
    """One label: ``size`` values 0 .. size - 1, or a number in [0, 1] (None); in u ``one_hot`` or as one number."""

    name: str
    size: int | None
    one_hot: bool

    @property
    def width(self) -> int:
        """How many entries of u it takes."""
        return self.size if self.one_hot and self.size is not None else 1


def encode(values: Values, columns: Sequence[LabelColumn]) -> LabelArray:
    """Values (n, K) to u (n, d); NaN in one label makes all its entries NaN."""
    u = np.empty((len(values), sum(column.width for column in columns)), np.float32)
    start = 0
    for column, value in zip(columns, values.T, strict=True):
        block = u[:, start : start + column.width]
        if column.one_hot:
            block[:] = value[:, None] == np.arange(column.width)
            block[np.isnan(value)] = np.nan
        else:
            block[:, 0] = value / (column.size or 1)
        start += column.width
    return u


def bin_values(values: Values, sizes: Sizes, bins: int | None) -> Values:
    """At most ``bins`` values per label: floor(value * bins / size), and floor(value * bins) of those in [0, 1]."""
    if bins is None:
        return values
    out = values.copy()
    for column, size in enumerate(sizes):
        if size is None or size > bins:
            scaled = values[:, column] * bins / (size or 1)
            out[:, column] = np.minimum(np.floor(scaled), bins - 1)  # 1.0 is in the last bin; NaN stays
    return out


def replace_some(values: Values, rows: npt.NDArray[Any], sizes: Sizes, noise: float, seed: int) -> Values:
    """Each label, with probability ``noise``, replaced by a uniform draw: a function of (seed, row, column)."""
    out = values.copy()
    for column, size in enumerate(sizes):
        hit = _uniform(rows, 2 * column, seed) < noise
        drawn = _uniform(rows, 2 * column + 1, seed)
        new = drawn if size is None else np.floor(drawn * size)
        out[:, column] = np.where(hit & ~np.isnan(values[:, column]), new, values[:, column])
    return out


def _uniform(rows: npt.NDArray[Any], stream: int, seed: int) -> Values:
    """A number in [0, 1) for each row, by the finaliser of SplitMix64: no table of all rows is needed."""
    key = (seed * 0x9E3779B97F4A7C15 + stream * 0x8CB92BA72F3D8DD7 + 1) % 2**64
    mixed = rows.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03) + np.uint64(key)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2**53
