"""Entropies and mutual information of discrete variables, in nats, for all pairs of columns at once."""

from __future__ import annotations

import numpy as np

from unweave.arrays import AnyArray, BoolArray, FloatArray, IntArray
from unweave.errors import ArgumentError
from unweave.metrics.sample import Sample

# How many indices a joint histogram may hold at once (32 MB); more columns are taken in turns.
INDICES_AT_ONCE = 4_000_000
# Differences of entropies below this are rounding: an entropy of n points is 0 or at least log(n) / n.
ROUNDING = 1e-13


def mutual_information_matrix(first: AnyArray, second: AnyArray) -> FloatArray:
    """Mutual information of each column of one array with each of another, in nats.

    I(first_d; second_k) = H(first_d) + H(second_k) - H(first_d, second_k). The probabilities are frequencies: no
    correction for the bias, which is about (bins - 1)(values - 1) / 2n. Exactly 0 where one of the two columns has
    one value only.

    Parameters
    ----------
    first, second
        (n, D) and (n, K) integers: binned codes and factors, or binned codes twice.

    Returns
    -------
    array
        (D, K).

    Examples
    --------
    >>> bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> mutual_information_matrix(bits, bits) / np.log(2)
    array([[1., 0.], [0., 1.]])
    """
    first_entropy, second_entropy = entropy(first), entropy(second)
    information = first_entropy[:, None] + second_entropy[None, :] - joint_entropy_matrix(first, second)
    information[information < ROUNDING] = 0.0
    information[first_entropy == 0, :] = 0.0
    information[:, second_entropy == 0] = 0.0
    return information


def entropy(discrete: AnyArray) -> FloatArray:
    """H = -sum p log p of each column of (n, d) integers, in nats: (d,). Exactly 0 for a constant column.

    Examples
    --------
    >>> entropy(np.array([[0, 5], [1, 5]])) / np.log(2)
    array([1., 0.])
    """
    rows = _rows(discrete)
    sizes = rows.max(axis=1) + 1
    starts = np.cumsum(sizes) - sizes
    counts = np.bincount((rows + starts[:, None]).ravel(), minlength=int(sizes.sum()))
    return _entropies(counts, starts, rows.shape[1])


def joint_entropy_matrix(first: AnyArray, second: AnyArray) -> FloatArray:
    """H(first_d, second_k) in nats, (D, K), from one joint histogram of all pairs of columns."""
    left, right = _rows(first), _rows(second)
    at_once = max(1, INDICES_AT_ONCE // right.size)
    parts = [_joint_entropies(left[d : d + at_once], right) for d in range(0, len(left), at_once)]
    return np.concatenate(parts)


def gap_of_two_largest(matrix: FloatArray, axis: int) -> FloatArray:
    """Largest minus second largest entry along ``axis``; where there is one entry only, that entry."""
    ordered = np.sort(np.moveaxis(matrix, axis, 0), axis=0)
    gap: FloatArray = ordered[-1] - ordered[-2] if len(ordered) > 1 else ordered[-1]
    return gap


def check_rows(rows: int) -> None:
    """An error unless there are two points to compare."""
    if rows < 2:
        raise ArgumentError("sample", f"{rows} point(s)", "needs at least 2 points")


def varying_factors(sample: Sample) -> BoolArray:
    """Which factors have more than one value in the sample; an error if none has, or with under 2 points."""
    check_rows(len(sample.codes))
    varying: BoolArray = (sample.factors != sample.factors[0]).any(axis=0)
    if not varying.any():
        raise ArgumentError("factors", "one value per factor", "needs a factor that varies in the sample")
    return varying


def _joint_entropies(left: IntArray, right: IntArray) -> FloatArray:
    left_sizes, right_sizes = left.max(axis=1) + 1, right.max(axis=1) + 1
    cells = left_sizes[:, None] * right_sizes[None, :]
    starts = (np.cumsum(cells) - cells.ravel()).reshape(cells.shape)
    index = left[:, None, :] * right_sizes[None, :, None]
    index += right[None, :, :]
    index += starts[:, :, None]
    counts = np.bincount(index.ravel(), minlength=int(cells.sum()))
    return _entropies(counts, starts.ravel(), left.shape[1]).reshape(cells.shape)


def _entropies(counts: IntArray, starts: IntArray, total: int) -> FloatArray:
    """Entropies of several histograms that lie one after another: log n - (1/n) sum c log c."""
    from scipy.special import xlogy

    table = xlogy(counts, counts)
    entropies: FloatArray = np.log(total) - np.add.reduceat(table, starts) / total
    entropies[entropies < ROUNDING] = 0.0
    return entropies


def _rows(discrete: AnyArray) -> IntArray:
    """Columns as contiguous rows of small indices: renumbered if values are negative or far apart."""
    rows = np.ascontiguousarray(np.asarray(discrete, dtype=np.int64).T)
    if rows.min() >= 0 and rows.max() < max(256, 2 * rows.shape[1]):
        return rows
    return np.stack([np.unique(row, return_inverse=True)[1] for row in rows])
