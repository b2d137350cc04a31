"""Total correlation of the aggregated posterior, by sampling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from unweave.errors import ArgumentError
from unweave.metrics.score import Score

Array = npt.NDArray[np.float64]

# How many log densities are held at once (32 MB).
DENSITIES_AT_ONCE = 4_000_000


def monte_carlo_total_correlation(
    mean: npt.NDArray[Any],
    log_variance: npt.NDArray[Any],
    *,
    batch_size: int = 64,
    samples: int = 30,
    seed: int = 0,
    correlation: float = 0.0,
) -> Score:
    """TC = E[log q(z) - sum_j log q(z_j)] in nats, with q(z) a mixture of ``batch_size`` posteriors.

    Yang et al., "Towards better understanding of disentangled representations via mutual information",
    appendix D. B posteriors q(z | x_i) = N(mean_i, diag(sigma_i) R diag(sigma_i)) are drawn without
    replacement from the rows of ``mean`` and ``log_variance`` (n, D), and ``samples`` points z from each.
    ``correlation`` s makes the noise correlated, R = (1 - s) I + s 11^T (their equations 11 and 12); the
    appendix writes out s = 0.

    The value belongs to the mixture of the drawn rows. As B grows it approaches that of the whole data set,
    as a rule from above: where posteriors hardly overlap, each row looks like a dependence of its own.

    ``details``: ``standard_error`` of the sampling of z given the rows; ``rows``, the rows drawn.

    With fewer than ``batch_size`` rows all are used. One row and s = 0 give 0. With D = 1 the value is 0.
    """
    mean, log_variance = check_posterior(mean, log_variance)
    for name, number in (("batch_size", batch_size), ("samples", samples)):
        if number < 1:
            raise ArgumentError(name, number, "needs at least 1")
    check_correlation(correlation)
    generator = np.random.default_rng(seed)
    rows = np.sort(generator.choice(len(mean), size=min(batch_size, len(mean)), replace=False))
    mean, log_variance = mean[rows], log_variance[rows]
    noise = correlated_noise(generator, (samples, *mean.shape), correlation)
    points = (mean + np.exp(0.5 * log_variance) * noise).reshape(-1, mean.shape[1])
    at_once = max(1, DENSITIES_AT_ONCE // mean.size)
    ratios = np.concatenate(
        [
            _log_ratio(points[start : start + at_once], mean, log_variance, correlation)
            for start in range(0, len(points), at_once)
        ]
    )
    details = {"standard_error": float(ratios.std() / math.sqrt(len(ratios))), "rows": rows}
    params = {"batch_size": batch_size, "samples": samples, "seed": seed, "correlation": correlation}
    return Score(float(ratios.mean()), details, params)


def marginal_log_densities(points: Array, mean: Array, log_variance: Array) -> Array:
    """log q(z_j | x_i) for every point, row i and dimension j: (points, rows, D)."""
    scaled = (points[:, None, :] - mean) * np.exp(-0.5 * log_variance)
    densities: Array = -0.5 * (np.square(scaled) + log_variance + math.log(2 * math.pi))
    return densities


def check_posterior(mean: npt.NDArray[Any], log_variance: npt.NDArray[Any]) -> tuple[Array, Array]:
    """Means and log variances as float64 (n, D), or an error that names what is wrong."""
    checked = []
    for name, value in (("mean", mean), ("log_variance", log_variance)):
        array = np.asarray(value, dtype=np.float64)
        if array.ndim != 2 or array.size == 0:
            raise ArgumentError(name, f"array of shape {array.shape}", "needs shape (n, D), not empty")
        if not np.isfinite(array).all():
            raise ArgumentError(name, "values that are not finite", "needs finite numbers")
        checked.append(array)
    if checked[0].shape != checked[1].shape:
        told = f"array of shape {checked[1].shape}"
        raise ArgumentError("log_variance", told, f"needs the shape of mean, {checked[0].shape}")
    return checked[0], checked[1]


def _log_ratio(points: Array, mean: Array, log_variance: Array, correlation: float) -> Array:
    """log q(z) - sum_j log q(z_j) of each point."""
    parts = marginal_log_densities(points, mean, log_variance)
    whole = parts.sum(axis=2)
    if correlation:
        whole = whole + _dependence(points, mean, log_variance, correlation)
    rows, size = mean.shape
    marginals = logsumexp(parts, axis=1).sum(axis=1) - (size - 1) * math.log(rows)
    ratio: Array = logsumexp(whole, axis=1) - marginals
    return ratio


def _dependence(points: Array, mean: Array, log_variance: Array, correlation: float) -> Array:
    """log q(z | x) - sum_j log q(z_j | x) of correlated noise, (points, rows)."""
    scaled = (points[:, None, :] - mean) * np.exp(-0.5 * log_variance)
    return dependence_of(np.square(scaled).sum(axis=2), scaled.sum(axis=2), mean.shape[1], correlation)


def dependence_of(squares: Array, sums: Array, size: int, correlation: float) -> Array:
    """log N(e; 0, R) - sum_j log N(e_j; 0, 1) from the sum of squares and the sum of ``size`` numbers e_j.

    R^-1 = (I - c 11^T) / (1 - s) with c = s / (1 + (D - 1) s), so that no matrix is inverted.
    """
    share = correlation / (1 + (size - 1) * correlation)
    distance = (squares - share * np.square(sums)) / (1 - correlation)
    log_determinant = (size - 1) * math.log1p(-correlation) + math.log1p((size - 1) * correlation)
    dependence: Array = -0.5 * (distance - squares + log_determinant)
    return dependence


def correlated_noise(generator: np.random.Generator, shape: tuple[int, ...], correlation: float) -> Array:
    """Standard normal numbers (..., D) of which any two of a row have this correlation."""
    noise: Array = generator.standard_normal(shape)
    if correlation:
        shared = generator.standard_normal((*shape[:-1], 1))
        noise = math.sqrt(1 - correlation) * noise + math.sqrt(correlation) * shared
    return noise


def check_correlation(correlation: float) -> None:
    """A number in [0, 1)."""
    if not 0 <= correlation < 1:
        raise ArgumentError("correlation", correlation, "needs a number in [0, 1)")
