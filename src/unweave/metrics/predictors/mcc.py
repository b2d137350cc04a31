"""Mean correlation coefficient."""

from __future__ import annotations

from typing import Literal

import numpy as np

from unweave.arrays import AnyArray, FloatArray
from unweave.metrics.information.mutual_information import check_rows
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample

Method = Literal["pearson", "spearman"]


@register_metric("mcc", label="MCC", takes="sample", factors="any")
def mcc(sample: Sample, *, method: Method = "pearson") -> Score:
    """Mean |correlation| of codes and factors, each used once, under the assignment with the largest sum.

    Hyvarinen & Morioka (2016), Khemakhem et al. (2020). ``method`` ``pearson`` takes linear correlations,
    ``spearman`` those of ranks (ties share their mean rank). The mean is over min(D, K) pairs, so codes or
    factors may be left over. Factors count as numbers, whole or continuous: a category in arbitrary order scores low.

    ``details``: ``matrix`` (D, K) of |correlation|; ``codes`` and ``factors``, the pairs; ``per_pair``.

    A constant code or factor has correlation 0 with everything and counts. Under 2 points: ArgumentError.
    """
    from scipy.optimize import linear_sum_assignment

    check_rows(len(sample.codes))
    matrix = np.abs(correlation_matrix(sample.codes, sample.factors, method))
    codes, factors = linear_sum_assignment(matrix, maximize=True)
    per_pair = matrix[codes, factors]
    details = {"matrix": matrix, "codes": codes, "factors": factors, "per_pair": per_pair}
    return Score(float(per_pair.mean()), details, {"method": method})


def correlation_matrix(first: AnyArray, second: AnyArray, method: Method) -> FloatArray:
    """Correlation of each column of (n, D) with each of (n, K): (D, K); 0 where a column is constant."""
    if method == "spearman":
        from scipy.stats import rankdata

        first, second = rankdata(first, axis=0), rankdata(second, axis=0)
    return _unit_columns(first).T @ _unit_columns(second)


def _unit_columns(values: AnyArray) -> FloatArray:
    centred: FloatArray = values - values.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    # A constant column is found by its range: its distance from its mean may be rounding, not 0.
    varies = np.ptp(values, axis=0) > 0
    return np.where(varies, centred / np.where(varies, length, 1.0), 0.0)
