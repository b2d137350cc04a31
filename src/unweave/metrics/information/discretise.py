"""Equal-width bins, the first step of every metric that counts."""

from __future__ import annotations

from typing import Literal

import numpy as np

from unweave.arrays import AnyArray, FloatArray, IntArray
from unweave.parameters import Count, check_arguments

Rule = Literal["histogram", "min_max"]


def discretise(codes: AnyArray, num_bins: Count = 20, *, rule: Rule = "histogram") -> IntArray:
    """The bin of every code.

    Bins lie between a dimension's smallest and largest value. They are closed below and open above, the last one is
    closed on both sides.

    A constant dimension falls into one bin: the middle one ("histogram" widens the range by 1/2 on each side, as
    numpy does) or the first one ("min_max"). Where a dimension's range is so narrow that its edges coincide in
    float64, ``numpy.histogram`` gives up; here the values go to the last of the equal edges.

    Parameters
    ----------
    codes
        (n, D) numbers.
    num_bins
        the number of bins of equal width of each dimension.
    rule
        how inner edges are rounded, which matters for codes on a regular grid:

        - "histogram": the edges of ``numpy.histogram``, to the last bit (disentanglement_lib), in single precision
          if the codes are;
        - "min_max": codes are scaled to [0, 1] as scikit-learn's ``minmax_scale`` does, edges are i / num_bins
          (the code of Carbonneau et al., "Measuring disentanglement: a review of metrics", 2022).

    Returns
    -------
    array
        (n, D) integers from 0 to ``num_bins`` - 1.

    Examples
    --------
    >>> discretise(np.array([[0.0], [0.4], [0.5], [1.0]]), num_bins=2).ravel()
    array([0, 0, 1, 1])
    """
    check_arguments(discretise, {"num_bins": num_bins, "rule": rule})
    # One contiguous row per dimension: a search through a strided column costs five times as much.
    single = rule == "histogram" and np.asarray(codes).dtype == np.float32
    columns = np.ascontiguousarray(np.asarray(codes).T, dtype=np.float32 if single else np.float64)
    if rule == "histogram":
        edges = histogram_edges(columns, num_bins)
    else:
        columns = _scaled_to_unit(columns)
        edges = np.broadcast_to(np.linspace(0, 1, num_bins + 1), (len(columns), num_bins + 1))
    bins = np.empty(columns.shape, dtype=np.int64)
    for column, column_edges, target in zip(columns, edges, bins, strict=True):
        target[:] = np.searchsorted(column_edges[1:-1], column, side="right")
    return np.ascontiguousarray(bins.T)


def histogram_edges(columns: AnyArray, num_bins: int) -> AnyArray:
    """The edges that ``numpy.histogram`` puts on each row of (D, n): (D, num_bins + 1)."""
    low, high = columns.min(axis=1), columns.max(axis=1)
    constant = low == high
    low, high = np.where(constant, low - 0.5, low), np.where(constant, high + 0.5, high)
    return np.linspace(low, high, num_bins + 1, axis=1)


def _scaled_to_unit(columns: AnyArray) -> FloatArray:
    """Rows scaled to [0, 1], with the order of operations (and so the rounding) of ``minmax_scale``."""
    low, width = columns.min(axis=1), np.ptp(columns, axis=1)
    scale = 1 / np.where(width < 10 * np.finfo(np.float64).eps, 1.0, width)
    scaled: FloatArray = columns * scale[:, None] + (0 - low * scale)[:, None]
    return scaled
