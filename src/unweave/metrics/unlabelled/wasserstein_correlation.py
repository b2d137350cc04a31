"""Wasserstein distance of the Gaussian that fits the codes from an independent one."""

from __future__ import annotations

import numpy as np

from unweave.arrays import FloatArray
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.metrics.unlabelled.gaussian_total_correlation import code_covariance


@register_metric(
    "wasserstein_correlation",
    label="Wasserstein correlation",
    higher_is_better=False,
    takes="sample",
    factors="none",
)
def wasserstein_correlation(sample: Sample, *, normalised: bool = False) -> Score:
    """Wasserstein distance of the Gaussian that fits the codes from an independent one.

    W = 2 tr S - 2 tr (D^1/2 S D^1/2)^1/2, with S the covariance of the codes and D its diagonal: the squared
    2-Wasserstein distance between N(0, S) and the product of its marginals, N(0, D). As in disentanglement_lib.

    Constant codes add nothing; if all codes are constant the value is 0. Under 2 points: ArgumentError.

    Parameters
    ----------
    normalised
        divide by tr S, which makes the value free of scale.

    Returns
    -------
    Score
        ``details``: ``distance`` and ``normalised`` (both values); ``covariance`` (D, D).

    References
    ----------
    Locatello et al., "Challenging common assumptions in the unsupervised learning of disentangled
    representations", 2019.

    Examples
    --------
    >>> codes = np.indices((4, 4)).reshape(2, -1).T
    >>> uw.metrics.wasserstein_correlation(codes)
    wasserstein_correlation = 0
    >>> uw.metrics.wasserstein_correlation(codes[:, [0, 0]], normalised=True).details["normalised"]
    0.58
    """
    covariance = code_covariance(sample)
    distance, trace = wasserstein_of(covariance), float(np.trace(covariance))
    relative = distance / trace if trace > 0 else 0.0
    details = {"distance": distance, "normalised": relative, "covariance": covariance}
    return Score(relative if normalised else distance, details, {"normalised": normalised})


def wasserstein_of(covariance: FloatArray) -> float:
    """2 tr S - 2 tr (D^1/2 S D^1/2)^1/2 of one covariance matrix; never below 0.

    With S = F F^T the trace of the root is the sum of the singular values of D^1/2 F. F comes from the
    correlations, so that singular S and codes of very different scale keep their digits.
    """
    scale = np.sqrt(np.diag(covariance))
    divisor = np.where(scale > 0, scale, 1.0)
    eigenvalues, vectors = np.linalg.eigh(covariance / divisor[:, None] / divisor[None, :])
    factor = np.square(scale)[:, None] * vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    root = np.linalg.svd(factor, compute_uv=False).sum()
    return float(max(0.0, 2 * np.trace(covariance) - 2 * root))
