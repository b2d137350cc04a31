"""Modularity of codes."""

from __future__ import annotations

import numpy as np

from unweave.arrays import FloatArray
from unweave.metrics.information.discretise import Rule, discretise
from unweave.metrics.information.mutual_information import mutual_information_matrix, varying_factors
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.parameters import Count


@register_metric("modularity", label="Modularity", takes="sample", paper=True)
def modularity(sample: Sample, *, num_bins: Count = 20, rule: Rule = "histogram") -> Score:
    """Modularity: whether each code has information about one factor only.

    Mean over codes of 1 - (sum_k m_k^2 - max_k m_k^2) / ((K - 1) max_k m_k^2), with m_k = I(z; v_k); a code
    without any information counts 0, as in disentanglement_lib.

    The score measures the shape of a code's information and not its amount: pure noise scores about 0.8, because
    the bias of binned mutual information grows with a factor's number of values, and a rotated code scores high
    too. A factor with one value has no information and still counts in K. With one factor every code that knows
    anything scores 1. Under 2 points, or if no factor varies: ArgumentError.

    Parameters
    ----------
    num_bins
        the number of bins of each code.
    rule
        how the edges of bins are rounded: "min_max" as the program of Carbonneau et al. (2022) does.

    Returns
    -------
    Score
        ``details``: ``matrix`` (D, K) mutual information in nats; ``per_code`` (D,).

    References
    ----------
    Ridgeway & Mozer, "Learning deep disentangled embeddings with the F-statistic loss", 2018.

    Examples
    --------
    >>> factors = np.indices((4, 4)).reshape(2, -1).T  # each combination of two factors
    >>> codes = np.stack([factors[:, 0], factors @ [4, 1]], axis=1)
    >>> uw.metrics.modularity(codes, factors).details["per_code"].round(2)
    array([1., 0.])
    """
    varying_factors(sample)
    matrix = mutual_information_matrix(discretise(sample.given, num_bins, rule=rule), sample.factors)
    per_code = modularity_per_code(matrix)
    params = {"num_bins": num_bins, "rule": rule}
    return Score(float(per_code.mean()), {"matrix": matrix, "per_code": per_code}, params)


def modularity_per_code(matrix: FloatArray) -> FloatArray:
    """The modularity of each row of a (D, K) matrix of mutual information; 0 for a row of zeros."""
    squares = np.square(matrix)
    largest = squares.max(axis=1)
    informed = largest > 0
    others = max(1, matrix.shape[1] - 1)
    spread = (squares.sum(axis=1) - largest) / (np.where(informed, largest, 1.0) * others)
    return np.where(informed, 1.0 - spread, 0.0)
