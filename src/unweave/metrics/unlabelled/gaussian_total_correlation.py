"""Total correlation of the Gaussian that fits the codes."""

from __future__ import annotations

import numpy as np

from unweave.arrays import FloatArray
from unweave.metrics.information.mutual_information import check_rows
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.parameters import NonNegative

SINGULAR_JITTER = 1e-5


@register_metric(
    "gaussian_total_correlation",
    label="Total correlation",
    higher_is_better=False,
    takes="sample",
    factors="none",
    paper=True,
    protocols={"dlib": {"jitter": None}},
    protocol_notes={
        "jitter": "added to the diagonal of the covariance: 1e-5; nothing, unless it is singular"
    },
)
def gaussian_total_correlation(sample: Sample, *, jitter: NonNegative | None = SINGULAR_JITTER) -> Score:
    """Total correlation of the Gaussian that fits the codes, in nats.

    TC = 1/2 (sum_j log S_jj - log det S), with S the covariance of the codes (divisor n - 1): the
    Kullback-Leibler divergence of N(0, S) from the product of its marginals. Under 2 points: ArgumentError.

    Parameters
    ----------
    jitter
        what is added to the diagonal of S. None: 0, the formula of disentanglement_lib, unless S is singular
        (a constant code, or codes that depend on each other linearly): there that formula gives nan, infinity or
        what rounding decides, and 1e-5 is added. A constant code then adds 0.

    Returns
    -------
    Score
        ``details``: ``covariance`` (D, D) without jitter. ``params["jitter"]`` is what was added.

    References
    ----------
    Locatello et al., "Challenging common assumptions in the unsupervised learning of disentangled
    representations", 2019.

    Examples
    --------
    >>> codes = np.indices((4, 4)).reshape(2, -1).T
    >>> mixed = codes @ [[1, 1], [0, 1]]  # correlation 1 / sqrt(2)
    >>> print(f"{uw.metrics.gaussian_total_correlation(mixed):.4f} {np.log(2) / 2:.4f}")
    0.3466 0.3466
    """
    covariance = code_covariance(sample)
    added = (SINGULAR_JITTER if is_singular(covariance) else 0.0) if jitter is None else jitter
    value = total_correlation_of(covariance + added * np.eye(len(covariance)))
    return Score(value, {"covariance": covariance}, {"jitter": added})


def is_singular(covariance: FloatArray) -> bool:
    """Whether codes are constant or linearly dependent, up to rounding; their scales do not matter."""
    scale = np.sqrt(np.diag(covariance))
    if (scale == 0).any():
        return True
    return bool(np.linalg.eigvalsh(covariance / np.outer(scale, scale)).min() < 1e-12 * len(scale))


def total_correlation_of(covariance: FloatArray) -> float:
    """1/2 (sum log diag S - log det S); inf if S is singular, nan if a variance is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.log(np.diag(covariance)).sum() - np.linalg.slogdet(covariance)[1]
    return float(0.5 * difference)


def code_covariance(sample: Sample) -> FloatArray:
    """Covariance of the codes with divisor n - 1: (D, D). A constant code has exactly 0 everywhere."""
    check_rows(len(sample.codes))
    centred = sample.codes - sample.codes.mean(axis=0)
    centred[:, np.ptp(sample.codes, axis=0) == 0] = 0.0
    covariance: FloatArray = centred.T @ centred / (len(centred) - 1)
    return covariance
