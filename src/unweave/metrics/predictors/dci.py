"""Disentanglement, completeness and informativeness (Eastwood and Williams, 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np

from unweave.metrics.predictors.dci_learners import LEARNERS, Learner
from unweave.metrics.predictors.dci_scores import (
    completeness,
    completeness_per_factor,
    disentanglement,
    disentanglement_per_code,
)
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.parameters import Seed


@register_metric(
    "dci",
    label="DCI",
    takes="split",
    paper=True,
    protocols={"paper": {"learner": "l1_svm"}, "dlib": {"learner": "gbt"}},
    parts={"completeness": "DCI compl.", "informativeness_test": "DCI inform."},
)
def dci(train: Sample, test: Sample, *, learner: Learner = "gbt", seed: Seed = 0) -> Score:
    """Disentanglement D of the importances R_ij of code i in predicting factor j from all codes (the value).

    D = sum_i rho_i (1 - H_K(P_i)), P_ij = R_ij / sum_j R_ij, rho_i = the share of code i in all importances; the
    completeness C the same over the codes of each factor (see `dci_scores`); informativeness is how well the
    factors are predicted, here the mean over factors. ``learner`` says by what:

    - ``"gbt"``: gradient boosted trees, importance = decrease of squared error, informativeness = accuracy. As in
      disentanglement_lib; our own implementation (`boosting`).
    - ``"gbt_sklearn"``: the same by scikit-learn's GradientBoostingClassifier; some thirty times slower.
    - ``"lightgbm"``: by LightGBM with the same depth, rounds and rate, on binned codes; importance = its gain.
      Scores differ from those of ``"gbt"`` by some hundredths. Needs the package lightgbm.
    - ``"l1_svm"`` (Locatello et al., appendix): linear support vector machine with an l1 penalty, C = 1,
      importance = mean over classes of |weight|, informativeness = accuracy. Codes as they are: their scale counts.
    - ``"lasso"`` (Eastwood and Williams): linear regression with the l1 penalty 0.02 on standardised codes and
      factors, importance = |weight|, informativeness = 1 - NRMSE: root mean squared error relative to that of
      always guessing the mean of ``train`` (1 is perfect, below 0 is worse than guessing).
    - ``"forest"`` (Eastwood and Williams): random forest regression, depth chosen on held-out points of ``train``,
      importance = decrease of squared error, informativeness = 1 - NRMSE.

    A factor with one value in ``train`` is always predicted to have it: no importances, and informativeness is the
    share of points that have it. A value that only ``test`` has is never predicted. Constant codes have no
    importance (for ``"l1_svm"`` they may, as part of the intercept). All importances 0: D = C = 0. ``seed`` decides
    between equal splits, and whatever a learner draws.

    ``details``: ``disentanglement``, ``completeness``, ``informativeness_train``, ``informativeness_test``,
    ``matrix`` (R), ``disentanglement_per_code`` (D,), ``completeness_per_factor`` (K,),
    ``informativeness_per_factor`` (K,) on ``test``, ``converged`` (K,) for the learners that iterate.
    """
    fit = LEARNERS[learner](train, test, seed)
    details: dict[str, Any] = {
        "disentanglement": disentanglement(fit.importances),
        "completeness": completeness(fit.importances),
        "informativeness_train": float(np.mean(fit.train_scores)),
        "informativeness_test": float(np.mean(fit.test_scores)),
        "matrix": fit.importances,
        "disentanglement_per_code": disentanglement_per_code(fit.importances),
        "completeness_per_factor": completeness_per_factor(fit.importances),
        "informativeness_per_factor": fit.test_scores,
    }
    if fit.converged is not None:
        details["converged"] = fit.converged
    return Score(details["disentanglement"], details, {"learner": learner, "seed": seed})
