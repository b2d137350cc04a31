"""Disentanglement, completeness and informativeness (Eastwood and Williams, 2018)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from unweave.arrays import FloatArray
from unweave.metrics.predictors.dci_learners import LEARNERS, Learner
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.metrics.solvers.standardise import standardise_samples
from unweave.parameters import Seed

Average = Literal["mean", "weighted"]
FLOOR = 1e-11  # added to every importance, as in disentanglement_lib: a row of zeros becomes uniform


@register_metric(
    "dci",
    label="DCI",
    takes="split",
    paper=True,
    protocols={"dlib": {"learner": "gbt", "standardised": False, "completeness_average": "weighted"}},
    protocol_notes={
        "learner": "what predicts the factors: a linear SVM with an l1 penalty, C = 1; boosted trees",
        "standardised": "whether mean and standard deviation are removed from the codes first",
        "completeness_average": "the average over factors: plain; weighted by their importances",
    },
    parts={"completeness": "DCI compl.", "informativeness_test": "DCI inform."},
)
def dci(
    train: Sample,
    test: Sample,
    *,
    learner: Learner = "l1_svm",
    standardised: bool = True,
    completeness_average: Average = "mean",
    seed: Seed = 0,
) -> Score:
    """Disentanglement (the value), completeness and informativeness.

    D = sum_i rho_i (1 - H_K(P_i)) of the importances R_ij of code i in predicting factor j from all codes, with
    P_ij = R_ij / sum_j R_ij and rho_i the share of code i in all importances; the completeness C is the average of
    1 - H_D over the codes of each factor; informativeness is how well the factors are predicted, here the mean over
    factors.

    A factor with one value among the points to learn from is always predicted to have it: no importances, and
    informativeness is the share of points that have it. A value that only test points have is never predicted.
    Constant codes have no importance (for "l1_svm" they may, as part of the intercept). All importances 0: D = C
    = 0. ``seed`` decides between equal splits, and whatever a learner draws.

    Parameters
    ----------
    learner
        what predicts the factors:

        - "gbt": gradient boosted trees, importance = decrease of squared error, informativeness = accuracy. As in
          disentanglement_lib, by a fast implementation of the same trees (:mod:`unweave.metrics.solvers`).
        - "gbt_sklearn": the same by scikit-learn's GradientBoostingClassifier; some thirty times slower.
        - "lightgbm": by LightGBM with the same depth, rounds and rate, on binned codes; importance = its gain.
          Scores differ from those of "gbt" by some hundredths. Needs the package lightgbm.
        - "l1_svm" (Locatello et al., appendix): linear support vector machine with an l1 penalty, C = 1,
          importance = mean over classes of |weight|, informativeness = accuracy. The scale of the codes counts.
        - "lasso" (Eastwood and Williams): linear regression with the l1 penalty 0.02 on standardised codes and
          factors, importance = |weight|, informativeness = 1 - NRMSE: root mean squared error relative to that of
          always guessing the mean (1 is perfect, below 0 is worse than guessing).
        - "forest" (Eastwood and Williams): random forest regression, depth chosen on held-out points, importance
          = decrease of squared error, informativeness = 1 - NRMSE.
    standardised
        whether mean and standard deviation of the codes are removed first, those of the points to learn from
        (Locatello et al., appendix B; not in their code). A constant code becomes 0.
    completeness_average
        how C is averaged over factors: "mean", plainly (Locatello et al., appendix B); "weighted", by the share of
        each factor in all importances (their code).

    Returns
    -------
    Score
        ``details``: ``disentanglement``, ``completeness``, ``informativeness_train``, ``informativeness_test``,
        ``matrix`` (R), ``disentanglement_per_code`` (D,), ``completeness_per_factor`` (K,),
        ``informativeness_per_factor`` (K,) on test points, ``converged`` (K,) for the learners that iterate.

    References
    ----------
    Eastwood & Williams, "A framework for the quantitative evaluation of disentangled representations", 2018.

    Examples
    --------
    >>> factors = np.random.default_rng(0).integers(0, 4, (300, 2))
    >>> codes, test = factors[:200, ::-1], (factors[200:, ::-1], factors[200:])
    >>> score = uw.metrics.dci(codes, factors[:200], test=test, learner="lasso")
    >>> score.details["matrix"].round(2)
    array([[0.  , 0.98], [0.98, 0.  ]])
    """
    if standardised:
        train, test = standardise_samples(train, test)
    fit = LEARNERS[learner](train, test, seed)
    per_factor = completeness_per_factor(fit.importances)
    details: dict[str, Any] = {
        "disentanglement": disentanglement(fit.importances),
        "completeness": float(per_factor.mean())
        if completeness_average == "mean"
        else completeness(fit.importances),
        "informativeness_train": float(np.mean(fit.train_scores)),
        "informativeness_test": float(np.mean(fit.test_scores)),
        "matrix": fit.importances,
        "disentanglement_per_code": disentanglement_per_code(fit.importances),
        "completeness_per_factor": per_factor,
        "informativeness_per_factor": fit.test_scores,
    }
    if fit.converged is not None:
        details["converged"] = fit.converged
    params = {"learner": learner, "standardised": standardised, "completeness_average": completeness_average}
    return Score(details["disentanglement"], details, {**params, "seed": seed})


def disentanglement(importances: FloatArray) -> float:
    """D = sum_i rho_i D_i, rho_i the share of code i in all importances; ``importances`` is (D codes, K factors).

    0 if all importances are 0, where rho is uniform.

    Examples
    --------
    >>> disentanglement(np.eye(2)), disentanglement(np.ones((2, 2)))
    (1.0, 0.0)
    """
    return _weighted(disentanglement_per_code(importances), importances.sum(axis=1))


def completeness(importances: FloatArray) -> float:
    """C = sum_j rho_j C_j, rho_j the share of factor j in all importances; 0 if all importances are 0.

    Examples
    --------
    >>> completeness(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    0.58
    """
    return _weighted(completeness_per_factor(importances), importances.sum(axis=0))


def disentanglement_per_code(importances: FloatArray) -> FloatArray:
    """D_i = 1 - H(P_i) in base K, P_ij = R_ij / sum_j R_ij, for importances R (D, K): shape (D,).

    1 for a code that serves one factor, 0 for one that serves all equally or none. With one factor every code
    serves only that: 1, also for a code that serves none (it has no weight in D).
    """
    return 1.0 - _relative_entropy(importances)


def completeness_per_factor(importances: FloatArray) -> FloatArray:
    """C_j = 1 - H(P_j) in base D, P_ij = R_ij / sum_i R_ij, for importances R (D, K): shape (K,).

    1 for a factor that one code serves, 0 for one that all serve equally or none does. 1 with a single code.
    """
    return 1.0 - _relative_entropy(importances.T)


def _relative_entropy(rows: FloatArray) -> FloatArray:
    """The entropy of each row, scaled to sum to 1, over that of a uniform row; 0 for rows of one entry."""
    if rows.shape[1] == 1:
        return np.zeros(len(rows))
    share = rows + FLOOR
    share = share / share.sum(axis=1, keepdims=True)
    entropy: FloatArray = -(share * np.log(share)).sum(axis=1) / np.log(rows.shape[1])
    return entropy


def _weighted(scores: FloatArray, weights: FloatArray) -> float:
    total = weights.sum()
    return float(scores @ weights / total) if total > 0 else float(scores.mean())
