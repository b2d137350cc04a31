"""Pairs of images that have some of their factors in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unweave.arrays import BoolArray, IntArray
from unweave.data.dataset import Dataset
from unweave.data.factors import FactorArray, FactorSpace, Rng, integers
from unweave.data.rows import Table
from unweave.errors import ArgumentError

Changed = int | Literal["random"]


def sample_pairs(
    data: Dataset, n: int, rng: Rng, *, shared: Sequence[str] | None = None, changed: Changed | None = None
) -> tuple[IntArray, IntArray] | tuple[FactorArray, FactorArray]:
    """n pairs of images that have some factors in common; give exactly one of the two:

    shared
        the names of the factors that the second image has from the first. All others are drawn anew.
    changed
        a number k: in each pair k factors, chosen uniformly and anew for each pair, are drawn anew for
        the second image and the rest are shared (Locatello et al. 2020, "Weakly-supervised
        disentanglement without compromises"). A factor drawn anew may get the same value by chance.
        "random": k is drawn for each pair, uniformly from 1 to one less than there are factors. Factors
        with one value do not count: they cannot change.

    Returns two arrays of rows (n,); for an endless simulator two arrays of factors (n, K). Where
    combinations are missing, the second image is drawn uniformly from those that share what is asked.

    Examples
    --------
    >>> factors = {"shape": [0, 0, 0, 1, 1, 1], "size": [0, 1, 2, 0, 1, 2]}
    >>> data = uw.data.from_arrays(np.zeros((6, 4), np.float32), factors)
    >>> rng = np.random.default_rng(0)
    >>> first, second = sample_pairs(data, 4, rng, shared=["shape"])
    >>> bool((data.factors(first)[:, 0] == data.factors(second)[:, 0]).all())
    True
    """
    _check_sampling(data)
    space = data.space
    redrawn = _redrawn(space, n, rng, shared, changed)
    if data.index is None:
        first = space.sample(n, rng)
        return first, np.where(redrawn, space.sample(n, rng), first)
    is_table = isinstance(data.index, Table)
    rows = data.index.sample(n, rng) if is_table else data.index.rows(space.sample(n, rng), rng)
    return rows, _partners(data, rows, redrawn, rng)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Partners for the rows of a data set, for methods that learn from pairs.

    ``k`` factors change, a number or "random", as in :func:`sample_pairs`; here at least one factor has to stay. Only
    finite data sets of discrete factors have such pairs.

    Examples
    --------
    >>> factors = {"shape": [0, 0, 0, 1, 1, 1], "size": [0, 1, 2, 0, 1, 2]}
    >>> data = uw.data.from_arrays(np.zeros((6, 4), np.float32), factors)
    >>> rng = np.random.default_rng(0)
    >>> partners, changed = Pairs(data, 1).partners(np.array([0, 5]), rng)
    >>> changed.sum(axis=1)
    array([1, 1])
    """

    data: Dataset
    k: Changed

    def __post_init__(self) -> None:
        name, space = self.data.name, self.data.space
        if not space:
            raise ArgumentError("data", name, "has no factors: pairs that share some need them")
        if not space.discrete:
            names = ", ".join(space.continuous)
            raise ArgumentError("data", name, f"has continuous factors ({names}): pairs need discrete ones")
        varied = len(_varied(space))
        if varied < 2:
            reason = (
                "has one factor"
                if space.num_factors == 1
                else "has fewer than two factors of more than one value"
            )
            raise ArgumentError("data", name, f"{reason}: in a pair one changes and another is shared")
        _check_sampling(self.data)
        _check_changed("k", self.k, varied - 1, varied)

    def partners(self, rows: IntArray, rng: Rng) -> tuple[IntArray, BoolArray]:
        """For rows (n,) the rows of their partners (n,), and which factors were drawn anew, (n, K)."""
        redrawn = _redrawn(self.data.space, len(rows), rng, None, self.k)
        return _partners(self.data, rows, redrawn, rng), redrawn


def _partners(data: Dataset, rows: IntArray, redrawn: BoolArray, rng: Rng) -> IntArray:
    """For each row another that differs from it in the redrawn factors (n, K) only, or not at all."""
    space, index = data.space, data.index
    if not isinstance(index, Table):
        return data.rows(np.where(redrawn, space.sample(len(rows), rng), data.factors(rows)), rng)
    partners = np.empty_like(rows)
    subsets, which = np.unique(redrawn, axis=0, return_inverse=True)
    for number, subset in enumerate(subsets):
        pairs = np.flatnonzero(which.reshape(-1) == number)
        common = tuple(name for name, anew in zip(space.names, subset, strict=True) if not anew)
        partners[pairs] = index.partners(rows[pairs], common, rng)
    return partners


def _redrawn(
    space: FactorSpace, n: int, rng: Rng, shared: Sequence[str] | None, changed: Changed | None
) -> BoolArray:
    """Which factors of which pair are drawn anew, (n, K)."""
    if (shared is None) == (changed is None):
        raise ArgumentError("shared, changed", (shared, changed), "give exactly one of the two")
    space.check_fixed(n, None)
    if shared is not None:
        if isinstance(shared, str):
            raise ArgumentError("shared", shared, "needs a list of factor names")
        common = {space.position(name) for name in shared}
        anew = [column not in common for column in range(space.num_factors)]
        return np.broadcast_to(np.array(anew, dtype=bool), (n, space.num_factors))
    assert changed is not None
    varied = _varied(space)
    _check_changed("changed", changed, len(varied), len(varied))
    # The ranks of independent uniform numbers are a uniform permutation.
    order = np.argsort(rng.random((n, len(varied))), axis=1)
    count = 1 + integers(rng, len(varied) - 1, n)[:, None] if isinstance(changed, str) else changed
    redrawn = np.zeros((n, space.num_factors), dtype=bool)
    redrawn[:, varied] = np.argsort(order, axis=1) < count
    return redrawn


def _varied(space: FactorSpace) -> list[int]:
    """The factors that can change: those with more than one value."""
    return [column for column, size in enumerate(space.sizes) if size != 1]


def _check_changed(name: str, changed: object, most: int, num_factors: int) -> None:
    if isinstance(changed, str):
        allowed = changed == "random" and num_factors > 1
    else:
        is_count = isinstance(changed, int | np.integer) and not isinstance(changed, bool)
        allowed = is_count and 1 <= changed <= most  # type: ignore[operator]
    if not allowed:
        raise ArgumentError(name, changed, f"needs a whole number from 1 to {most}, or 'random'")


def _check_sampling(data: Dataset) -> None:
    if data.sampler is not None:
        raise ArgumentError("data", data.name, "samples rows in its own way: pairs need uniform sampling")
    data.check_labelled("pairs that share some factors")
