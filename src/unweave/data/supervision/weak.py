"""Weak supervision: few labels, and factors that are correlated. Pairs are in ``pairs.py``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unweave.arrays import ArrayLike, BoolArray, FloatArray, IntArray
from unweave.data.dataset import Dataset, Sampler
from unweave.data.factors import FactorSpace, Rng, check_rows, integers
from unweave.data.rows import Grid
from unweave.errors import ArgumentError

_MOST_ROWS = 2**28  # a permutation of more rows takes gigabytes


@dataclass(frozen=True, eq=False)
class LabelledSubset:
    """The rows of a data set whose factors a method may see: ``rows``, sorted, all different.

    Examples
    --------
    >>> LabelledSubset(np.array([2, 5])).contains([1, 2, 5])
    array([False,  True,  True])
    """

    rows: IntArray

    def __len__(self) -> int:
        return len(self.rows)

    def contains(self, rows: ArrayLike) -> BoolArray:
        """For each of the rows (n,) whether it is labelled, (n,)."""
        asked = check_rows(rows, 2**63 - 1)
        nearest = np.minimum(np.searchsorted(self.rows, asked), len(self.rows) - 1)
        return np.asarray(self.rows[nearest] == asked, dtype=bool)

    def sample(self, n: int, rng: Rng) -> IntArray:
        """n labelled rows, drawn uniformly with replacement."""
        return self.rows[integers(rng, len(self.rows), n)]


def labelled_subset(
    data: Dataset,
    fraction: float | None = None,
    *,
    count: int | None = None,
    seed: int = 0,
    among: BoolArray | None = None,
) -> LabelledSubset:
    """A fixed random part of the rows, for methods that learn from few labels.

    Its size is ``count``, or ``fraction`` of the data set rounded to the nearest row, at least one. The
    rows are the first of a permutation that depends on ``seed`` alone: with the same seed, a larger
    subset contains the smaller ones. ``among`` (n,): those that can be chosen; None: all.

    Examples
    --------
    >>> factors = {"shape": [0, 0, 0, 1, 1, 1], "size": [0, 1, 2, 0, 1, 2]}
    >>> data = uw.data.from_arrays(np.zeros((6, 4), np.float32), factors)
    >>> len(labelled_subset(data, 0.5))
    3
    """
    if not data.finite:
        raise ArgumentError("data", data.name, "is endless: it has no rows of which some could be labelled")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError("seed", seed, "needs a whole number >= 0")
    total = len(data)
    if total > _MOST_ROWS:
        raise ArgumentError(
            "data", data.name, f"has {total:,} rows: subsets can be chosen of {_MOST_ROWS:,} at most"
        )
    size = _subset_size(total, fraction, count)
    order = np.random.default_rng(seed).permutation(total)
    if among is not None:
        order = order[_checked_rows(among, total)[order]]
        if size > len(order):
            name, value = ("fraction", fraction) if count is None else ("count", count)
            raise ArgumentError(name, value, f"is {size:,} rows, and {len(order):,} can be chosen")
    rows = np.sort(order[:size]).astype(np.int64)
    rows.setflags(write=False)
    return LabelledSubset(rows)


def correlate(data: Dataset, first: str, second: str, strength: float) -> Dataset:
    """The same data set, sampled so that two ordered discrete factors are correlated.

    With the values a and b of the two factors scaled to [0, 1] (index / (size - 1)),

        p(a, b) ∝ exp(-(a - b)² / (2 strength²)),

    and all other factors uniform: Träuble et al. 2021, "On disentangled representations learned from
    correlated data". ``strength`` is their σ: the *smaller*, the stronger the correlation. In a data
    set that lacks combinations, each of its images is drawn with this weight.

    Only sampling changes: rows, their factors and their images stay as they are.

    Examples
    --------
    >>> factors = {"x": np.repeat(np.arange(8), 8), "y": np.tile(np.arange(8), 8)}
    >>> data = uw.data.from_arrays(np.zeros((64, 4), np.float32), factors)
    >>> x, y = correlate(data, "x", "y", 0.1).sample_factors(1000, np.random.default_rng(0)).T
    >>> bool(np.corrcoef(x, y)[0, 1] > 0.9)
    True
    """
    if not isinstance(strength, int | float | np.number) or not (math.isfinite(strength) and strength > 0):
        raise ArgumentError("strength", strength, "needs a finite number > 0")
    if data.index is None:
        raise ArgumentError("data", data.name, "is endless: only rows can be drawn in a correlated way")
    if data.sampler is not None:
        raise ArgumentError("data", data.name, "samples rows in its own way already")
    data.check_labelled("correlated factors")
    if first == second:
        raise ArgumentError("second", second, "needs a factor other than the first")
    sizes = _ordered_size(data.space, "first", first), _ordered_size(data.space, "second", second)
    a, b = np.indices(sizes)
    distance = np.abs(a / (sizes[0] - 1) - b / (sizes[1] - 1))
    if isinstance(data.index, Grid):
        return data.with_parts(
            sampler=_grid_sampler(data.index.space, first, second, distance, float(strength))
        )
    values = data.factors(np.arange(len(data)))[:, [data.space.position(first), data.space.position(second)]]
    by_row = distance[tuple(values.astype(np.int64).T)]
    return data.with_parts(sampler=_row_sampler(by_row, float(strength)))


def _grid_sampler(
    space: FactorSpace, first: str, second: str, distance: FloatArray, strength: float
) -> Sampler:
    cumulative = _cumulative(distance, strength)

    def sample(n: int, rng: Rng) -> IntArray:
        pair = np.searchsorted(cumulative, rng.random(n), side="right")
        a, b = np.unravel_index(pair, distance.shape)
        return space.rows(space.sample(n, rng, {first: a, second: b}))

    return sample


def _row_sampler(distance: FloatArray, strength: float) -> Sampler:
    cumulative = _cumulative(distance, strength)

    def sample(n: int, rng: Rng) -> IntArray:
        return np.searchsorted(cumulative, rng.random(n), side="right").astype(np.int64)

    return sample


def _cumulative(distance: FloatArray, strength: float) -> FloatArray:
    """Cumulative probabilities, over the flattened array, of weights exp(-distance² / (2 strength²)).

    Weights are relative to the largest: however small ``strength`` is, they do not all vanish.
    """
    excess = distance**2 - distance.min() ** 2
    with np.errstate(over="ignore"):
        sums = np.cumsum(np.exp(-(excess / strength / strength) / 2))
    return np.asarray(sums / sums[-1])


def _ordered_size(space: FactorSpace, argument: str, name: str) -> int:
    size = space.sizes[space.position(name)]
    if isinstance(size, tuple) or not space.is_ordered(name):
        kind = "continuous" if isinstance(size, tuple) else "categorical"
        raise ArgumentError(argument, name, f"is {kind}: needs an ordered discrete factor")
    if size < 2:
        raise ArgumentError(argument, name, "has only one value: needs at least two")
    return size


def _checked_rows(among: BoolArray, total: int) -> BoolArray:
    given = np.asarray(among)
    if given.dtype != bool or given.shape != (total,):
        value = f"{given.dtype} array of shape {given.shape}"
        raise ArgumentError("among", value, f"needs a boolean for each of the {total:,} rows")
    return given


def _subset_size(total: int, fraction: float | None, count: int | None) -> int:
    if (fraction is None) == (count is None):
        raise ArgumentError("fraction, count", (fraction, count), "give exactly one of the two")
    if count is not None:
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= total:
            raise ArgumentError("count", count, f"needs a whole number from 1 to {total}")
        return int(count)
    if not isinstance(fraction, int | float | np.number) or not 0 < fraction <= 1:
        raise ArgumentError("fraction", fraction, "needs 0 < fraction <= 1")
    return max(1, round(float(fraction) * total))
