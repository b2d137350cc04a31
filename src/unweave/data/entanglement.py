"""The bijection of Theorem 1: it keeps the distribution of independent factors, and mixes all of them.

Locatello et al. (2019), "Challenging common assumptions in the unsupervised learning of disentangled
representations", appendix A.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from unweave.errors import ArgumentError

Floats = npt.NDArray[np.float64]

EDGE = float(np.finfo(np.float64).tiny)  # the least probability: beyond it a normal score would be infinite
_ZERO = 1e-9  # an entry of an orthogonal matrix below this counts as 0


class Prior(Protocol):
    """The continuous distribution of one factor: a frozen one of scipy.stats, or what has these methods of it."""

    def support(self) -> tuple[Any, Any]: ...

    def pdf(self, x: Floats, /) -> Any: ...

    def cdf(self, x: Floats, /) -> Any: ...

    def sf(self, x: Floats, /) -> Any: ...

    def ppf(self, q: Floats, /) -> Any: ...

    def isf(self, q: Floats, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class Entanglement:
    """The bijection f of Theorem 1: f(z) has the distribution of z, and each f_i depends on each z_j.

    >>> from scipy.stats import gamma, uniform
    >>> f = Entanglement([uniform(0, 1), gamma(2)])
    >>> bool(np.allclose(f.inverse(f.forward([[0.3, 1.7]])), [[0.3, 1.7]]))
    True

    For independent factors with distribution functions g_i, the normal one Φ, and an orthogonal matrix A,

        f = g⁻¹ ∘ Φ ∘ A ∘ Φ⁻¹ ∘ g.

    g makes the factors uniform, Φ⁻¹ standard normal; a rotated standard normal vector is one too. With no
    zero in A, no partial derivative of f is zero. With the paper's A, which is symmetric, f is its own inverse.

    ``priors``: one for each factor, two or more. ``matrix``: A (d, d), default :func:`householder`.
    A point on the edge of the support counts as one just inside it.
    """

    priors: tuple[Prior, ...]
    matrix: Floats

    def __init__(self, priors: Sequence[Prior], matrix: npt.ArrayLike | None = None) -> None:
        for number, prior in enumerate(priors):
            if not all(hasattr(prior, name) for name in ("support", "pdf", "cdf", "sf", "ppf", "isf")):
                allowed = "needs a frozen continuous distribution of scipy.stats, such as uniform(0, 1)"
                raise ArgumentError(f"priors[{number}]", prior, allowed)
        if len(priors) < 2:
            raise ArgumentError("priors", list(priors), "needs two or more: one factor cannot be entangled")
        object.__setattr__(self, "priors", tuple(priors))
        object.__setattr__(self, "matrix", checked_matrix(matrix, len(priors)))

    def forward(self, z: npt.ArrayLike) -> Floats:
        """f(z), (n, d), of points (n, d)."""
        return self._from_normal(self._to_normal(z) @ self.matrix.T)

    def inverse(self, z: npt.ArrayLike) -> Floats:
        """f⁻¹(z), (n, d), of points (n, d)."""
        return self._from_normal(self._to_normal(z) @ self.matrix)

    def jacobian(self, z: npt.ArrayLike) -> Floats:
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

    def _to_normal(self, z: npt.ArrayLike) -> Floats:
        """Φ⁻¹(g(z)). The upper half goes by the survival function: 1 - 1e-20 is 1, but 1e-20 is not 0."""
        points = _checked_points(z, self.priors)
        scores = np.empty_like(points)
        for column, prior in enumerate(self.priors):
            below = np.asarray(prior.cdf(points[:, column]))
            above = np.asarray(prior.sf(points[:, column]))
            tail = ndtri(np.maximum(np.minimum(below, above), EDGE))
            scores[:, column] = np.where(below < above, tail, -tail)
        return scores

    def _from_normal(self, scores: Floats) -> Floats:
        points = np.empty_like(scores)
        for column, prior in enumerate(self.priors):
            tail = ndtr(-np.abs(scores[:, column]))
            points[:, column] = np.where(scores[:, column] < 0, prior.ppf(tail), prior.isf(tail))
        return points

    def _densities(self, points: Floats) -> Floats:
        return np.stack(
            [prior.pdf(column) for prior, column in zip(self.priors, points.T, strict=True)], axis=1
        )


def householder(d: int, alpha: float | None = None) -> Floats:
    """The paper's orthogonal matrix without zeros, A = I - 2 v vᵀ, (d, d), for d >= 2.

    v_1 = √α and v_i = √((1 - α) / (d - 1)) for i > 1, with α in (0, 0.5). So A_ii = 1 - 2 v_i² and A_ij = -2 v_i v_j
    (the paper's proof leaves out this 2).

    By default α is such that the largest |A_ij| is as small as it can be, for the strongest entanglement: 1/d, all v_i
    being equal, and for d = 2 the α that makes all |A_ij| = √½. The larger d, the nearer A comes to the identity:
    its diagonal is 1 - 2/d then.
    """
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 2:
        raise ArgumentError("d", d, "needs a whole number >= 2")
    if alpha is None:
        alpha = (1 - math.sqrt(0.5)) / 2 if d == 2 else 1 / d
    if not isinstance(alpha, int | float | np.number) or not 0 < alpha < 0.5:
        raise ArgumentError("alpha", alpha, "needs 0 < alpha < 0.5")
    v = np.sqrt(np.array([alpha] + [(1 - alpha) / (d - 1)] * (d - 1)))
    return np.asarray(np.eye(d) - 2 * np.outer(v, v))


def checked_matrix(matrix: npt.ArrayLike | None, d: int) -> Floats:
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


def _checked_points(z: npt.ArrayLike, priors: Sequence[Prior]) -> Floats:
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
