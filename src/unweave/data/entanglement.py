"""Theorem 1: factors that are distributed as the true ones are, and entangled with all of them.

Locatello et al. (2019), "Challenging common assumptions in the unsupervised learning of disentangled
representations", appendix A. :func:`entangle` does it to the factors of a data set; :class:`Entanglement` is the
bijection itself, for continuous factors of any distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, Protocol, runtime_checkable

import numpy as np
from annotated_types import Ge, Gt, Lt
from scipy.special import ndtr, ndtri

from unweave.arrays import AnyArray, ArrayLike, FloatArray, IntArray
from unweave.data.dataset import Dataset, Observe
from unweave.data.factors import FactorArray, FactorSpace, Rng
from unweave.data.rows import Table
from unweave.errors import ArgumentError
from unweave.parameters import Natural, check_value

_EDGE = float(np.finfo(np.float64).tiny)  # the least probability: beyond it a normal score would be infinite
_ZERO = 1e-9  # an entry of an orthogonal matrix below this counts as 0
_MOST_ROWS = 2**24  # all of them are sorted at once, for each factor


def entangle(data: Dataset, seed: Natural = 0, *, matrix: ArrayLike | None = None) -> Dataset:
    """The same images, row by row, with other factors: as likely as the true ones, and entangled with them.

    The map of :class:`Entanglement` on a finite set. A discrete factor becomes continuous first: value k is

        u = P(z_i < k) + U P(z_i = k),    U uniform in [0, 1), drawn for each row and factor by ``seed``,

    which is (k + U) / n for n equally likely values. Then the normal scores are rotated, Φ⁻¹(u) -> A Φ⁻¹(u), and
    the result becomes discrete again by its ranks: the rows with the lowest first score get the lowest value of
    the first factor, and so on; among the rows that share this value, the second score decides on the second
    factor, and so on. Each row thereby gets the factors of one row, and no two rows those of the same:

    - a bijection, so nothing is lost: the factors of a full grid are again the full grid, each combination once;
    - the factors have exactly the joint distribution that they had (independent, in a grid);
    - f is only approximated: where few rows share the values of the earlier factors, their ranks are coarse.

    Endless data whose factors are all continuous has no rows: factors f(z) give the image that z gives, with f of
    :class:`Entanglement`, each factor being uniform in its range.

    Parameters
    ----------
    data
        Tables of continuous factors, data sets that draw rows from a distribution of their own, and those with fewer
        than two factors that vary are refused.
    seed
        of U.
    matrix
        an orthogonal A without zeros, one row for each factor that varies; by default :func:`householder`.

    Returns
    -------
    Dataset
        Factors with one value stay as they are. A categorical factor counts in the order of its values; what it is
        entangled into has an order.

    Examples
    --------
    >>> grid = uw.data.from_function(["x", "y"], [9, 9], lambda factors: factors)
    >>> uw.data.entangle(grid)
    Dataset(function_entangled: 81 of 2; entangled_x=9, entangled_y=9)
    """
    seed = check_value("seed", seed, Natural)
    if data.index is None and len(data.space.continuous) == data.space.num_factors:
        return _entangle_endless(data, matrix)
    table = _discrete_factors(data)
    varying = np.flatnonzero(np.ptp(table, axis=0) > 0)
    if len(varying) < 2:
        _refuse_few(data, len(varying))
    rotation = _check_matrix(matrix, len(varying))
    uniform = np.random.default_rng(seed).random((len(table), len(varying)))
    continuous = np.stack(
        [_dequantise(table[:, k], u) for k, u in zip(varying, uniform.T, strict=True)], axis=1
    )
    scores = ndtri(np.maximum(continuous, _EDGE)) @ rotation.T
    names = [f"entangled_{n}" if k in varying else n for k, n in enumerate(data.space.names)]
    index = Table(FactorSpace(names, data.space.sizes), _assign(table, varying, scores))
    return data.with_parts(
        name=f"{data.name}_entangled", space=index.space, index=index, function=_by_row(data, index)
    )


@runtime_checkable
class Prior(Protocol):
    """The continuous distribution of one factor: a frozen one of scipy.stats, or what has these methods of it."""

    def support(self) -> tuple[Any, Any]: ...

    def pdf(self, x: FloatArray, /) -> Any: ...

    def cdf(self, x: FloatArray, /) -> Any: ...

    def sf(self, x: FloatArray, /) -> Any: ...

    def ppf(self, q: FloatArray, /) -> Any: ...

    def isf(self, q: FloatArray, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Entanglement:
    """The bijection f of Theorem 1: f(z) has the distribution of z, and each f_i depends on each z_j.

    For independent factors with distribution functions g_i, the normal one Φ, and an orthogonal matrix A,

        f = g⁻¹ ∘ Φ ∘ A ∘ Φ⁻¹ ∘ g.

    g makes the factors uniform, Φ⁻¹ standard normal; a rotated standard normal vector is one too. With no
    zero in A, no partial derivative of f is zero. With the paper's A, which is symmetric, f is its own inverse.

    Parameters
    ----------
    priors
        the distribution of each factor, two or more. A point on the edge of the support counts as one just inside.
    matrix
        A (d, d); by default :func:`householder`.

    Examples
    --------
    >>> from scipy.stats import gamma, uniform
    >>> f = uw.data.Entanglement([uniform(0, 1), gamma(2)])
    >>> f.forward([[0.3, 1.7]]).round(3)
    array([[0.351, 2.178]])
    >>> f.inverse(f.forward([[0.3, 1.7]]))
    array([[0.3, 1.7]])
    """

    priors: tuple[Prior, ...]
    matrix: FloatArray

    def __init__(self, priors: Sequence[Prior], matrix: ArrayLike | None = None) -> None:
        for number, prior in enumerate(priors):
            if not isinstance(prior, Prior):
                allowed = "needs a frozen continuous distribution of scipy.stats, such as uniform(0, 1)"
                raise ArgumentError(f"priors[{number}]", prior, allowed)
        if len(priors) < 2:
            raise ArgumentError("priors", list(priors), "needs two or more: one factor cannot be entangled")
        object.__setattr__(self, "priors", tuple(priors))
        object.__setattr__(self, "matrix", _check_matrix(matrix, len(priors)))

    def forward(self, z: ArrayLike) -> FloatArray:
        """f(z), (n, d), of points (n, d)."""
        return self._from_normal(self._to_normal(z) @ self.matrix.T)

    def inverse(self, z: ArrayLike) -> FloatArray:
        """f⁻¹(z), (n, d), of points (n, d)."""
        return self._from_normal(self._to_normal(z) @ self.matrix)

    def jacobian(self, z: ArrayLike) -> FloatArray:
        """The derivatives ∂f_i/∂z_j at points (n, d): (n, d, d).

        With x = Φ⁻¹(g(z)), y = A x, the densities p of the factors and φ of the normal distribution,

            ∂f_i/∂z_j = A_ij (φ(y_i) / p_i(f_i)) (p_j(z_j) / φ(x_j)).
        """
        x = self._to_normal(z)
        y = x @ self.matrix.T
        before, after = self._densities(np.asarray(z, np.float64)), self._densities(self._from_normal(y))
        # The two normal densities as one quotient: each alone would vanish in the tails.
        normal = np.exp((x[:, None, :] ** 2 - y[:, :, None] ** 2) / 2)
        return np.asarray(self.matrix * normal * before[:, None, :] / after[:, :, None])

    def _to_normal(self, z: ArrayLike) -> FloatArray:
        """Φ⁻¹(g(z)). The upper half goes by the survival function: 1 - 1e-20 is 1, but 1e-20 is not 0."""
        points = _check_points(z, self.priors)
        scores = np.empty_like(points)
        for column, prior in enumerate(self.priors):
            below = np.asarray(prior.cdf(points[:, column]))
            above = np.asarray(prior.sf(points[:, column]))
            tail = ndtri(np.maximum(np.minimum(below, above), _EDGE))
            scores[:, column] = np.where(below < above, tail, -tail)
        return scores

    def _from_normal(self, scores: FloatArray) -> FloatArray:
        """g⁻¹(Φ(scores)), by the tail that is nearer."""
        points = np.empty_like(scores)
        for column, prior in enumerate(self.priors):
            tail = ndtr(-np.abs(scores[:, column]))
            points[:, column] = np.where(scores[:, column] < 0, prior.ppf(tail), prior.isf(tail))
        return points

    def _densities(self, points: FloatArray) -> FloatArray:
        return np.stack(
            [prior.pdf(column) for prior, column in zip(self.priors, points.T, strict=True)], axis=1
        )


def householder(d: Annotated[int, Ge(2)], alpha: float | None = None) -> FloatArray:
    """The paper's orthogonal matrix without zeros, A = I - 2 v vᵀ.

    v_1 = √α and v_i = √((1 - α) / (d - 1)) for i > 1. So A_ii = 1 - 2 v_i² and A_ij = -2 v_i v_j (the paper's proof
    leaves out this 2).

    Parameters
    ----------
    d
        the number of factors, 2 or more. The larger d, the nearer A comes to the identity: its diagonal is 1 - 2/d.
    alpha
        α in (0, 0.5). By default the largest |A_ij| is as small as it can be, for the strongest entanglement: 1/d,
        all v_i being equal, and for d = 2 the α that makes all |A_ij| = √½.

    Returns
    -------
    array (d, d)

    Examples
    --------
    >>> uw.data.householder(2)
    array([[ 0.7071, -0.7071],
           [-0.7071, -0.7071]])
    """
    d = check_value("d", d, Annotated[int, Ge(2)])
    if alpha is None:
        alpha = (1 - math.sqrt(0.5)) / 2 if d == 2 else 1 / d
    alpha = check_value("alpha", alpha, Annotated[float, Gt(0), Lt(0.5)])
    v = np.sqrt(np.array([alpha] + [(1 - alpha) / (d - 1)] * (d - 1)))
    return np.asarray(np.eye(d) - 2 * np.outer(v, v))


def _entangle_endless(data: Dataset, matrix: ArrayLike | None) -> Dataset:
    """A simulator of continuous factors, asked for f(z) instead of z."""
    from scipy.stats import uniform

    function = data.function
    assert function is not None  # there is nothing else that endless data could be
    if data.space.num_factors < 2:
        _refuse_few(data, 1)
    ranges = np.array(data.space.sizes, np.float64)
    f = Entanglement([uniform(low, high - low) for low, high in ranges], matrix)

    def observe(factors: FactorArray, rng: Rng | None) -> AnyArray:
        return function(np.clip(f.inverse(factors), *ranges.T), rng)

    space = FactorSpace([f"entangled_{name}" for name in data.space.names], data.space.sizes)
    return data.with_parts(name=f"{data.name}_entangled", space=space, function=observe)


def _refuse_few(data: Dataset, varying: int) -> NoReturn:
    allowed = f"{varying} of the factors {list(data.space.names)} vary: needs two to entangle"
    raise ArgumentError("data", data.name, allowed)


def _discrete_factors(data: Dataset) -> IntArray:
    """The factors (N, K) of all rows of a data set that can be entangled."""
    if data.index is None:
        allowed = "is endless, and some of its factors are discrete: needs rows, or continuous factors only"
        raise ArgumentError("data", data.name, allowed)
    if not data.space.discrete:
        allowed = f"{list(data.space.continuous)} are continuous: Entanglement takes continuous factors"
        raise ArgumentError("data", data.name, allowed)
    if data.sampler is not None:
        raise ArgumentError("data", data.name, "does not draw its rows uniformly: needs uniform sampling")
    data.check_labelled("entangled factors")
    if len(data) > _MOST_ROWS:
        raise ArgumentError(
            "data", data.name, f"has {len(data):,} rows: {_MOST_ROWS:,} at most can be entangled"
        )
    return data.factors(np.arange(len(data))).astype(np.int64)


def _dequantise(values: IntArray, uniform: FloatArray) -> FloatArray:
    """P(z < k) + U P(z = k) for each of the values k (n,), with their frequencies as probabilities."""
    share = np.bincount(values) / len(values)
    return np.asarray((np.cumsum(share) - share)[values] + uniform * share[values])


def _assign(table: IntArray, varying: IntArray, scores: FloatArray) -> IntArray:
    """The rows of ``table`` (N, K) in the order that fits the scores (N, d) of the varying factors.

    The table's rows, sorted by the first factor, then the second …, are N slots. The data set's rows are sorted into
    them by the first score; then, within each run of slots that agree in the first factor, by the second; and so on.
    """
    slots = table[np.lexsort(table.T[::-1])]
    run = np.zeros(len(table), np.int64)  # for each row the number of the run of slots that it belongs to
    starts_run = np.zeros(len(table), bool)  # whether a slot begins a new run
    order = np.arange(len(table))
    for column, score in zip(varying, scores.T, strict=True):
        order = np.lexsort((score, run))
        starts_run[1:] |= slots[1:, column] != slots[:-1, column]
        run[order] = np.cumsum(starts_run)
    assigned = np.empty_like(table)
    assigned[order] = slots
    return assigned


def _by_row(data: Dataset, index: Table) -> Observe | None:
    """The function of a simulator, asked for the true factors of the rows that have the entangled ones."""
    function = data.function
    if function is None:
        return None

    def observe(factors: FactorArray, rng: Rng | None) -> AnyArray:
        return function(data.factors(index.rows(factors, rng)), rng)

    return observe


def _check_matrix(matrix: ArrayLike | None, d: int) -> FloatArray:
    """An orthogonal matrix (d, d) without zeros: the given one, or :func:`householder`."""
    if matrix is None:
        return householder(d)
    given = np.array(matrix, np.float64)
    if given.shape != (d, d):
        raise ArgumentError(
            "matrix", f"array of shape {given.shape}", f"needs shape ({d}, {d}) for {d} factors"
        )
    if not np.allclose(given.T @ given, np.eye(d), rtol=0, atol=1e-8):
        raise ArgumentError("matrix", given.tolist(), "needs an orthogonal matrix")
    if np.abs(given).min() < _ZERO:
        raise ArgumentError(
            "matrix", given.tolist(), "needs a matrix without zeros: else a factor stays apart"
        )
    return given


def _check_points(z: ArrayLike, priors: Sequence[Prior]) -> FloatArray:
    """Points (n, d) within the supports of the priors."""
    points = np.asarray(z, np.float64)
    if points.ndim != 2 or points.shape[1] != len(priors):
        raise ArgumentError("z", f"array of shape {points.shape}", f"needs shape (n, {len(priors)})")
    for column, prior in enumerate(priors):
        low, high = prior.support()
        inside = np.isfinite(points[:, column]) & (points[:, column] >= low) & (points[:, column] <= high)
        if not inside.all():
            row = int(np.argmin(inside))
            allowed = f"needs a finite number from {low} to {high}"
            raise ArgumentError(f"z[{row}, {column}]", float(points[row, column]), allowed)
    return points
