"""DCIMIG: one gap per factor, after every code has chosen its factor."""

from __future__ import annotations

import numpy as np

from unweave.metrics.information.discretise import Rule, discretise
from unweave.metrics.information.mutual_information import (
    entropy,
    gap_of_two_largest,
    mutual_information_matrix,
    varying_factors,
)
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.parameters import Count


@register_metric("dcimig", label="DCIMIG", takes="sample")
def dcimig(sample: Sample, *, num_bins: Count = 20, rule: Rule = "min_max") -> Score:
    """DCIMIG: one gap per factor, after every code has chosen its factor.

    sum_k max(0, R_j of the codes j that chose k) / sum_k H(v_k). A code chooses the factor that it knows best,
    and its gap is that information less the second best, R_j = I(z_j; v_a) - I(z_j; v_b). A factor that no code
    chose counts 0.

    A constant code has gap 0. A factor with one value adds nothing above or below the line. With one factor the
    second best is 0. Under 2 points, or if no factor varies: ArgumentError.

    Parameters
    ----------
    num_bins
        the number of bins of each code.
    rule
        how the edges of bins are rounded; by default as in the program of Carbonneau et al. (2022).

    Returns
    -------
    Score
        ``details``: ``matrix`` (D, K) mutual information in nats; ``per_code`` (D,) gaps; ``chosen`` (D,)
        factors; ``per_factor`` (K,) largest gaps in nats; ``factor_entropy`` (K,).

    References
    ----------
    Sepliarskaia et al., "Evaluating disentangled representations", 2020.

    Examples
    --------
    >>> factors = np.indices((4, 4)).reshape(2, -1).T  # each combination of two factors
    >>> uw.metrics.dcimig(factors[:, :1], factors).details["per_factor"].round(2)
    array([1.39, 0.  ])
    """
    varying_factors(sample)
    matrix = mutual_information_matrix(discretise(sample.given, num_bins, rule=rule), sample.factors)
    per_code, chosen = gap_of_two_largest(matrix, axis=1), matrix.argmax(axis=1)
    per_factor = np.zeros(matrix.shape[1])
    np.maximum.at(per_factor, chosen, per_code)
    factor_entropy = entropy(sample.factors)
    details = {
        "matrix": matrix,
        "per_code": per_code,
        "chosen": chosen,
        "per_factor": per_factor,
        "factor_entropy": factor_entropy,
    }
    return Score(
        float(per_factor.sum() / factor_entropy.sum()), details, {"num_bins": num_bins, "rule": rule}
    )
