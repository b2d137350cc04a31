"""Total correlation of the aggregated posterior, by sampling."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from unweave.arrays import AnyArray, FloatArray
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.unlabelled.posterior import (
    DENSITIES_AT_ONCE,
    check_posterior,
    correlated_noise,
    dependence_of,
    marginal_log_densities,
)
from unweave.parameters import Correlation, Count, Seed

Density = Literal["exact", "factorised"]


@register_metric(
    "monte_carlo_total_correlation",
    label="Total correlation of q(z)",
    higher_is_better=False,
    takes="posterior",
    factors="none",
)
def monte_carlo_total_correlation(
    mean: AnyArray,
    log_variance: AnyArray,
    *,
    batch_size: Count = 64,
    samples: Count = 30,
    seed: Seed = 0,
    correlation: Correlation = 0.0,
    density: Density = "exact",
) -> Score:
    """Total correlation of the aggregated posterior by sampling, in nats.

    TC = E[log q(z) - sum_j log q(z_j)], with q(z) a mixture of B = ``batch_size`` posteriors q(z | x_i) =
    N(mean_i, diag(sigma_i) R diag(sigma_i)), drawn without replacement from the rows.

    The value belongs to the mixture of the drawn rows. As B grows it approaches that of the whole data set, as a
    rule from above: where posteriors hardly overlap, the rows themselves are a dependence. With fewer than
    ``batch_size`` rows all are used. One row of independent noise gives 0, as does a single code.

    Parameters
    ----------
    batch_size
        B, the number of posteriors.
    samples
        the number of points z from each.
    correlation
        s, where the noise of the posterior is correlated: R = (1 - s) I + s 11^T (the paper's equations 11 and
        12).
    density
        of the posteriors at points drawn with that noise: "exact", with R; "factorised", as appendix D writes it for
        s = 0 whatever the noise, so that correlated noise does not add its own total correlation,
        -1/2 log det R (9.3 nats for s = 0.9 and 10 codes). That is the footing of the paper's KL term.

    Returns
    -------
    Score
        ``details``: ``standard_error`` of the sampling of z given the rows; ``rows``, the rows drawn.

    References
    ----------
    Yang et al., "Towards better understanding of disentangled representations via mutual information", appendix D.

    Examples
    --------
    >>> mean = np.random.default_rng(0).normal(size=(200, 2))
    >>> score = uw.metrics.monte_carlo_total_correlation(mean, np.zeros((200, 2)))
    >>> abs(score.value) < 0.1
    True
    """
    mean, log_variance = check_posterior(mean, log_variance)
    generator = np.random.default_rng(seed)
    rows = np.sort(generator.choice(len(mean), size=min(batch_size, len(mean)), replace=False))
    mean, log_variance = mean[rows], log_variance[rows]
    noise = correlated_noise(generator, (samples, *mean.shape), correlation)
    points = (mean + np.exp(0.5 * log_variance) * noise).reshape(-1, mean.shape[1])
    at_once = max(1, DENSITIES_AT_ONCE // mean.size)
    ratios = np.concatenate(
        [
            _log_ratio(
                points[start : start + at_once],
                mean,
                log_variance,
                correlation if density == "exact" else 0.0,
            )
            for start in range(0, len(points), at_once)
        ]
    )
    details = {"standard_error": float(ratios.std() / math.sqrt(len(ratios))), "rows": rows}
    params: dict[str, Any] = {
        "batch_size": batch_size,
        "samples": samples,
        "seed": seed,
        "correlation": correlation,
    }
    params["density"] = density
    return Score(float(ratios.mean()), details, params)


def _log_ratio(
    points: FloatArray, mean: FloatArray, log_variance: FloatArray, correlation: float
) -> FloatArray:
    """log q(z) - sum_j log q(z_j) of each point."""
    from scipy.special import logsumexp

    parts = marginal_log_densities(points, mean, log_variance)
    whole = parts.sum(axis=2)
    if correlation:
        whole = whole + _dependence(points, mean, log_variance, correlation)
    rows, size = mean.shape
    marginals = logsumexp(parts, axis=1).sum(axis=1) - (size - 1) * math.log(rows)
    ratio: FloatArray = logsumexp(whole, axis=1) - marginals
    return ratio


def _dependence(
    points: FloatArray, mean: FloatArray, log_variance: FloatArray, correlation: float
) -> FloatArray:
    """log q(z | x) - sum_j log q(z_j | x) of correlated noise, (points, rows)."""
    scaled = (points[:, None, :] - mean) * np.exp(-0.5 * log_variance)
    return dependence_of(np.square(scaled).sum(axis=2), scaled.sum(axis=2), mean.shape[1], correlation)
