"""JEMMIG: joint entropy minus mutual information gap."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge

from unweave.metrics.information.discretise import Rule, discretise
from unweave.metrics.information.mutual_information import (
    entropy,
    gap_of_two_largest,
    joint_entropy_matrix,
    mutual_information_matrix,
    varying_factors,
)
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample


@register_metric("jemmig", label="JEMMIG", takes="sample")
def jemmig(sample: Sample, *, num_bins: Annotated[int, Ge(2)] = 20, rule: Rule = "min_max") -> Score:
    """JEMMIG: joint entropy minus mutual information gap, turned round so that 1 is best.

    1 - mean over k of (H(z_a, v_k) - I(z_a; v_k) + I(z_b; v_k)) / (H(v_k) + log num_bins), with a and b the two
    codes that know most about factor k. Unlike MIG it punishes a code that also knows other factors: H(z_a, v_k)
    grows.

    Of codes that know equally much, a is the one with the smallest joint entropy. With one code the second best
    is 0. Under 2 points, or if no factor varies: ArgumentError.

    Parameters
    ----------
    num_bins
        the number of bins of each code.
    rule
        how the edges of bins are rounded; by default as in the program of Carbonneau et al. (2022).

    Returns
    -------
    Score
        ``details``: ``matrix`` (D, K) mutual information in nats; ``joint_entropy`` (D, K); ``best`` (K,) the
        codes a; ``per_factor`` (K,); ``excluded``, the factors with one value only, nan and not in the mean.

    References
    ----------
    Do & Tran, "Theory and evaluation metrics for learning disentangled representations", 2020.

    Examples
    --------
    >>> factors = np.indices((4, 4)).reshape(2, -1).T  # each combination of two factors
    >>> print(f"{uw.metrics.jemmig(factors, factors):.2f} {uw.metrics.jemmig(factors @ [[4], [1]], factors):.2f}")
    1.00 0.68
    """
    varying = varying_factors(sample)
    bins = discretise(sample.given, num_bins, rule=rule)
    matrix = mutual_information_matrix(bins, sample.factors)
    joint = joint_entropy_matrix(bins, sample.factors)
    as_good_as_best = matrix >= matrix.max(axis=0) - 1e-12
    best = np.where(as_good_as_best, joint, np.inf).argmin(axis=0)
    worst = entropy(sample.factors) + np.log(num_bins)
    distance = joint.min(axis=0, where=as_good_as_best, initial=np.inf) - gap_of_two_largest(matrix, axis=0)
    per_factor = np.where(varying, 1.0 - distance / worst, np.nan)
    details = {
        "matrix": matrix,
        "joint_entropy": joint,
        "best": best,
        "per_factor": per_factor,
        "excluded": np.flatnonzero(~varying),
    }
    return Score(float(per_factor[varying].mean()), details, {"num_bins": num_bins, "rule": rule})
