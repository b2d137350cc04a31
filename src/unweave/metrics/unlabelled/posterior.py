"""Gaussian posteriors q(z|x) with noise that may be correlated: what the metrics of posteriors share."""

from __future__ import annotations

import math

import numpy as np

from unweave.arrays import ArrayLike, FloatArray, as_array
from unweave.errors import ArgumentError
from unweave.metrics.sample import check_codes

# How many log densities are held at once (32 MB).
DENSITIES_AT_ONCE = 4_000_000
# Beyond these a density of a code of any allowed size is no number in double precision.
MOST_LOG_VARIANCE = 200.0


def check_posterior(mean: ArrayLike, log_variance: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Means and log variances as float64 (n, D), or an error that names what is wrong."""
    checked = check_codes(mean, "mean")
    return checked, check_log_variance(log_variance, checked.shape)


def check_log_variance(log_variance: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Log variances as float64, of the shape of the means."""
    given = as_array(log_variance, "log_variance")
    if given.dtype.kind not in "fiu" or given.shape != shape:
        raise ArgumentError(
            "log_variance",
            f"{given.dtype} array of shape {given.shape}",
            f"needs the shape of mean, {shape}, and numbers",
        )
    array = np.ascontiguousarray(given, dtype=np.float64)
    if not (np.abs(array) <= MOST_LOG_VARIANCE).all():
        row, column = np.argwhere(~(np.abs(array) <= MOST_LOG_VARIANCE))[0].tolist()
        allowed = f"needs finite numbers, from {-MOST_LOG_VARIANCE:g} to {MOST_LOG_VARIANCE:g}"
        raise ArgumentError(f"log_variance[{row}, {column}]", float(array[row, column]), allowed)
    return array


def marginal_log_densities(points: FloatArray, mean: FloatArray, log_variance: FloatArray) -> FloatArray:
    """log q(z_j | x_i) for every point, row i and dimension j: (points, rows, D)."""
    scaled = (points[:, None, :] - mean) * np.exp(-0.5 * log_variance)
    densities: FloatArray = -0.5 * (np.square(scaled) + log_variance + math.log(2 * math.pi))
    return densities


def dependence_of(squares: FloatArray, sums: FloatArray, size: int, correlation: float) -> FloatArray:
    """log N(e; 0, R) - sum_j log N(e_j; 0, 1) from the sum of squares and the sum of ``size`` numbers e_j.

    R^-1 = (I - c 11^T) / (1 - s) with c = s / (1 + (D - 1) s), so that no matrix is inverted.
    """
    share = correlation / (1 + (size - 1) * correlation)
    distance = (squares - share * np.square(sums)) / (1 - correlation)
    log_determinant = (size - 1) * math.log1p(-correlation) + math.log1p((size - 1) * correlation)
    dependence: FloatArray = -0.5 * (distance - squares + log_determinant)
    return dependence


def correlated_noise(
    generator: np.random.Generator, shape: tuple[int, ...], correlation: float
) -> FloatArray:
    """Standard normal numbers (..., D) of which any two of a row have this correlation."""
    noise: FloatArray = generator.standard_normal(shape)
    if correlation:
        shared = generator.standard_normal((*shape[:-1], 1))
        noise = math.sqrt(1 - correlation) * noise + math.sqrt(correlation) * shared
    return noise
