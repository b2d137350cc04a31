"""Separated attribute predictability (Kumar et al., 2018, section 3)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from unweave.errors import ArgumentError, unknown_name
from unweave.metrics.score import Sample, Score
from unweave.metrics.solvers.liblinear_lines import liblinear_lines
from unweave.metrics.solvers.line_classifiers import best_thresholds, squared_hinge_lines

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

SOLVERS = ("liblinear_primal", "liblinear_dual", "exact")
INACTIVE_VARIANCE = {"svm": 0.0, "regression": 1e-12, "threshold": 0.05}


def sap(
    train: Sample,
    test: Sample,
    *,
    variant: str = "svm",
    solver: str = "liblinear_primal",
    penalty: float = 0.01,
    inactive_variance: float | None = None,
    seed: int = 0,
) -> Score:
    """SAP = mean over factors j of (S_(1)j - S_(2)j), the gap between the two codes that predict j best.

    S (latents x factors, ``details["matrix"]``) holds how well one code i alone predicts factor j:

    - ``"svm"`` (Locatello et al., 2019): accuracy on ``test`` of a linear support vector machine fitted to
      ``train``: squared hinge loss, C = ``penalty``, one class against the rest, the intercept penalised, classes
      weighted n / (K n_k). ``solver``: "liblinear_primal" and "liblinear_dual" stop where scikit-learn's LinearSVC
      does, the primal by our own implementation of its steps (``seed`` matters for the dual only). Where codes are
      much larger than 1 both are far from the optimum, which "exact" finds.
    - ``"regression"``: R^2 of a line = squared correlation, over ``train`` as in disentanglement_lib (the paper:
      test points). 0 for a factor with one value.
    - ``"threshold"``: balanced accuracy of the best K - 1 thresholds for the K values of the factor, each of the
      K intervals standing for one value. As in the paper they are fitted and scored on the same points, ``test``.

    A code with variance of at most ``inactive_variance`` (default 0 for svm, where even a constant code is kept
    and predicts one class; 1e-12 for regression; 0.05 for threshold) scores 0. A factor with one value in
    ``train`` is always predicted to have it, so it has no gap. A value of ``test`` that ``train`` lacks counts as
    an error. Needs two codes.
    """
    measures: dict[str, Callable[[], Array]] = {
        "svm": lambda: _svm(train, test, solver, penalty, seed),
        "regression": lambda: squared_correlation(train),
        "threshold": lambda: _threshold(test),
    }
    if variant not in measures:
        raise unknown_name("variant", variant, measures)
    if solver not in SOLVERS:
        raise unknown_name("solver", solver, SOLVERS)
    if not penalty > 0:
        raise ArgumentError("penalty", penalty, "needs a positive number")
    limit = INACTIVE_VARIANCE[variant] if inactive_variance is None else inactive_variance
    if not limit >= 0:
        raise ArgumentError("inactive_variance", limit, "needs a number of at least 0")
    if train.codes.shape[1] < 2:
        raise ArgumentError("codes", "1 latent", "a gap needs at least two latents")
    matrix = measures[variant]()
    if limit > 0:
        variance = (test if variant == "threshold" else train).codes.var(axis=0)
        matrix[variance <= limit] = 0.0
    gaps = sap_gaps(matrix)
    params: dict[str, Any] = {"variant": variant, "inactive_variance": limit}
    if variant == "svm":
        params |= {"solver": solver, "penalty": penalty, "seed": seed}
    return Score(float(gaps.mean()), {"matrix": matrix, "per_factor": gaps}, params)


def sap_gaps(matrix: Array) -> Array:
    """Best minus second best entry of each column of a score matrix (D, K), D > 1: shape (K,)."""
    top = np.sort(matrix, axis=0)[-2:]
    gaps: Array = top[1] - top[0]
    return gaps


def squared_correlation(sample: Sample) -> Array:
    """cov(z_i, y_j)^2 / (var z_i var y_j) for each code and factor (D, K); 0 where a variance is 0."""
    codes = sample.codes - sample.codes.mean(axis=0)
    factors = sample.factors - sample.factors.mean(axis=0)
    covariance = codes.T @ factors
    scale = np.outer((codes**2).sum(axis=0), (factors**2).sum(axis=0))
    result: Array = np.divide(covariance**2, scale, out=np.zeros_like(covariance), where=scale > 0)
    return result


def _svm(train: Sample, test: Sample, solver: str, penalty: float, seed: int) -> Array:
    """Test accuracy of one machine per code and factor (D, K)."""
    latents, factors = train.codes.shape[1], train.factors.shape[1]
    matrix = np.zeros((latents, factors))
    orders = np.argsort(train.codes, axis=0, kind="stable")
    random = np.random.RandomState(seed)  # the generator that scikit-learn takes
    for j in range(factors):
        classes, labels = np.unique(train.factors[:, j], return_inverse=True)
        for i in range(latents):
            code, held_out = train.codes[:, i], test.codes[:, i]
            if len(classes) == 1:
                predicted = np.zeros(len(held_out), dtype=np.int64)
            elif solver == "liblinear_dual":
                predicted = _dual(code, labels, held_out, penalty, random)
            else:
                fit = squared_hinge_lines if solver == "exact" else liblinear_lines
                order = orders[:, i]
                predicted = _predict(fit(code[order], labels[order], len(classes), penalty), held_out)
            matrix[i, j] = np.mean(classes[predicted] == test.factors[:, j])
    return matrix


def _predict(lines: Array, code: Array) -> Labels:
    """The class of the highest line; for a single line, class 1 where it is positive. ``lines`` is (K or 1, 2)."""
    if len(lines) == 1:
        picked: Labels = (lines[0, 0] * code + lines[0, 1] > 0).astype(np.int64)
    else:
        picked = np.argmax(np.outer(code, lines[:, 0]) + lines[:, 1], axis=1)
    return picked


def _dual(
    code: Array, labels: Labels, held_out: Array, penalty: float, random: np.random.RandomState
) -> Labels:
    machine = LinearSVC(
        penalty="l2",
        loss="squared_hinge",
        dual=True,
        tol=1e-4,
        C=penalty,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=1,
        class_weight="balanced",
        verbose=0,
        random_state=random,
        max_iter=1000,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(code[:, None], labels)
    predicted: Labels = machine.predict(held_out[:, None])
    return predicted


def _threshold(sample: Sample) -> Array:
    """Balanced accuracy of the best thresholds, for each code and factor (D, K)."""
    matrix = np.zeros((sample.codes.shape[1], sample.factors.shape[1]))
    orders = np.argsort(sample.codes, axis=0, kind="stable")
    for j in range(matrix.shape[1]):
        classes, labels = np.unique(sample.factors[:, j], return_inverse=True)
        for i in range(matrix.shape[0]):
            order = orders[:, i]
            matrix[i, j] = best_thresholds(sample.codes[order, i], labels[order], len(classes))
    return matrix
