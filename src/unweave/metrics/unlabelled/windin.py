"""WINDIN: weighted independent informativeness of codes."""

from __future__ import annotations

import math

import numpy as np

from unweave.arrays import AnyArray
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


@register_metric("windin", label="WINDIN", takes="posterior", factors="none")
def windin(
    mean: AnyArray,
    log_variance: AnyArray,
    *,
    samples: Count = 1000,
    seed: Seed = 0,
    correlation: Correlation = 0.0,
) -> Score:
    """WINDIN, weighted independent informativeness: what a code knows about the image that no other code knows.

    sum_i rho_i (I(z_i; x) - I(z_i; z_rest)), rho_i = I(z_i; x) / sum_j I(z_j; x), in nats. x is uniform over the
    n rows, the posterior is Gaussian, and ``samples`` points z ~ q(z) estimate the two differences log q(z_i | x)
    - log q(z_i) and log q(z) - log q(z_i) - log q(z_rest). With independent noise the terms equal I(z_i; x |
    z_rest), so the paper's WSEPIN has the same value. Negative estimates of information count as 0, as in the
    paper's program.

    With n rows no information exceeds log n: where the rows' posteriors hardly overlap, every code seems to be
    known from the others and the value tends to 0. Give as many rows as memory and time allow. If no code knows
    anything (one row, or posteriors all alike) the value is 0. With D = 1 nothing is shared.

    Parameters
    ----------
    samples
        the number of points z.
    correlation
        where the noise of the posterior is correlated, as in
        :func:`~unweave.metrics.monte_carlo_total_correlation`; codes then share the noise, too, and a term may be
        negative.

    Returns
    -------
    Score
        ``details``: ``per_code`` (D,) the differences; ``informativeness`` (D,) I(z_i; x); ``dependence`` (D,)
        I(z_i; z_rest); ``weights`` (D,).

    References
    ----------
    Do & Tran, "Theory and evaluation metrics for learning disentangled representations", 2020.

    Examples
    --------
    >>> mean = np.random.default_rng(0).normal(size=(200, 2)) * [1, 0]
    >>> uw.metrics.windin(mean, log_variance=np.full((200, 2), -2.0) * [1, 0]).details["weights"].round(1)
    array([1., 0.])
    """
    from scipy.special import logsumexp

    mean, log_variance = check_posterior(mean, log_variance)
    generator = np.random.default_rng(seed)
    rows = generator.integers(len(mean), size=samples)
    noise = correlated_noise(generator, (samples, mean.shape[1]), correlation)
    points = mean[rows] + np.exp(0.5 * log_variance[rows]) * noise
    at_once = max(1, DENSITIES_AT_ONCE // mean.size)
    known, shared = np.zeros(mean.shape[1]), np.zeros(mean.shape[1])
    for start in range(0, samples, at_once):
        part = slice(start, start + at_once)
        densities = marginal_log_densities(points[part], mean, log_variance)
        whole = densities.sum(axis=2)
        rest = whole[:, :, None] - densities
        if correlation:
            scaled = (points[part, None, :] - mean) * np.exp(-0.5 * log_variance)
            squares, sums = np.square(scaled).sum(axis=2), scaled.sum(axis=2)
            whole = whole + dependence_of(squares, sums, mean.shape[1], correlation)
            squares, sums = squares[:, :, None] - np.square(scaled), sums[:, :, None] - scaled
            rest = rest + dependence_of(squares, sums, mean.shape[1] - 1, correlation)
        alone = logsumexp(densities, axis=1) - math.log(len(mean))
        together = logsumexp(whole, axis=1)[:, None] - logsumexp(rest, axis=1)
        given = -0.5 * (np.square(noise[part]) + log_variance[rows[part]] + math.log(2 * math.pi))
        known += (given - alone).sum(axis=0)
        shared += (together - alone).sum(axis=0)
    known, shared = np.maximum(known / samples, 0.0), np.maximum(shared / samples, 0.0)
    weights = known / known.sum() if known.sum() > 0 else np.zeros_like(known)
    per_code = known - shared
    details = {"per_code": per_code, "informativeness": known, "dependence": shared, "weights": weights}
    return Score(
        float(weights @ per_code), details, {"samples": samples, "seed": seed, "correlation": correlation}
    )
