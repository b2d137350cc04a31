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


@register_metric("mcc", label="MCC", takes="split", in_sample=True, factors="any")
def mcc(train: Sample, test: Sample | None = None, *, method: Method = "pearson") -> Score:
    """Mean correlation coefficient of codes and factors, each used once, under the best assignment.

    The mean |correlation| over the min(D, K) pairs of a code and a factor with the largest sum; other codes or
    factors are left over. Factors count as numbers, whole or continuous: a category in arbitrary order scores
    low. The assignment is that of the points to learn from, correlations are those of the points to judge on; among
    many codes of noise, the best on the same points are always correlated with something.

    A constant code or factor has correlation 0 with everything and counts. Under 2 points: ArgumentError.

    Parameters
    ----------
    method
        "pearson" for linear correlations, "spearman" for those of ranks (ties share their mean rank).

    Returns
    -------
    Score
        ``details``: ``matrix`` (D, K) of |correlation| on the points to judge on; ``codes`` and ``factors``, the
        pairs; ``per_pair``.

    References
    ----------
    Hyvarinen & Morioka, "Unsupervised feature extraction by time-contrastive learning and nonlinear ICA", 2016;
    Khemakhem et al., "Variational autoencoders and nonlinear ICA", 2020.

    Examples
    --------
    >>> sources = np.random.default_rng(0).normal(size=(500, 3))
    >>> uw.metrics.mcc(-sources[:, ::-1] ** 3, sources, method="spearman")
    mcc = 1
    """
    from scipy.optimize import linear_sum_assignment

    check_rows(len(train.codes))
    matrix = known = np.abs(correlation_matrix(train.codes, train.factors, method))
    if test is not None:
        check_rows(len(test.codes))
        matrix = np.abs(correlation_matrix(test.codes, test.factors, method))
    codes, factors = linear_sum_assignment(known, maximize=True)
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
    # A constant column is recognised by its range: its distance from its mean may be rounding, not 0.
    varies = np.ptp(values, axis=0) > 0
    return np.where(varies, centred / np.where(varies, length, 1.0), 0.0)
