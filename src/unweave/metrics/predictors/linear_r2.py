"""How much of each factor a linear map of the codes explains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unweave.errors import ArgumentError
from unweave.metrics.information.mutual_information import varying_factors
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.metrics.solvers.standardise import standardise_samples


@register_metric("linear_r2", label="Linear R²", takes="split", in_sample=True, factors="any")
def linear_r2(train: Sample, test: Sample | None = None, *, ordered: Sequence[int] | None = None) -> Score:
    """How much of each factor a linear map of the codes explains.

    Mean over factors of R^2 = 1 - |v - prediction|^2 / |v - mean v|^2 of least squares from all codes. Factors
    count as numbers, so the score makes sense for ordered and continuous ones. Measured on the points that it was
    fitted to, R^2 of D codes of noise is about D / n, and 1 from n = D + 1 downwards; on other points it is below 0
    where the map predicts worse than their mean would.

    A constant code has coefficient 0. A factor with one value among the points to judge on has no R^2 and is left out.
    Under 2 points, or if no chosen factor varies: ArgumentError.

    Parameters
    ----------
    ordered
        the columns of the factors that are ordered; all by default.

    Returns
    -------
    Score
        ``details``: ``per_factor`` (K,), nan for factors that were left out; ``excluded``, those among them that
        have one value only, to learn from or to judge on; ``coefficients`` (D, K) of codes and factors scaled to
        unit variance.

    Examples
    --------
    >>> sources = np.random.default_rng(0).normal(size=(500, 2))
    >>> uw.metrics.linear_r2(sources @ [[1, 1], [1, -1]], sources)
    linear_r2 = 1
    """
    test = train if test is None else test
    num_factors = train.factors.shape[1]
    varying = varying_factors(train) & (np.ptp(test.factors, axis=0) > 0)
    chosen = np.zeros(num_factors, dtype=bool)
    for column in range(num_factors) if ordered is None else ordered:
        if not 0 <= column < num_factors:
            raise ArgumentError("ordered", ordered, f"needs columns from 0 to {num_factors - 1}")
        chosen[column] = True
    used = chosen & varying
    if not used.any():
        raise ArgumentError("ordered", ordered, "needs a factor that varies in the sample")
    scaled, judged = standardise_samples(train, test)
    factors, truth = (part.factors[:, used].astype(np.float64) for part in (train, test))
    centre, spread = factors.mean(axis=0), factors.std(axis=0)
    weights = np.linalg.lstsq(scaled.codes, (factors - centre) / spread)[0]
    error = (truth - centre) / spread - judged.codes @ weights
    guessing = (truth - truth.mean(axis=0)) / spread
    per_factor = np.full(num_factors, np.nan)
    per_factor[used] = 1.0 - np.square(error).mean(axis=0) / np.square(guessing).mean(axis=0)
    coefficients = np.zeros((train.codes.shape[1], num_factors))
    coefficients[:, used] = weights
    details = {
        "per_factor": per_factor,
        "excluded": np.flatnonzero(chosen & ~varying),
        "coefficients": coefficients,
    }
    params = {"ordered": None if ordered is None else list(ordered)}
    return Score(float(per_factor[used].mean()), details, params)
