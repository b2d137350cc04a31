"""Separated attribute predictability (Kumar et al., 2018, section 3)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from unweave.arrays import BoolArray, FloatArray, IntArray
from unweave.errors import ArgumentError
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.metrics.solvers.standardise import standardise_samples
from unweave.parameters import NonNegative, Positive, Seed

Variant = Literal["svm", "kumar", "regression", "threshold"]
Solver = Literal["liblinear_primal", "liblinear_dual", "exact"]
# "Close to 0" in Kumar et al., who give no number: as in the FactorVAE metric of Locatello et al.
INACTIVE_VARIANCE: dict[Variant, float] = {"svm": 0.0, "kumar": 0.05, "regression": 1e-12, "threshold": 0.05}


@register_metric(
    "sap",
    label="SAP",
    takes="split",
    paper=True,
    renamed={"penalty": "C"},
    protocols={"dlib": {"standardised": False}},
    protocol_notes={"standardised": "whether mean and standard deviation are removed from the codes first"},
)
def sap(
    train: Sample,
    test: Sample,
    *,
    variant: Variant = "svm",
    solver: Solver = "liblinear_primal",
    C: Positive = 0.01,
    standardised: bool = True,
    inactive_variance: NonNegative | None = None,
    categorical: Sequence[bool] | None = None,
    seed: Seed = 0,
) -> Score:
    """Separated attribute predictability: the gap between the two codes that predict a factor best.

    SAP = mean over factors j of S_(1)j - S_(2)j, with S_ij how well code i alone predicts factor j.

    A factor with one value among the points to learn from is always predicted to have it, so it has no gap. A
    value that only test points have counts as an error. Needs two codes.

    Parameters
    ----------
    variant
        what S is:

        - "svm" (Locatello et al., 2019): test accuracy of a linear support vector machine: squared hinge loss,
          one class against the rest, the intercept penalised, classes weighted n / (K n_k).
        - "kumar" (Kumar et al., 2018), both of the following by the type of the factor, all on test points:
          "regression" for ordered factors, "threshold" for categories.
        - "regression": R^2 of a line = squared correlation, over the points to learn from as in
          disentanglement_lib. 0 for a factor with one value.
        - "threshold": balanced accuracy of the best K - 1 thresholds for the K values of the factor, one value
          for each of the K intervals. As in the paper they are fitted and scored on the same points, those of the
          test.
    solver
        of the support vector machine. "liblinear_primal" and "liblinear_dual" stop where scikit-learn's LinearSVC
        does (``seed`` matters for the dual only). Where codes are much larger than 1 both are far from the
        optimum, which "exact" finds.
    C
        the inverse strength of the machine's penalty, as in scikit-learn.
    standardised
        whether mean and standard deviation of the codes are removed before "svm" learns, those of the points to learn
        from (Locatello et al., appendix B; not in their code). The other variants do not depend on it.
    inactive_variance
        a code with at most this variance, as it is given, scores 0. By default 0 for "svm", where even a constant code
        is kept and predicts one class; 1e-12 for "regression"; 0.05 for "kumar" and "threshold", as Kumar et al. say
        "close to 0" and give no number.
    categorical
        for "kumar": for each factor whether it is a category. ``uw.evaluate`` knows it from the data set's factors;
        None: none is.

    Returns
    -------
    Score
        ``details``: ``matrix`` (D, K), S; ``per_factor`` (K,), gaps.

    References
    ----------
    Kumar et al., "Variational inference of disentangled latent concepts from unlabeled observations", 2018, section 3.

    Examples
    --------
    >>> factors = np.random.default_rng(0).integers(0, 4, (300, 2))
    >>> codes = factors @ [[1, 1], [0, 1]]
    >>> uw.metrics.sap(codes, factors, variant="regression").details["matrix"].round(1)
    array([[1. , 0. ], [0.5, 0.5]])
    """
    categories = _categories(categorical, train.factors.shape[1])
    measures: dict[Variant, Callable[[], FloatArray]] = {
        "svm": lambda: _svm(
            *(standardise_samples(train, test) if standardised else (train, test)), solver, C, seed
        ),
        "kumar": lambda: np.where(categories, _threshold(test, categories), squared_correlation(test)),
        "regression": lambda: squared_correlation(train),
        "threshold": lambda: _threshold(test),
    }
    limit = INACTIVE_VARIANCE[variant] if inactive_variance is None else inactive_variance
    if train.codes.shape[1] < 2:
        raise ArgumentError("codes", "1 latent", "a gap needs at least two latents")
    matrix = measures[variant]()
    if limit > 0:
        variance = (test if variant in ("kumar", "threshold") else train).codes.var(axis=0)
        matrix[variance <= limit] = 0.0
    gaps = sap_gaps(matrix)
    params: dict[str, Any] = {"variant": variant, "inactive_variance": limit}
    if variant == "svm":
        params |= {"solver": solver, "C": C, "standardised": standardised, "seed": seed}
    if variant == "kumar":
        params["categorical"] = categories.tolist()
    return Score(float(gaps.mean()), {"matrix": matrix, "per_factor": gaps}, params)


def sap_gaps(matrix: FloatArray) -> FloatArray:
    """Best minus second best entry of each column of a score matrix (D, K), D > 1: shape (K,)."""
    top = np.sort(matrix, axis=0)[-2:]
    gaps: FloatArray = top[1] - top[0]
    return gaps


def squared_correlation(sample: Sample) -> FloatArray:
    """cov(z_i, y_j)^2 / (var z_i var y_j) for each code and factor (D, K); 0 where a variance is 0."""
    codes = sample.codes - sample.codes.mean(axis=0)
    factors = sample.factors - sample.factors.mean(axis=0)
    covariance = codes.T @ factors
    scale = np.outer((codes**2).sum(axis=0), (factors**2).sum(axis=0))
    result: FloatArray = np.divide(covariance**2, scale, out=np.zeros_like(covariance), where=scale > 0)
    return result


def _svm(train: Sample, test: Sample, solver: Solver, C: float, seed: int) -> FloatArray:
    """Test accuracy of one machine per code and factor (D, K)."""
    from unweave.metrics.solvers.single_code_svm import exact_svm_lines, liblinear_svm_lines

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
                predicted = _dual(code, labels, held_out, C, random)
            else:
                fit = exact_svm_lines if solver == "exact" else liblinear_svm_lines
                order = orders[:, i]
                predicted = _predict(fit(code[order], labels[order], len(classes), C), held_out)
            matrix[i, j] = np.mean(classes[predicted] == test.factors[:, j])
    return matrix


def _predict(lines: FloatArray, code: FloatArray) -> IntArray:
    """The class of the highest line; for a single line, class 1 where it is positive. ``lines`` is (K or 1, 2)."""
    if len(lines) == 1:
        picked: IntArray = (lines[0, 0] * code + lines[0, 1] > 0).astype(np.int64)
    else:
        picked = np.argmax(np.outer(code, lines[:, 0]) + lines[:, 1], axis=1)
    return picked


def _dual(
    code: FloatArray, labels: IntArray, held_out: FloatArray, C: float, random: np.random.RandomState
) -> IntArray:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    machine = LinearSVC(
        penalty="l2",
        loss="squared_hinge",
        dual=True,
        tol=1e-4,
        C=C,
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
    predicted: IntArray = machine.predict(held_out[:, None])
    return predicted


def _categories(categorical: Sequence[bool] | None, factors: int) -> BoolArray:
    if categorical is None:
        return np.zeros(factors, dtype=bool)
    if len(categorical) != factors:
        raise ArgumentError(
            "categorical", list(categorical), f"needs one value for each of {factors} factors"
        )
    return np.asarray(categorical, dtype=bool)


def _threshold(sample: Sample, of: BoolArray | None = None) -> FloatArray:
    """Balanced accuracy of the best thresholds, for each code and factor (D, K); 0 for factors not in ``of``."""
    from unweave.metrics.solvers.threshold_accuracy import threshold_accuracy

    matrix = np.zeros((sample.codes.shape[1], sample.factors.shape[1]))
    orders = np.argsort(sample.codes, axis=0, kind="stable")
    for j in range(matrix.shape[1]) if of is None else np.flatnonzero(of):
        classes, labels = np.unique(sample.factors[:, j], return_inverse=True)
        for i in range(matrix.shape[0]):
            order = orders[:, i]
            matrix[i, j] = threshold_accuracy(sample.codes[order, i], labels[order], len(classes))
    return matrix
