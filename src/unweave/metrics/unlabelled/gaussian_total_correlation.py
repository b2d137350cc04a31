"""Total correlation of the Gaussian that fits the codes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unweave.errors import ArgumentError
from unweave.metrics.information.mutual_information import check_rows
from unweave.metrics.score import Sample, Score

SINGULAR_JITTER = 1e-5


def gaussian_total_correlation(sample: Sample, *, jitter: float | None = None) -> Score:
    """TC = 1/2 (sum_j log S_jj - log det S) in nats, with S the covariance of the codes (divisor n - 1).

    Locatello et al. (2019): the Kullback-Leibler divergence of N(0, S) from the product of its marginals.
    ``jitter`` is added to the diagonal of S. By default it is 0, the formula of disentanglement_lib, unless S
    is singular (a constant code, or codes that depend on each other linearly): there that formula gives nan,
    infinity or what rounding decides, and 1e-5 is added. A constant code then adds 0.

    ``details``: ``covariance`` (D, D) without jitter; ``jitter``, what was added.
    Factors are not used. Under 2 points: ArgumentError.
    """
    if jitter is not None and not jitter >= 0:
        raise ArgumentError("jitter", jitter, "needs a number >= 0")
    covariance = code_covariance(sample)
    added = (SINGULAR_JITTER if is_singular(covariance) else 0.0) if jitter is None else jitter
    value = total_correlation_of(covariance + added * np.eye(len(covariance)))
    return Score(value, {"covariance": covariance, "jitter": added}, {"jitter": jitter})


def is_singular(covariance: npt.NDArray[np.float64]) -> bool:
    """Whether codes are constant or linearly dependent, up to rounding; their scales do not matter."""
    scale = np.sqrt(np.diag(covariance))
    if (scale == 0).any():
        return True
    return bool(np.linalg.eigvalsh(covariance / np.outer(scale, scale)).min() < 1e-12 * len(scale))


def total_correlation_of(covariance: npt.NDArray[np.float64]) -> float:
    """1/2 (sum log diag S - log det S); inf if S is singular, nan if a variance is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.log(np.diag(covariance)).sum() - np.linalg.slogdet(covariance)[1]
    return float(0.5 * difference)


def code_covariance(sample: Sample) -> npt.NDArray[np.float64]:
    """Covariance of the codes with divisor n - 1: (D, D). A constant code has exactly 0 everywhere."""
    check_rows(len(sample.codes))
    centred = sample.codes - sample.codes.mean(axis=0)
    centred[:, np.ptp(sample.codes, axis=0) == 0] = 0.0
    covariance: npt.NDArray[np.float64] = centred.T @ centred / (len(centred) - 1)
    return covariance
