"""How much of each factor a linear map of the codes explains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unweave.errors import ArgumentError
from unweave.metrics.information.mutual_information import varying_factors
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample


@register_metric("linear_r2", label="Linear R²", takes="sample", factors="any")
def linear_r2(sample: Sample, *, ordered: Sequence[int] | None = None) -> Score:
    """How much of each factor a linear map of the codes explains.

    Mean over factors of R^2 = 1 - |v - prediction|^2 / |v - mean v|^2 of least squares from all codes. Factors
    count as numbers, so the score makes sense for ordered and continuous ones. Fit and measured on the same
    points: with D codes of noise R^2 is about D / n, and 1 from n = D + 1 downwards.

    A constant code has coefficient 0. Under 2 points, or if no chosen factor varies: ArgumentError.

    Parameters
    ----------
    ordered
        the columns of the factors that are ordered; all by default.

    Returns
    -------
    Score
        ``details``: ``per_factor`` (K,), nan for factors that were left out; ``excluded``, those among them that
        have one value only; ``coefficients`` (D, K) of codes and factors scaled to unit variance.

    Examples
    --------
    >>> sources = np.random.default_rng(0).normal(size=(500, 2))
    >>> uw.metrics.linear_r2(sources @ [[1, 1], [1, -1]], sources)
    linear_r2 = 1
    """
    varying = varying_factors(sample)
    num_factors = sample.factors.shape[1]
    chosen = np.zeros(num_factors, dtype=bool)
    for column in range(num_factors) if ordered is None else ordered:
        if not 0 <= column < num_factors:
            raise ArgumentError("ordered", ordered, f"needs columns from 0 to {num_factors - 1}")
        chosen[column] = True
    used = chosen & varying
    if not used.any():
        raise ArgumentError("ordered", ordered, "needs a factor that varies in the sample")
    codes, factors = sample.codes, sample.factors[:, used].astype(np.float64)
    active = np.ptp(codes, axis=0) > 0
    inputs = (codes - codes.mean(axis=0)) * np.where(active, 1 / np.where(active, codes.std(axis=0), 1), 0)
    targets = (factors - factors.mean(axis=0)) / factors.std(axis=0)
    weights = np.linalg.lstsq(inputs, targets)[0]
    per_factor = np.full(num_factors, np.nan)
    per_factor[used] = 1.0 - np.square(targets - inputs @ weights).mean(axis=0)
    coefficients = np.zeros((codes.shape[1], num_factors))
    coefficients[:, used] = weights
    details = {
        "per_factor": per_factor,
        "excluded": np.flatnonzero(chosen & ~varying),
        "coefficients": coefficients,
    }
    params = {"ordered": None if ordered is None else list(ordered)}
    return Score(float(per_factor[used].mean()), details, params)
