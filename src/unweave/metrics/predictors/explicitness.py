"""Explicitness: how well a linear classifier finds each factor's value (Ridgeway and Mozer, 2018)."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

from unweave.arrays import FloatArray, IntArray
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.parameters import Count, Positive, Seed


@register_metric(
    "explicitness",
    label="Explicitness",
    takes="split",
    paper=True,
    renamed={"penalty": "C"},
    protocols={"dlib": {"solver": "lbfgs"}},
    protocol_notes={
        "solver": "logistic regression: one model per value against the rest; one multinomial model"
    },
)
def explicitness(
    train: Sample,
    test: Sample,
    *,
    solver: Literal["lbfgs", "liblinear_ovr"] = "liblinear_ovr",
    C: Positive = 1.0,
    iterations: Count = 100,
    seed: Seed = 0,
) -> Score:
    """How well a linear classifier ranks the values of each factor.

    Mean over factors of the area under the ROC curve on test points, averaged over the factor's values. A
    logistic regression per factor is fitted to standardised codes; the area is that of each value against all
    others, by the predicted probability.

    Codes with a standard deviation of at most 1e-8 are left out; with none left every area is 0.5. A value that
    only test points have belongs to the others of every area and has none itself; a value that the test points
    lack, or that all of them have, has no area. A factor without any area, or with one value to learn from,
    counts 0.5.

    Parameters
    ----------
    solver
        - "liblinear_ovr": one binary model per value against the rest with the intercept penalised, probabilities
          scaled to sum to 1 (Locatello et al., appendix B; the default of scikit-learn before 0.22, which the
          published studies used; up to 0.05 lower where a value lies between others).
        - "lbfgs": one multinomial model (their code with scikit-learn since 0.22).
    C
        the inverse strength of the penalty, as in scikit-learn.
    iterations
        the most steps of the solver.

    Returns
    -------
    Score
        ``details``: ``per_factor`` and ``per_factor_train`` (K,), ``train`` (mean over factors), ``converged``
        (K,).

    References
    ----------
    Ridgeway & Mozer, "Learning deep disentangled embeddings with the F-statistic loss", 2018.

    Examples
    --------
    >>> factors = np.random.default_rng(0).integers(0, 2, (300, 2))
    >>> uw.metrics.explicitness(factors, factors)
    explicitness = 1
    """
    mean, deviation = train.codes.mean(axis=0), train.codes.std(axis=0)
    active = deviation > 1e-8
    train_codes, test_codes = ((s.codes - mean)[:, active] / deviation[active] for s in (train, test))
    factors = train.factors.shape[1]
    areas = np.full((2, factors), 0.5)
    converged = np.ones(factors, dtype=bool)
    for j in range(factors):
        classes, labels = np.unique(train.factors[:, j], return_inverse=True)
        if len(classes) == 1 or not active.any():
            continue
        fit = _multinomial if solver == "lbfgs" else _one_vs_rest
        on_train, on_test, converged[j] = fit(train_codes, labels, test_codes, C, iterations, seed)
        areas[0, j] = macro_area(on_train, train.factors[:, j], classes)
        areas[1, j] = macro_area(on_test, test.factors[:, j], classes)
    return Score(
        float(areas[1].mean()),
        {
            "per_factor": areas[1],
            "per_factor_train": areas[0],
            "train": float(areas[0].mean()),
            "converged": converged,
        },
        {"solver": solver, "C": C, "iterations": iterations, "seed": seed},
    )


def macro_area(scores: FloatArray, labels: IntArray, classes: IntArray) -> float:
    """Mean over ``classes`` of the area under the ROC curve of class against rest; ``scores`` is (n, classes).

    The area is the share of (member, other) pairs in which the member has the higher score, ties counting half:
    the mean rank of the members tells it. Classes with no members or no others are left out; 0.5 if none is left.
    """
    areas = []
    for column, value in zip(scores.T, classes, strict=True):
        members = labels == value
        count = int(members.sum())
        others = len(labels) - count
        if count and others:
            everyone, member_scores = np.sort(column), column[members]
            below = np.searchsorted(everyone, member_scores, side="left").sum()
            up_to = np.searchsorted(everyone, member_scores, side="right").sum()
            areas.append(((below + up_to) / 2 - count * count / 2) / (count * others))
    return float(np.mean(areas)) if areas else 0.5


def _multinomial(
    codes: FloatArray, labels: IntArray, held_out: FloatArray, C: float, iterations: int, seed: int
) -> tuple[FloatArray, FloatArray, bool]:
    """Probabilities (n, classes) for both sets of codes, and whether the solver converged."""
    from sklearn.exceptions import ConvergenceWarning

    from unweave.metrics.solvers.logistic_regression import logistic_regression, one_thread

    model = logistic_regression("lbfgs", C, iterations, seed)
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(codes, labels)
    return model.predict_proba(codes), model.predict_proba(held_out), bool(model.n_iter_.max() < iterations)


def _one_vs_rest(
    codes: FloatArray, labels: IntArray, held_out: FloatArray, C: float, iterations: int, seed: int
) -> tuple[FloatArray, FloatArray, bool]:
    """As `_multinomial`, from one binary model per class (one for both of two classes)."""
    from sklearn.exceptions import ConvergenceWarning

    from unweave.metrics.solvers.logistic_regression import logistic_regression

    classes = int(labels.max()) + 1
    columns: list[tuple[FloatArray, FloatArray]] = []
    converged = True
    for k in range(classes) if classes > 2 else [1]:
        model = logistic_regression("liblinear", C, iterations, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(codes, labels == k)
        converged = converged and bool(model.n_iter_.max() < iterations)
        columns.append((model.predict_proba(codes)[:, 1], model.predict_proba(held_out)[:, 1]))
    on_train, on_test = (np.stack(part, axis=1) for part in zip(*columns, strict=True))
    if classes == 2:
        return np.hstack([1 - on_train, on_train]), np.hstack([1 - on_test, on_test]), converged
    return (
        on_train / on_train.sum(axis=1, keepdims=True),
        on_test / on_test.sum(axis=1, keepdims=True),
        converged,
    )
