"""Interventional robustness score."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Gt, Le

from unweave.arrays import FloatArray, IntArray
from unweave.metrics.information.discretise import discretise
from unweave.metrics.information.mutual_information import check_rows
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.parameters import Count


@register_metric("irs", label="IRS", takes="sample")
def irs(
    sample: Sample, *, diff_quantile: Annotated[float, Gt(0), Le(1)] = 0.99, num_bins: Count = 20
) -> Score:
    """Interventional robustness score: how little a code moves while its factor is held fixed.

    For factor k with values g, and code z_j: d(g) = the ``diff_quantile`` quantile, over points with v_k = g, of
    |z_j - mean(z_j | v_k = g)|. Then IRS_jk = 1 - mean over g of d(g) / max |z_j - mean z_j|, a code's score is
    max over k, and the value is their mean weighted with the codes' largest deviations. As in
    disentanglement_lib.

    A constant code is not active: its row, score and weight are 0. If no code is active the value is 0. Factor
    values seen once deviate by 0, so samples of few points per value score too high. Weights make the value
    depend on the scale of each code. Under 2 points: ArgumentError.

    Parameters
    ----------
    diff_quantile
        1 is the paper's maximum; 0.99 is the library's default.
    num_bins
        factors are first put into this many bins of equal width, as the library does.

    Returns
    -------
    Score
        ``details``: ``matrix`` (D, K); ``per_code`` (D,); ``parents`` (D,) the factors of largest entry;
        ``max_deviations`` (D,); ``active`` (D,) bool.

    References
    ----------
    Suter et al., "Robustly disentangled causal mechanisms", 2019.

    Examples
    --------
    >>> factors = np.random.default_rng(0).integers(0, 4, (500, 2))
    >>> uw.metrics.irs(factors @ [[1, 1], [0, 1]], factors).details["per_code"].round(2)
    array([1. , 0.5])
    """
    check_rows(len(sample.codes))
    active = np.ptp(sample.codes, axis=0) > 0
    codes = sample.codes[:, active]
    weights = np.zeros(len(active))
    weights[active] = np.abs(codes - codes.mean(axis=0)).max(axis=0, initial=0.0)
    matrix = np.zeros((len(active), sample.factors.shape[1]))
    for k, groups in enumerate(discretise(sample.factors, num_bins).T):
        matrix[active, k] = 1.0 - _mean_deviation(codes, groups, diff_quantile) / weights[active]
    per_code = matrix.max(axis=1)
    details = {
        "matrix": matrix,
        "per_code": per_code,
        "parents": matrix.argmax(axis=1),
        "max_deviations": weights,
        "active": active,
    }
    value = float(np.average(per_code, weights=weights)) if active.any() else 0.0
    return Score(value, details, {"diff_quantile": diff_quantile, "num_bins": num_bins})


def _mean_deviation(codes: FloatArray, groups: IntArray, quantile: float) -> FloatArray:
    """Mean over groups of the quantile of distances to the group's mean: (D,)."""
    order = np.argsort(groups, kind="stable")
    parts = np.split(codes[order], np.flatnonzero(np.diff(groups[order])) + 1)
    deviations = [np.quantile(np.abs(part - part.mean(axis=0)), quantile, axis=0) for part in parts]
    mean: FloatArray = np.mean(deviations, axis=0)
    return mean
