"""MIG-sup: the mutual information gap of codes instead of factors."""

from __future__ import annotations

import numpy as np

from unweave.metrics.information.discretise import Rule, discretise
from unweave.metrics.information.mig import RULE_OF, Denominator
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


@register_metric("mig_sup", label="MIG-sup", takes="sample")
def mig_sup(
    sample: Sample, *, denominator: Denominator = "code", num_bins: Count = 20, rule: Rule | None = None
) -> Score:
    """MIG-sup: the gap between the two factors that a code knows best, averaged over codes.

    (1/D) sum_j (I(z_j; v_a)/H - I(z_j; v_b)/H), with a and b the two factors that code j knows best, in
    normalised information: MIG from the side of the codes.

    A constant code has gap 0 and counts. With one factor the second best is 0. Under 2 points, or if no factor
    varies: ArgumentError.

    Parameters
    ----------
    denominator
        which entropy H is: "code", H(z_j) as in the widely used program of Carbonneau et al. (2022), or "factor",
        H(v_k) as in the paper.
    num_bins
        the number of bins of each code.
    rule
        how the edges of bins are rounded; by default as the source of the denominator does: "min_max" for "code",
        "histogram" for "factor".

    Returns
    -------
    Score
        ``details``: ``matrix`` (D, K) normalised information; ``per_code`` (D,) gaps; ``excluded``, the factors
        with one value only, which are left out of the search for the two best.

    References
    ----------
    Li et al., "Progressive learning and disentanglement of hierarchical representations", 2020.

    Examples
    --------
    >>> factors = np.indices((4, 4)).reshape(2, -1).T  # each combination of two factors
    >>> uw.metrics.mig_sup(factors[:, ::-1], factors).details["per_code"]
    array([1., 1.])
    """
    rule = RULE_OF[denominator] if rule is None else rule
    varying = varying_factors(sample)
    bins = discretise(sample.given, num_bins, rule=rule)
    information = mutual_information_matrix(bins, sample.factors)
    entropies = entropy(sample.factors)[None, :] if denominator == "factor" else entropy(bins)[:, None]
    matrix = information / np.where(entropies > 0, entropies, 1.0)
    per_code = gap_of_two_largest(matrix[:, varying], axis=1)
    details = {"matrix": matrix, "per_code": per_code, "excluded": np.flatnonzero(~varying)}
    params = {"denominator": denominator, "num_bins": num_bins, "rule": rule}
    return Score(float(per_code.mean()), details, params)
