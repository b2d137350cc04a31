"""Unsupervised disentanglement ranking: do models agree on their codes?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np

from unweave.arrays import AnyArray, BoolArray, FloatArray, as_array
from unweave.errors import ArgumentError
from unweave.metrics.predictors.mcc import correlation_matrix
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import check_codes
from unweave.parameters import NonNegative

Method = Literal["lasso", "spearman"]
_ITERATIONS = 1_000


@register_metric("udr", label="UDR", takes="models", factors="none")
def udr(
    codes_list: Sequence[AnyArray],
    *,
    kl_list: Sequence[AnyArray] | None = None,
    method: Method = "lasso",
    kl_threshold: float = 0.01,
    lasso_alpha: NonNegative = 0.1,
) -> Score:
    """Unsupervised disentanglement ranking: whether models agree on their codes.

    Mean over models of the median agreement of a model's codes with those of the other models, as in
    disentanglement_lib. R(i, j) is, between the standardised codes of models i and j, |Spearman's correlation| or
    |the coefficients of a lasso regression| from i to j; its score is
    :func:`~unweave.metrics.unlabelled.udr.relative_strength`. Model i gets the median over j != i of the score of
    R(j, i).

    As in disentanglement_lib, one constant latent that is not left out halves the scores of its model for
    "spearman". A model of which no latent is left agrees with nobody: 0.

    Parameters
    ----------
    kl_list
        for each model the mean KL of each latent, (D,): latents at or below ``kl_threshold`` are set to 0 and
        left out. Without it all latents count.
    method
        "lasso" or "spearman".
    kl_threshold
        the limit below which a latent is left out.
    lasso_alpha
        the weight of the l1 penalty.

    Returns
    -------
    Score
        ``details``: ``per_model`` (M,); ``pairwise`` (M, M); ``correlations`` (M, M, D, D), for "spearman" nan
        where a latent is constant or left out; ``converged`` (M, M), of the lasso in 1,000 rounds.

    References
    ----------
    Duan et al., "Unsupervised model selection for variational disentangled representation learning", 2020.

    Examples
    --------
    >>> codes = np.random.default_rng(0).normal(size=(500, 3))
    >>> score = uw.metrics.udr([codes, -codes[:, ::-1], 2 * codes], method="spearman")
    >>> score.details["per_model"].round(1)
    array([0.9, 0.9, 0.9])
    """
    from unweave.metrics.solvers.standardise import standardise

    codes = _checked(codes_list)
    kept = _kept(kl_list, kl_threshold, codes)
    codes = [np.where(keep, standardise(one), 0.0) for one, keep in zip(codes, kept, strict=True)]
    models, size = len(codes), codes[0].shape[1]
    correlations = np.zeros((models, models, size, size))
    pairwise, converged = np.zeros((models, models)), np.ones((models, models), dtype=bool)
    for i in range(models):
        for j in range(models):
            if i != j:
                matrix, converged[i, j] = _agreement(codes[i], codes[j], method, lasso_alpha)
                correlations[i, j] = matrix
                pairwise[i, j] = relative_strength(matrix[kept[i]][:, kept[j]])
    per_model = np.array([np.median(np.delete(pairwise[:, i], i)) for i in range(models)])
    details = {
        "per_model": per_model,
        "pairwise": pairwise,
        "correlations": correlations,
        "converged": converged,
    }
    params = {"method": method, "kl_threshold": kl_threshold, "lasso_alpha": lasso_alpha}
    return Score(float(per_model.mean()), details, params)


def relative_strength(correlations: FloatArray) -> float:
    """Mean over rows of max^2 / sum, averaged with the same over columns; 0 for rows or columns of zeros.

    Rows and columns with a nan count as 0. So a constant latent, which is a row of nan, costs one term over rows but
    all terms over columns: one of the two halves is 0.
    """
    if correlations.size == 0:
        return 0.0
    means = []
    for axis in (0, 1):
        total, largest = correlations.sum(axis=axis), correlations.max(axis=axis)
        means.append(np.mean(np.where(total > 0, largest**2 / np.where(total > 0, total, 1.0), 0.0)))
    return float(np.mean(means))


def _agreement(
    first: FloatArray, second: FloatArray, method: Method, lasso_alpha: float
) -> tuple[FloatArray, bool]:
    """The matrix R from the first to the second model, and whether the solver converged."""
    if method == "lasso":
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import Lasso

        model = Lasso(
            alpha=lasso_alpha,
            fit_intercept=True,
            precompute=False,
            copy_X=True,
            max_iter=_ITERATIONS,
            tol=1e-4,
            warm_start=False,
            positive=False,
            random_state=None,
            selection="cyclic",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(first, second)
        coefficients: FloatArray = np.abs(np.atleast_2d(model.coef_)).T
        return coefficients, bool(np.max(model.n_iter_) < _ITERATIONS)
    matrix = np.abs(correlation_matrix(first, second, "spearman"))
    matrix[np.ptp(first, axis=0) == 0, :] = np.nan
    matrix[:, np.ptp(second, axis=0) == 0] = np.nan
    return matrix, True


def _checked(codes_list: Sequence[AnyArray]) -> list[FloatArray]:
    if not isinstance(codes_list, Sequence | np.ndarray):
        raise ArgumentError("codes_list", type(codes_list).__name__, "needs a list of arrays, one per model")
    if len(codes_list) < 2:
        raise ArgumentError("codes_list", f"{len(codes_list)} model(s)", "needs at least 2 models")
    checked = [check_codes(codes, f"codes_list[{i}]") for i, codes in enumerate(codes_list)]
    for i, codes in enumerate(checked):
        if codes.shape != checked[0].shape or len(codes) < 2:
            raise ArgumentError(
                f"codes_list[{i}]",
                f"array of shape {codes.shape}",
                "needs (n, D) with n >= 2, the same for all models",
            )
    return checked


def _kept(kl_list: Sequence[AnyArray] | None, threshold: float, codes: list[FloatArray]) -> list[BoolArray]:
    size = codes[0].shape[1]
    if kl_list is None:
        return [np.ones(size, dtype=bool) for _ in codes]
    if len(kl_list) != len(codes):
        raise ArgumentError("kl_list", f"{len(kl_list)} model(s)", f"needs {len(codes)}, as codes_list")
    kept = []
    for i, kl in enumerate(kl_list):
        values = as_array(kl, f"kl_list[{i}]")
        numbers = values.dtype.kind in "fiu" and values.shape == (size,)
        if not numbers or not np.isfinite(values).all():
            raise ArgumentError(
                f"kl_list[{i}]",
                f"{values.dtype} array of shape {values.shape}",
                f"needs {size} finite numbers, one per latent",
            )
        kept.append(values > threshold)
    return kept
