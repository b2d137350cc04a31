"""Gaussian posteriors q(z|x) with noise that may be correlated: what the metrics of posteriors share."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from unweave.arrays import as_array
from unweave.errors import ArgumentError
from unweave.metrics.score import check_codes

Array = npt.NDArray[np.float64]

# How many log densities are held at once (32 MB).
DENSITIES_AT_ONCE = 4_000_000
# Beyond these a density of a code of any allowed size is no number in double precision.
MOST_LOG_VARIANCE = 200.0


def check_posterior(mean: npt.ArrayLike, log_variance: npt.ArrayLike) -> tuple[Array, Array]:
    """Means and log variances as float64 (n, D), or an error that names what is wrong."""
    checked = check_codes(mean, "mean")
    return checked, check_log_variance(log_variance, checked.shape)


def check_log_variance(log_variance: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    """Log variances as float64, of the shape of the means."""
    given = as_array(log_variance, "log_variance")
    if given.dtype.kind not in "fiu" or given.shape != shape:
        told = f"{given.dtype} array of shape {given.shape}"
        raise ArgumentError("log_variance", told, f"needs the shape of mean, {shape}, and numbers")
    array = np.ascontiguousarray(given, dtype=np.float64)
    if not (np.abs(array) <= MOST_LOG_VARIANCE).all():
        row, column = np.argwhere(~(np.abs(array) <= MOST_LOG_VARIANCE))[0].tolist()
        told = f"needs finite numbers, from {-MOST_LOG_VARIANCE:g} to {MOST_LOG_VARIANCE:g}"
        raise ArgumentError(f"log_variance[{row}, {column}]", float(array[row, column]), told)
    return array


def marginal_log_densities(points: Array, mean: Array, log_variance: Array) -> Array:
    """log q(z_j | x_i) for every point, row i and dimension j: (points, rows, D)."""
    scaled = (points[:, None, :] - mean) * np.exp(-0.5 * log_variance)
    densities: Array = -0.5 * (np.square(scaled) + log_variance + math.log(2 * math.pi))
    return densities


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
