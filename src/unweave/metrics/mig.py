"""Mutual information gap."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unweave.metrics.discretise import discretise
from unweave.metrics.mutual_information import (
    entropy,
    gap_of_two_largest,
    mutual_information_matrix,
    varying_factors,
)
from unweave.metrics.score import Sample, Score


def mig(sample: Sample, *, num_bins: int = 20) -> Score:
    """MIG = mean over k of (I(z_a; v_k) - I(z_b; v_k)) / H(v_k), with a and b the two codes that know most.

    Chen et al., "Isolating sources of disentanglement in variational autoencoders", 2018, with codes binned
    as in disentanglement_lib (:func:`unweave.metrics.discretise.discretise`); factors stay as they are.

    ``details``: ``matrix`` (D, K) mutual information in nats; ``factor_entropy`` (K,); ``per_factor`` (K,)
    gaps; ``excluded``, the factors that have one value only: their gap is nan and the mean leaves them out.

    A perfect code of a factor with more values than bins scores below 1. With one code the second best is 0.
    A constant code knows nothing. Under 2 points, or if no factor varies: ArgumentError.
    """
    varying = varying_factors(sample)
    matrix = mutual_information_matrix(discretise(sample.codes, num_bins), sample.factors)
    return gap_score(matrix, entropy(sample.factors), varying, {"num_bins": num_bins})


def gap_score(
    matrix: npt.NDArray[np.float64],
    factor_entropy: npt.NDArray[np.float64],
    varying: npt.NDArray[np.bool_],
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
