"""Mutual information gap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from unweave.arrays import BoolArray, FloatArray
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

Denominator = Literal["factor", "code"]
RULE_OF: dict[Denominator, Rule] = {"factor": "histogram", "code": "min_max"}


@register_metric("mig", label="MIG", takes="sample", paper=True)
def mig(
    sample: Sample, *, num_bins: Count = 20, denominator: Denominator = "factor", rule: Rule | None = None
) -> Score:
    """Mutual information gap: how much more the best code of a factor knows about it than the second best.

    MIG = mean over k of (I(z_a; v_k) - I(z_b; v_k)) / H(v_k), with a and b the two codes that know most about
    factor k. Codes are binned as in disentanglement_lib
    (:func:`~unweave.metrics.information.discretise.discretise`), factors stay as they are.

    A perfect code of a factor with more values than bins scores below 1. With one code the second best is 0. A
    constant code knows nothing. Under 2 points, or if no factor varies: ArgumentError.

    Parameters
    ----------
    num_bins
        the number of bins of each code.
    denominator
        "factor" divides by H(v_k); "code" divides each information by H(z) of its code, as the program of
        Carbonneau et al. (2022) does.
    rule
        how the edges of bins are rounded; by default as the source of the denominator does: "histogram" for
        "factor", "min_max" for "code".

    Returns
    -------
    Score
        ``details``: ``matrix`` (D, K) mutual information in nats, relative to H(z) where that is the denominator;
        ``factor_entropy`` (K,); ``per_factor`` (K,) gaps; ``excluded``, the factors that have one value only:
        their gap is nan and the mean leaves them out.

    References
    ----------
    Chen et al., "Isolating sources of disentanglement in variational autoencoders", 2018.

    Examples
    --------
    >>> factors = np.indices((4, 4)).reshape(2, -1).T  # each combination of two factors
    >>> uw.metrics.mig(-factors, factors)
    mig = 1
    >>> uw.metrics.mig(factors @ [[1, 1], [1, -1]], factors).details["per_factor"]
    array([0., 0.])
    """
    rule = RULE_OF[denominator] if rule is None else rule
    varying = varying_factors(sample)
    bins = discretise(sample.given, num_bins, rule=rule)
    matrix = mutual_information_matrix(bins, sample.factors)
    params = {"num_bins": num_bins, "denominator": denominator, "rule": rule}
    if denominator == "factor":
        return gap_score(matrix, entropy(sample.factors), varying, params)
    code_entropy = entropy(bins)[:, None]
    relative = matrix / np.where(code_entropy > 0, code_entropy, 1.0)
    score = gap_score(relative, np.ones(len(varying)), varying, params)
    return replace(score, details={**score.details, "factor_entropy": entropy(sample.factors)})


def gap_score(
    matrix: FloatArray,
    factor_entropy: FloatArray,
    varying: BoolArray,
    params: dict[str, Any],
) -> Score:
    """The mean gap of a (D, K) matrix of mutual information, relative to the factors' entropies."""
    per_factor = np.full(len(factor_entropy), np.nan)
    per_factor[varying] = gap_of_two_largest(matrix, axis=0)[varying] / factor_entropy[varying]
    details = {
        "matrix": matrix,
        "factor_entropy": factor_entropy,
        "per_factor": per_factor,
        "excluded": np.flatnonzero(~varying),
    }
    return Score(float(per_factor[varying].mean()), details, params)
