"""The row index of a data set: which row shows which factors. A full grid, or any table."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Protocol

import numpy as np

from unweave.arrays import ArrayLike, BoolArray, IntArray
from unweave.data.factors import FactorArray, FactorSpace, Fixed, Rng, check_rows, integers
from unweave.errors import ArgumentError

_MOST_GROUPS = 64  # sorted views that a table keeps, one for each set of factors that was asked for


class RowIndex(Protocol):
    """From rows to factors and back, for a finite data set, and sampling of rows."""

    @property
    def ambiguous(self) -> bool:
        """Whether several rows may show the same factors, so that a random source must choose."""

    def __len__(self) -> int: ...

    def factors(self, rows: ArrayLike) -> FactorArray: ...

    def rows(self, factors: ArrayLike, rng: Rng | None = None) -> IntArray: ...

    def sample(self, n: int, rng: Rng, fixed: Fixed | None = None) -> IntArray: ...


class Grid:
    """Every combination of the factors' values, once, in C order.

    Examples
    --------
    >>> grid = Grid(uw.data.FactorSpace(["shape", "scale"], [3, 4]))
    >>> grid.factors([0, 5])
    array([[0, 0],
           [1, 1]])
    >>> grid.rows([[2, 3]])
    array([11])
    """

    ambiguous = False

    def __init__(self, space: FactorSpace) -> None:
        self.space = space

    def __len__(self) -> int:
        return len(self.space)

    def factors(self, rows: ArrayLike) -> FactorArray:
        return self.space.factors(rows)

    def rows(self, factors: ArrayLike, rng: Rng | None = None) -> IntArray:
        return self.space.rows(factors)

    def sample(self, n: int, rng: Rng, fixed: Fixed | None = None) -> IntArray:
        if not fixed:
            return integers(rng, len(self), n)
        return self.space.rows(self.space.sample(n, rng, fixed))


class Table:
    """Rows with factors as listed: combinations may be missing, or be shown by several rows.

    Parameters
    ----------
    space
        the factors.
    factors
        those of each row, (N, K); NaN: not known. Rows are asked for by factors among those that have them.

    Examples
    --------
    >>> table = Table(uw.data.FactorSpace(["shape", "scale"], [3, 4]), [[0, 1], [2, 3], [0, 2]])
    >>> table.rows([[2, 3]])
    array([1])
    >>> table.complete, table.copies
    (False, 1)
    """

    def __init__(self, space: FactorSpace, factors: ArrayLike) -> None:
        self.space = space
        self.table = space.check(factors, unknown=True)
        self._groups: dict[tuple[str, ...], _Groups] = {}

    @property
    def ambiguous(self) -> bool:
        return not self.space.discrete or self._grouped(self.space.names).largest > 1

    @property
    def complete(self) -> bool:
        """Whether every combination of the factors' values is shown by some row."""
        return self.space.discrete and len(self._grouped(self.space.names).keys) == len(self.space)

    @property
    def copies(self) -> int | None:
        """How many rows show each combination of factors that is shown; None if not equally many do."""
        groups = self._grouped(self.space.names) if self.space.discrete else None
        return groups.largest if groups is not None and groups.equal else None

    @cached_property
    def unknown(self) -> BoolArray | None:
        """Which factors (N, K) are not known; None where all are."""
        missing = np.isnan(self.table) if self.table.dtype.kind == "f" else np.zeros(0, bool)
        return missing if missing.any() else None

    def labelled(self, names: tuple[str, ...] | None = None) -> IntArray:
        """The rows whose factors of these names, by default all, are known."""
        if self.unknown is None:
            return np.arange(len(self))
        columns = [self.space.position(name) for name in (self.space.names if names is None else names)]
        return np.flatnonzero(~self.unknown[:, columns].any(axis=1)).astype(np.int64)

    def __len__(self) -> int:
        return len(self.table)

    def factors(self, rows: ArrayLike) -> FactorArray:
        return self.table[check_rows(rows, len(self))]

    def rows(self, factors: ArrayLike, rng: Rng | None = None) -> IntArray:
        """A row for each of the factors (n, K); where several fit, ``rng`` chooses one uniformly."""
        if not self.space.discrete:
            names = list(self.space.continuous)
            raise ArgumentError("factors", names, "images of continuous factors are asked for by row")
        return self._grouped(self.space.names).choose(self.space.check(factors).astype(np.int64), rng)

    def copy(self, factors: ArrayLike, number: IntArray) -> IntArray:
        """The row for each of the factors (n, K) that is ``number`` (n,), from 0 on, among those that fit."""
        return self._grouped(self.space.names).pick(self.space.check(factors).astype(np.int64), number)

    def sample(self, n: int, rng: Rng, fixed: Fixed | None = None) -> IntArray:
        """Rows drawn uniformly with replacement, among those that have the ``fixed`` values."""
        if not fixed:
            return integers(rng, len(self), n)
        given = self.space.check_fixed(n, fixed)
        names = tuple(name for name in self.space.names if name in given)
        wanted = np.stack([given[name] for name in names], axis=1)
        return self._grouped(names).choose(wanted.astype(np.int64), rng)

    def partners(self, rows: IntArray, shared: tuple[str, ...], rng: Rng) -> IntArray:
        """For each row another draw of a row that has the same values of the ``shared`` factors."""
        if not shared:
            return integers(rng, len(self), len(rows))
        columns = [self.space.position(name) for name in shared]
        return self._grouped(shared).choose(self.table[rows][:, columns].astype(np.int64), rng)

    def _grouped(self, names: tuple[str, ...]) -> _Groups:
        if names not in self._groups:
            if len(self._groups) >= _MOST_GROUPS:
                self._groups.pop(next(iter(self._groups)))
            for name in names:
                self.space.size(name)  # refuses a continuous factor
            columns = [self.space.position(name) for name in names]
            rows = self.labelled(names)
            self._groups[names] = _Groups(names, self.table[rows][:, columns].astype(np.int64), rows)
        return self._groups[names]


