"""Is the information of each code about the image the same whatever the other codes are? (Yang et al., Assumption 2)"""

from __future__ import annotations

import math
from typing import NamedTuple

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


@register_metric(
    "information_invariance",
    label="Gap of information",
    higher_is_better=False,
    takes="posterior",
    factors="none",
    parts={
        "information": "I(z; x)",
        "information_of_codes": "sum of I(z_j; x)",
        "total_correlation": "TC of q(z)",
        "conditional_total_correlation": "mean TC of q(z|x)",
        "left": "Theorem 1, left side",
        "right": "Theorem 1, right side",
    },
)
def information_invariance(
    mean: AnyArray,
    log_variance: AnyArray,
    *,
    batch_size: Count = 512,
    samples: Count = 10,
    seed: Seed = 0,
    correlation: Correlation = 0.0,
) -> Score:
    r"""How far the information of a code about the image depends on the other codes, in nats.

    Assumption 2 of Yang et al. says of a disentangled representation that
    :math:`I(z_j; x \mid z_{-j}) = I(z_j; x)` for every code j and any set of other codes. The value takes all others:
    it is the mean over codes of the absolute difference of the two, 0 if the assumption holds. Their Theorem 1 says
    what decides it,

    .. math:: I(z; x) - \sum_j I(z_j; x) = E_x[TC(q(z|x))] - TC(q(z)),

    so that noise which is correlated given x (the first term on the right) breaks it even where q(z) factorises.

    Images are B rows drawn without replacement, each with probability 1 / B, so that q(z) is a mixture of B Gaussians
    and no information exceeds log B. All expectations are means over draws of z. The left side of the theorem is from
    one set of draws; the right side from another, with its first term in closed form: that they agree is a check of
    theorem and estimates, not of arithmetic.

    Parameters
    ----------
    batch_size
        B, the number of posteriors in the mixture; all rows if there are fewer.
    samples
        draws of z from each, for each side.
    correlation
        s of the posterior's noise covariance (1 - s) I + s 11^T. ``uw.evaluate`` knows it from the method.

    Returns
    -------
    Score
        ``details``: ``information`` I(z; x); ``information_of_codes``, the sum of I(z_j; x); ``total_correlation`` of
        q(z); ``conditional_total_correlation``, the mean one of q(z|x); ``left`` and ``right`` of Theorem 1, and
        ``standard_error`` of their difference; ``per_code`` (D,) I(z_j; x); ``per_code_given_others`` (D,)
        I(z_j; x | z_rest); ``gap`` (D,), their difference.

    References
    ----------
    Yang et al., "Towards better understanding of disentangled representations via mutual information", section 4.

    Examples
    --------
    >>> mean = np.random.default_rng(0).normal(size=(300, 2))
    >>> score = uw.metrics.information_invariance(mean, np.zeros((300, 2)), correlation=0.9)
    >>> print(f"{score.details['left']:.2f} {score.details['conditional_total_correlation']:.2f}")
    0.68 0.83
    """
    mean, log_variance = check_posterior(mean, log_variance)
    generator = np.random.default_rng(seed)
    rows = np.sort(generator.choice(len(mean), size=min(batch_size, len(mean)), replace=False))
    mean, log_variance = mean[rows], log_variance[rows]
    one, other = (_draw(mean, log_variance, samples, correlation, generator) for _ in range(2))
    size = mean.shape[1]
    conditional = -0.5 * ((size - 1) * math.log1p(-correlation) + math.log1p((size - 1) * correlation))
    per_code = one.of_each.mean(axis=0)
    given_others = (one.of_all[:, None] - one.of_others).mean(axis=0)
    gap = given_others - per_code
    left = one.of_all - one.of_each.sum(axis=1)
    right = conditional - other.dependence
    details = {
        "information": float(one.of_all.mean()),
        "information_of_codes": float(per_code.sum()),
        "total_correlation": float(other.dependence.mean()),
        "conditional_total_correlation": conditional,
        "left": float(left.mean()),
        "right": float(right.mean()),
        "standard_error": float(math.sqrt((left.var() + right.var()) / len(left))),
        "per_code": per_code,
        "per_code_given_others": given_others,
        "gap": gap,
    }
    params = {"batch_size": batch_size, "samples": samples, "seed": seed, "correlation": correlation}
    return Score(float(np.abs(gap).mean()), details, params)


class _Draws(NamedTuple):
    """Log ratios at draws of z: of the densities given x and marginal ones, whose means are informations.

    ``of_all`` (n,) for z, ``of_each`` (n, D) for z_j, ``of_others`` (n, D) for all codes but j; ``dependence`` (n,) is
    log q(z) - sum_j log q(z_j).
    """

    of_all: FloatArray
    of_each: FloatArray
    of_others: FloatArray
    dependence: FloatArray


def _draw(
    mean: FloatArray,
    log_variance: FloatArray,
    samples: int,
    correlation: float,
    generator: np.random.Generator,
) -> _Draws:
    """``samples`` draws from each of the posteriors (B, D), in blocks that fit into memory."""
    noise = correlated_noise(generator, (samples, *mean.shape), correlation)
    points = (mean + np.exp(0.5 * log_variance) * noise).reshape(-1, mean.shape[1])
    source = np.tile(np.arange(len(mean)), samples)
    at_once = max(1, DENSITIES_AT_ONCE // (2 * mean.size))
    blocks = [
        _log_ratios(
            points[start : start + at_once], source[start : start + at_once], mean, log_variance, correlation
        )
        for start in range(0, len(points), at_once)
    ]
    return _Draws(*(np.concatenate(part) for part in zip(*blocks, strict=True)))


def _log_ratios(
    points: FloatArray, source: AnyArray, mean: FloatArray, log_variance: FloatArray, correlation: float
) -> _Draws:
    """The ratios at points (n, D), each drawn from the posterior of row ``source`` (n,)."""
    from scipy.special import logsumexp

    size, everyone = mean.shape[1], np.arange(len(points))
    each = marginal_log_densities(points, mean, log_variance)  # (n, B, D)
    scaled = (points[:, None, :] - mean) * np.exp(-0.5 * log_variance)
    squares, sums = np.square(scaled).sum(axis=2), scaled.sum(axis=2)
    whole = each.sum(axis=2) + dependence_of(squares, sums, size, correlation)
    log_rows = math.log(len(mean))
    marginal = logsumexp(whole, axis=1) - log_rows
    marginals = logsumexp(each, axis=1) - log_rows
    of_others = np.zeros((len(points), size))
    for j in range(size):
        rest = each.sum(axis=2) - each[:, :, j]
        if size > 1:
            rest += dependence_of(
                squares - scaled[:, :, j] ** 2, sums - scaled[:, :, j], size - 1, correlation
            )
        of_others[:, j] = rest[everyone, source] - (logsumexp(rest, axis=1) - log_rows)
    return _Draws(
        whole[everyone, source] - marginal,
        each[everyone, source] - marginals,
        of_others,
        marginal - marginals.sum(axis=1),
    )
