"""Can a prior p(z|u) identify the codes? Condition (iv) of Theorem 1 (Khemakhem et al. 2020; Mita et al. 2021)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.linalg import qr

from unweave.arrays import AnyArray, ArrayLike, FloatArray, IntArray, as_array
from unweave.data import Dataset
from unweave.errors import ArgumentError
from unweave.methods.method import EncodesWithLabels, Method
from unweave.parameters import Count, Natural, Positive, check_arguments
from unweave.training import Run

_MOST_ROWS = 100_000  # of a data set, among which distinct labels are searched
_RANDOM_CHOICES = 100


@dataclass(frozen=True, eq=False)
class PriorRank:
    """How many directions the natural parameters of a prior given labels vary in.

    rank, needed
        of all differences lambda(u) - lambda(u'), and what the theorem asks for: nk = 2n of n latents. It is the
        largest rank that any choice of labels gives the matrix L.
    num_labels
        how many distinct labels there were; the theorem needs nk + 1.
    labels
        (nk + 1, d): u_0 and the others that L consists of, chosen to keep L far from singular; all if there are fewer.
    singular_values, condition
        of this L, the largest first, and the ratio of the first to the last; inf where L is not invertible.
    random_condition
        the median condition number of L over random choices of labels.
    """

    rank: int
    needed: int
    num_labels: int
    labels: FloatArray
    singular_values: FloatArray
    condition: float
    random_condition: float

    @property
    def enough_labels(self) -> bool:
        """Whether there are nk + 1 distinct labels."""
        return self.num_labels > self.needed

    @property
    def invertible(self) -> bool:
        """Whether labels can be chosen so that L is invertible: condition (iv)."""
        return self.rank == self.needed


def conditional_prior_rank(
    method: Run | Method,
    labels: Dataset | ArrayLike,
    *,
    num_labels: Count = 1_000,
    tolerance: Positive = 1e-6,
    seed: Natural = 0,
) -> PriorRank:
    """Whether a method's p(z|u) = N(m(u), diag v(u)) fulfils condition (iv) of Theorem 1, numerically.

    There must be nk + 1 labels such that the nk x nk matrix

        L = (lambda(u_1) - lambda(u_0), …, lambda(u_nk) - lambda(u_0)),    lambda_i(u) = (m_i / v_i, -1 / (2 v_i))

    is invertible; a Gaussian has k = 2 natural parameters per latent. The condition is on the model as well as on the
    data: with a prior that fails it, codes are not identified. That a learned prior fulfils it does not say that
    the codes are the true sources; :func:`~unweave.metrics.predictors.mcc.mcc` does, where those are known.

    Each latent is first scaled to mean 0 and variance 1 over the labels, so that singular values have a meaning (a
    latent whose prior does not depend on u has natural parameters (0, -1/2)) and none depends on a latent's units.

    Parameters
    ----------
    method
        one with a prior given labels, or a run of such a one.
    labels
        the data set that the method learns from, or an array of labels u (M, d). Of the data's rows all are used, or
        100,000 random ones.
    num_labels
        at most so many distinct labels are used: a random part of them.
    tolerance
        a singular value of the differences counts as 0 below this part of the largest one of lambda itself.
    seed
        of the random choices.

    Returns
    -------
    PriorRank
        the rank, what the theorem needs, and how far L is from being singular.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((6, 4), np.float32), {"u": [0, 1, 2, 3, 4, 5]})
    >>> method = uw.methods.create("ivae", data, latent_size=2)
    >>> result = conditional_prior_rank(method, data)
    >>> result.needed, result.num_labels, result.enough_labels
    (4, 6, True)
    """
    trained = method.method if isinstance(method, Run) else method
    if not isinstance(trained, Method):
        raise ArgumentError("method", method, "needs a method, or a run")
    if not isinstance(trained, EncodesWithLabels):
        raise ArgumentError(
            "method",
            trained.spec.name,
            "has no prior given labels: ivae, idvae and any method with prior=… do",
        )
    options = check_arguments(
        conditional_prior_rank, {"num_labels": num_labels, "tolerance": tolerance, "seed": seed}
    )
    num_labels, tolerance = options["num_labels"], options["tolerance"]
    rng = np.random.default_rng(options["seed"])
    u = _distinct(_labels(trained, labels, num_labels, rng), num_labels, rng)
    parameters = _parameters_of(trained, u)
    needed = parameters.shape[1]
    scale = np.linalg.norm(parameters, 2)
    spread = _singular_values(parameters - parameters.mean(0))
    rank = int((spread > tolerance * scale).sum())
    chosen = _best_labels(parameters)
    singular_values = _singular_values(_differences(parameters[chosen]))
    return PriorRank(
        rank,
        needed,
        len(u),
        u[chosen],
        singular_values,
        _condition(singular_values) if rank == needed else np.inf,
        _random_condition(parameters, rng) if rank == needed else np.inf,
    )


def natural_parameters(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """(m / v, -1 / (2 v)) of Gaussians (M, n), which go with the sufficient statistics z and z^2: (M, 2n)."""
    return np.concatenate([mean / variance, -0.5 / variance], axis=1)


def _labels(
    method: EncodesWithLabels, given: Dataset | ArrayLike, num_labels: int, rng: np.random.Generator
) -> AnyArray:
    if isinstance(given, Dataset):
        labels = method.labels_for(given)
        if not given.finite:
            return labels.sample(num_labels, rng)
        rows = np.arange(len(given)) if labels.subset is None else labels.subset.rows
        return labels.of(
            rows if len(rows) <= _MOST_ROWS else np.sort(rng.choice(rows, _MOST_ROWS, replace=False))
        )
    u = as_array(given, "labels")
    if u.ndim != 2 or u.dtype.kind not in "fiub" or u.shape[1] != method.label_size:
        raise ArgumentError(
            "labels",
            f"{u.dtype} array of shape {u.shape}",
            f"needs numbers of shape (M, {method.label_size}), or a data set",
        )
    return u


def _distinct(u: AnyArray, num_labels: int, rng: np.random.Generator) -> FloatArray:
    known = u[~np.isnan(u).any(axis=1)].astype(np.float64)
    if not len(known):
        raise ArgumentError("labels", "none that are known", "needs at least one row with all labels")
    distinct = np.unique(known, axis=0)
    if len(distinct) <= num_labels:
        return distinct
    return distinct[np.sort(rng.choice(len(distinct), num_labels, replace=False))]


def _parameters_of(method: Method, u: FloatArray) -> FloatArray:
    """lambda(u) (M, 2n) of latents scaled to mean 0 and variance 1 over the labels, in double precision."""
    exact: Any = copy.deepcopy(method).double().cpu()
    with torch.no_grad():
        prior_mean, log_variance = exact.prior_given(torch.from_numpy(u))
    mean, variance = prior_mean.numpy(), log_variance.exp().numpy()
    wrong = ~(np.isfinite(mean) & np.isfinite(variance) & (variance > 0)).all(1)
    if wrong.any():
        raise ArgumentError("labels", u[wrong.argmax()].tolist(), "p(z|u) is not finite there")
    of_latent = variance.mean(0) + mean.var(0)
    return natural_parameters((mean - mean.mean(0)) / np.sqrt(of_latent), variance / of_latent)


def _best_labels(parameters: FloatArray) -> IntArray:
    """u_0, the label nearest to the mean, and up to nk others, each the farthest from the span of those before it."""
    first = np.square(parameters - parameters.mean(0)).sum(1).argmin()
    others = np.delete(np.arange(len(parameters)), first)
    if not len(others):
        return np.array([first])
    _, _, order = qr((parameters[others] - parameters[first]).T, mode="economic", pivoting=True)
    return np.concatenate([[first], others[order[: parameters.shape[1]]]])


def _differences(parameters: FloatArray) -> FloatArray:
    """L (nk, m) of the natural parameters (m + 1, nk) of u_0 .. u_m."""
    return np.asarray((parameters[1:] - parameters[0]).T)


def _random_condition(parameters: FloatArray, rng: np.random.Generator) -> float:
    count, needed = parameters.shape
    conditions = []
    for _ in range(_RANDOM_CHOICES):
        chosen = rng.choice(count, needed + 1, replace=False)
        conditions.append(_condition(_singular_values(_differences(parameters[chosen]))))
    return float(np.median(conditions))


def _singular_values(matrix: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.svd(matrix, compute_uv=False), np.float64)


def _condition(singular_values: FloatArray) -> float:
    return float(singular_values[0] / singular_values[-1]) if singular_values[-1] > 0 else np.inf