class _Groups:
    """Rows (n,) of a table sorted by their values (n, columns) of some factors, so that choosing needs no
    search through the table: group g holds ``order[start[g] : start[g] + count[g]]``."""

    def __init__(self, names: tuple[str, ...], values: IntArray, rows: IntArray) -> None:
        self.names = names
        self.keys, group, self.count = np.unique(values, axis=0, return_inverse=True, return_counts=True)
        self.order = rows[np.argsort(group.reshape(-1), kind="stable")]
        self.start = np.concatenate([[0], np.cumsum(self.count)[:-1]]).astype(np.int64)
        self.largest = int(self.count.max()) if len(self.count) else 0
        self.equal = bool((self.count == self.largest).all())
        self.radix = (values.max(axis=0) + 1) if len(values) else np.ones(len(names), np.int64)

    @cached_property
    def flat(self) -> IntArray:
        """Each key as one number: keys are sorted, so these are too."""
        if math.prod(self.radix.tolist()) >= 2**63:
            raise ArgumentError(
                "factors", list(self.names), "too many combinations to search: name fewer factors"
            )
        return self._flatten(self.keys)

    def choose(self, wanted: IntArray, rng: Rng | None) -> IntArray:
        """A row for each of the values (n, columns); where several fit, drawn uniformly."""
        group = self._find(wanted)
        if self.largest == 1 or not len(wanted):
            return self.order[self.start[group]]
        if rng is None:
            raise ArgumentError(
                "rng", None, "several images show the same factors: pass a random source to choose"
            )
        if self.equal and isinstance(rng, np.random.RandomState):
            # The draw of disentanglement_lib for a factor that is not observed: its stream is part of a protocol.
            number = integers(rng, self.largest, len(group))
        else:
            number = np.floor(rng.random(len(group)) * self.count[group]).astype(np.int64)
        rows: IntArray = self.order[self.start[group] + number]
        return rows

    def pick(self, wanted: IntArray, number: IntArray) -> IntArray:
        """The row that is ``number`` (n,) among those with the values (n, columns)."""
        rows: IntArray = self.order[self.start[self._find(wanted)] + number]
        return rows

    def _find(self, wanted: IntArray) -> IntArray:
        """The group of each of the values (n, columns)."""
        known: BoolArray = np.all(wanted < self.radix, axis=1)
        keys = self.flat
        flat = self._flatten(np.where(known[:, None], wanted, 0))
        group: IntArray = np.minimum(np.searchsorted(keys, flat), max(len(keys) - 1, 0)).astype(np.int64)
        exists = known & (keys[group] == flat) if len(keys) else np.zeros(len(wanted), bool)
        if not exists.all():
            missing = dict(zip(self.names, wanted[~exists][0].tolist(), strict=True))
            raise ArgumentError("factors", missing, "the data set has no image of this combination")
        return group

    def _flatten(self, values: IntArray) -> IntArray:
        flat = np.zeros(len(values), np.int64)
        for column, radix in enumerate(self.radix):
            flat = flat * radix + values[:, column]
        return flat
