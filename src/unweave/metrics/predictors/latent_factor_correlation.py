"""Correlation of single latents with single factors, such as one that no stage has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from unweave.metrics.information.mutual_information import check_rows
from unweave.metrics.predictors.mcc import correlation_matrix
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample


def _per_factor(score: Score, names: Sequence[str]) -> Mapping[str, float]:
    """The largest correlation of each factor, by its name."""
    best = score.details["per_factor"]
    known = names if len(names) == len(best) else [f"factor{index}" for index in range(len(best))]
    return {name: float(value) for name, value in zip(known, best, strict=True)}


@register_metric(
    "latent_factor_correlation",
    label="correlation",
    takes="split",
    in_sample=True,
    factors="any",
    rows=_per_factor,
    in_all=False,
)
def latent_factor_correlation(
    train: Sample, test: Sample | None = None, *, method: Literal["spearman", "pearson"] = "spearman"
) -> Score:
    r"""How strongly the best latent of each factor is correlated with it.

    .. math:: \frac{1}{K} \sum_k \max_j |\mathrm{corr}(z_j, v_k)|

    Other than mcc, one latent may serve several factors, and every factor counts. The multi-stage paper (2020, figure
    16) shows such a correlation of its one latent z with a factor that the model was not given, the mass of a pendulum:
    score the part "z" alone, and read the factor's own row, ``latent_factor_correlation.mass``. Which latent is the
    best is decided on the points to learn from, its correlation is that of the points to judge on.

    A constant latent or factor has correlation 0. Under 2 points: ArgumentError.

    Parameters
    ----------
    method
        "spearman" for correlations of ranks (ties share their mean rank), which see any monotone relation; "pearson"
        for linear ones.

    Returns
    -------
    Score
        ``details``: ``matrix`` (D, K) of correlations with their signs, of the points to judge on; ``codes`` (K,), the
        best latent of each factor; ``per_factor`` (K,), its absolute correlation.

    Examples
    --------
    >>> factors = np.random.default_rng(0).uniform(size=(500, 2))
    >>> score = uw.metrics.latent_factor_correlation(-factors[:, :1] ** 3, factors)
    >>> score.details["per_factor"].round(1)
    array([1. , 0.1])
    """
    check_rows(len(train.codes))
    matrix = known = correlation_matrix(train.codes, train.factors, method)
    if test is not None:
        check_rows(len(test.codes))
        matrix = correlation_matrix(test.codes, test.factors, method)
    codes = np.abs(known).argmax(axis=0)
    per_factor = np.abs(matrix)[codes, np.arange(matrix.shape[1])]
    details = {"matrix": matrix, "per_factor": per_factor, "codes": codes}
    return Score(float(per_factor.mean()), details, {"method": method})
