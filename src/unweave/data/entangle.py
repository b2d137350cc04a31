"""Theorem 1 made visible: factors that are distributed as the true ones are, and entangled with them.

Locatello et al. (2019), "Challenging common assumptions in the unsupervised learning of disentangled
representations", appendix A.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from unweave.data.dataset import Array, Dataset, Observe
from unweave.data.entanglement import EDGE, Entanglement, Floats, checked_matrix
from unweave.data.factors import FactorArray, FactorSpace, Rng
from unweave.data.rows import Table
from unweave.errors import ArgumentError

Integers = npt.NDArray[np.int64]

_MOST_ROWS = 2**24  # all of them are sorted at once, for each factor


def entangle(data: Dataset, seed: int = 0, *, matrix: npt.ArrayLike | None = None) -> Dataset:
    """The same images, row by row, with other factors: as likely as the true ones, and entangled with them.

    >>> from unweave.data import from_function
    >>> grid = from_function(["x", "y"], [9, 9], lambda factors: factors)
    >>> entangle(grid)
    Dataset(function_entangled: 81 of 2; entangled_x=9, entangled_y=9)

    The map of :class:`Entanglement` on a finite set. A discrete factor is made continuous: value k becomes

        u = P(z_i < k) + U P(z_i = k),    U uniform in [0, 1), drawn for each row and factor by ``seed``,

    which is (k + U) / n for n equally likely values. Then the normal scores are rotated, Φ⁻¹(u) -> A Φ⁻¹(u), and
    the result is made discrete again by its ranks: the rows with the lowest first score get the lowest value of
    the first factor, and so on; among the rows that share this value, the second score decides on the second
    factor, and so on. Each row thereby gets the factors of one row, and no two rows those of the same:

    - a bijection, so nothing is lost: the factors of a full grid are again the full grid, each combination once;
    - the factors have exactly the joint distribution that they had (independent, in a grid);
    - f is only approximated: where few rows share the values of the earlier factors, their ranks are coarse.

    ``matrix``: an orthogonal A without zeros, one row for each factor that varies; default :func:`householder`.
    Factors with one value stay as they are. A categorical factor counts in the order of its values; what it is
    entangled into has an order.

    Endless data whose factors are all continuous has no rows: factors f(z) give the image that z gives, with f as it
    is in :class:`Entanglement`, each factor being uniform in its range. Tables of continuous factors, and data sets
    that sample rows in their own way, are refused, as are fewer than two factors that vary.
    """
    if data.index is None and len(data.space.continuous) == data.space.num_factors:
        return _entangle_endless(data, matrix)
    table = _checked_factors(data, seed)
    varying = np.flatnonzero(np.ptp(table, axis=0) > 0)
    if len(varying) < 2:
        _refuse_few(data, len(varying))
    rotation = checked_matrix(matrix, len(varying))
    uniform = np.random.default_rng(seed).random((len(table), len(varying)))
    continuous = np.stack(
        [_dequantise(table[:, k], u) for k, u in zip(varying, uniform.T, strict=True)], axis=1
    )
    scores = ndtri(np.maximum(continuous, EDGE)) @ rotation.T
    names = [f"entangled_{n}" if k in varying else n for k, n in enumerate(data.space.names)]
    index = Table(FactorSpace(names, data.space.sizes), _hand_out(table, varying, scores))
    return data.with_parts(
        name=f"{data.name}_entangled", space=index.space, index=index, function=_by_row(data, index)
    )


def _entangle_endless(data: Dataset, matrix: npt.ArrayLike | None) -> Dataset:
    from scipy.stats import uniform

    function = data.function
    assert function is not None  # there is nothing else that endless data could be
    if data.space.num_factors < 2:
        _refuse_few(data, 1)
    ranges = np.array(data.space.sizes, np.float64)
    f = Entanglement([uniform(low, high - low) for low, high in ranges], matrix)

    def observe(factors: FactorArray, rng: Rng | None) -> Array:
        return function(np.clip(f.inverse(factors), *ranges.T), rng)

    space = FactorSpace([f"entangled_{name}" for name in data.space.names], data.space.sizes)
    return data.with_parts(name=f"{data.name}_entangled", space=space, function=observe)


def _refuse_few(data: Dataset, varying: int) -> NoReturn:
    told = f"{varying} of the factors {list(data.space.names)} vary: needs two to entangle"
    raise ArgumentError("data", data.name, told)


def _checked_factors(data: Dataset, seed: int) -> Integers:
    if data.index is None:
        told = "is endless, and some of its factors are discrete: needs rows, or continuous factors only"
        raise ArgumentError("data", data.name, told)
    if not data.space.discrete:
        allowed = f"{list(data.space.continuous)} are continuous: Entanglement takes continuous factors"
        raise ArgumentError("data", data.name, allowed)
    if data.sampler is not None:
        raise ArgumentError("data", data.name, "samples rows in its own way: needs uniform sampling")
    if len(data) > _MOST_ROWS:
        raise ArgumentError(
            "data", data.name, f"has {len(data):,} rows: {_MOST_ROWS:,} at most can be entangled"
        )
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError("seed", seed, "needs a whole number >= 0")
    return data.factors(np.arange(len(data))).astype(np.int64)


def _dequantise(values: Integers, uniform: Floats) -> Floats:
    """P(z < k) + U P(z = k) for each of the values k (n,), with their frequencies as probabilities."""
    share = np.bincount(values) / len(values)
    return np.asarray((np.cumsum(share) - share)[values] + uniform * share[values])


def _hand_out(table: Integers, varying: Integers, scores: Floats) -> Integers:
    """The rows of ``table`` (N, K) in the order that fits the scores (N, d) of the varying factors.

    The table's rows, sorted by the first factor, then the second …, are N slots. The data set's rows take
    their places among them by the first score; then, within each run of slots that agree in
    the first factor, by the second; and so on.
    """
    slots = table[np.lexsort(table.T[::-1])]
    group = np.zeros(len(table), np.int64)  # for each row the number of the run of slots where its place is
    differs = np.zeros(len(table), bool)  # whether a slot begins a new run
    place = np.arange(len(table))
    for column, score in zip(varying, scores.T, strict=True):
        place = np.lexsort((score, group))
        differs[1:] |= slots[1:, column] != slots[:-1, column]
        group[place] = np.cumsum(differs)
    handed = np.empty_like(table)
    handed[place] = slots
    return handed


def _by_row(data: Dataset, index: Table) -> Observe | None:
    """The function of a simulator, asked for the true factors of the rows that have the entangled ones."""
    function = data.function
    if function is None:
        return None

    def observe(factors: FactorArray, rng: Rng | None) -> Array:
        return function(data.factors(index.rows(factors, rng)), rng)

    return observe
