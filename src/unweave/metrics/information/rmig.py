"""Robust mutual information gap."""

from __future__ import annotations

import numpy as np

from unweave.arrays import AnyArray, FloatArray, IntArray
from unweave.errors import ArgumentError
from unweave.metrics.information.discretise import discretise, histogram_edges
from unweave.metrics.information.mig import gap_score
from unweave.metrics.information.mutual_information import entropy, mutual_information_matrix, varying_factors
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.metrics.unlabelled.posterior import check_log_variance
from unweave.parameters import Count


@register_metric("rmig", label="RMIG", takes="sample")
def rmig(
    sample: Sample,
    *,
    log_variance: AnyArray | None = None,
    num_bins: Count = 20,
    limits: tuple[float, float] | None = None,
) -> Score:
    """Robust mutual information gap: MIG with I(z_i; v_k) taken under the noise of the encoder.

    z_i is cut into bins s, and q(s, v_k) = mean over points n with factor v_k of q(s | x_n). Without
    ``log_variance`` codes are points and the value is that of MIG. With it codes are the means of Gaussians, and
    q(s | x_n) is the Gaussian's mass in the bin: the difference of two cumulative probabilities. (The authors'
    program takes the density at the bin's centre; both agree for narrow bins.)

    Degenerate input is treated as :func:`~unweave.metrics.mig` does.

    Parameters
    ----------
    log_variance
        (n, D) log-variances of q(z|x); codes are then its means.
    num_bins
        the number of bins of each code; the outermost two reach to infinity.
    limits
        (low, high) between which bins lie, for points too; by default the smallest and the largest mean. The
        paper has 100 bins in -4 .. 4.

    Returns
    -------
    Score
        ``details`` as those of :func:`~unweave.metrics.mig`.

    References
    ----------
    Do & Tran, "Theory and evaluation metrics for learning disentangled representations", 2020.

    Examples
    --------
    >>> factors = np.indices((4, 4)).reshape(2, -1).T  # each combination of two factors
    >>> uw.metrics.rmig(factors, factors)
    rmig = 1
    >>> uw.metrics.rmig(factors, factors, log_variance=np.full(factors.shape, -2.0))
    rmig = 0.765161
    """
    varying = varying_factors(sample)
    if limits is not None and not limits[0] < limits[1]:
        raise ArgumentError("limits", limits, "needs (low, high) with low < high")
    if log_variance is None and limits is None:
        matrix = mutual_information_matrix(discretise(sample.given, num_bins), sample.factors)
    else:
        inner = _inner_edges(sample.codes, num_bins, limits)
        matrix = _information(_bin_mass(sample.codes, log_variance, inner), sample.factors)
    params = {"num_bins": num_bins, "limits": limits, "noise": log_variance is not None}
    return gap_score(matrix, entropy(sample.factors), varying, params)


def _inner_edges(codes: FloatArray, num_bins: int, limits: tuple[float, float] | None) -> FloatArray:
    """The edges between bins, (D, num_bins - 1)."""
    if limits is None:
        return histogram_edges(np.ascontiguousarray(codes.T), num_bins)[:, 1:-1]
    edges = np.linspace(limits[0], limits[1], num_bins + 1)[1:-1]
    return np.broadcast_to(edges, (codes.shape[1], num_bins - 1))


def _bin_mass(codes: FloatArray, log_variance: AnyArray | None, inner: FloatArray) -> FloatArray:
    """q(s | x_n) for every dimension, point and bin: (D, n, num_bins)."""
    from scipy.special import ndtr

    above = codes.T[:, :, None] - inner[:, None, :]
    if log_variance is None:
        reached = (above >= 0).astype(np.float64)
    else:
        noise = check_log_variance(log_variance, codes.shape)
        reached = ndtr(above / np.exp(0.5 * noise).T[:, :, None])
    ones, zeros = np.ones((*reached.shape[:2], 1)), np.zeros((*reached.shape[:2], 1))
    mass: FloatArray = -np.diff(np.concatenate([ones, reached, zeros], axis=2), axis=2)
    return np.maximum(mass, 0.0)


def _information(mass: FloatArray, factors: IntArray) -> FloatArray:
    from scipy.special import xlogy

    columns = []
    for factor in factors.T:
        order = np.argsort(factor, kind="stable")
        starts = np.flatnonzero(np.concatenate([[True], factor[order[1:]] != factor[order[:-1]]]))
        joint = np.add.reduceat(mass[:, order], starts, axis=1) / len(factor)
        code, value = joint.sum(axis=1, keepdims=True), joint.sum(axis=2, keepdims=True)
        columns.append((xlogy(joint, joint) - xlogy(joint, code * value)).sum(axis=(1, 2)))
    information: FloatArray = np.maximum(np.stack(columns, axis=1), 0.0)
    return information
