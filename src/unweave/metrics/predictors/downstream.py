"""Downstream tasks: predicting the factors from few and from many codes (Locatello et al., 2019, section 5.5)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from unweave.errors import ArgumentError, unknown_name
from unweave.metrics.score import Sample, Score
from unweave.metrics.solvers.boosting import boost_factors
from unweave.metrics.solvers.linear_algebra import logistic_regression, one_thread

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

PENALTIES = np.logspace(-4, 4, 10)
FOLDS = 5


def downstream(
    train: Sample,
    test: Sample,
    *,
    learner: str = "logistic",
    sizes: Sequence[int] = (10, 100, 1000, 10_000),
    seed: int = 0,
) -> Score:
    """Mean accuracy on ``test`` of a classifier per factor that saw the largest of ``sizes`` (the value).

    Each size k takes the first k points of ``train``; one that is larger than ``train`` becomes all of it.

    - ``learner="logistic"``: multinomial logistic regression on the codes as they are; C is the one of ten from 1e-4
      to 1e4 with the best mean accuracy over five folds of successive points (the smallest of equals), then all k
      points are used. With fewer than five points there are as many folds as points. A fold whose other points
      all have one value predicts that value; a value that they lack is not predicted in that fold.
    - ``learner="gbt"``: gradient boosted trees (`boosting`), for which ``seed`` decides between equal splits.

    If the k points agree on a factor, that value is predicted. Values that they lack count as errors.

    ``details``: ``sizes`` (S,) as used, ``accuracy`` and ``accuracy_train`` (S, K), ``per_factor`` (K,) at the
    largest size, and ``efficiency``: mean accuracy from 100 points over that from 10,000, NaN unless both are sizes.
    """
    learners: dict[str, Callable[[Array, Labels, Array], tuple[Labels, Labels]]] = {
        "logistic": _logistic,
        "gbt": lambda codes, factors, held_out: _boosted(codes, factors, held_out, seed),
    }
    if learner not in learners:
        raise unknown_name("learner", learner, learners)
    if not sizes or min(sizes) < 1:
        raise ArgumentError("sizes", tuple(sizes), "needs numbers of points, each at least 1")
    used = sorted({min(int(size), len(train.codes)) for size in sizes})
    accuracy, accuracy_train = np.zeros((2, len(used), train.factors.shape[1]))
    for row, size in enumerate(used):
        codes, factors = train.codes[:size], train.factors[:size]
        with one_thread():
            on_train, on_test = learners[learner](codes, factors, test.codes)
        accuracy_train[row] = (on_train == factors).mean(axis=0)
        accuracy[row] = (on_test == test.factors).mean(axis=0)
    mean = dict(zip(used, accuracy.mean(axis=1), strict=True))
    efficiency = mean[100] / mean[10_000] if {100, 10_000} <= set(used) and mean[10_000] > 0 else math.nan
    return Score(
        float(accuracy[-1].mean()),
        {
            "sizes": np.array(used),
            "accuracy": accuracy,
            "accuracy_train": accuracy_train,
            "per_factor": accuracy[-1],
            "efficiency": float(efficiency),
        },
        {"learner": learner, "sizes": tuple(used), "seed": seed},
    )


def _boosted(codes: Array, factors: Labels, held_out: Array, seed: int) -> tuple[Labels, Labels]:
    """Predicted factors for both sets of codes."""
    models = boost_factors(codes, factors, seed)
    fitted = np.stack([model.fitted for model in models], axis=1)
    return fitted, np.stack([model.predict(held_out) for model in models], axis=1)


def _logistic(codes: Array, factors: Labels, held_out: Array) -> tuple[Labels, Labels]:
    """Predicted factors for both sets of codes."""
    models = [_cross_validated(codes, column) for column in factors.T]
    return tuple(np.stack([model(x) for model in models], axis=1) for x in (codes, held_out))  # type: ignore[return-value]


def _cross_validated(codes: Array, labels: Labels) -> Callable[[Array], Labels]:
    """The predictor with the penalty that does best on points left out."""
    if (labels == labels[0]).all():
        return _path(codes, labels)(1.0)
    points = np.arange(len(labels))
    hits = np.zeros(len(PENALTIES))
    for held_out in np.array_split(points, min(FOLDS, len(points))):
        rest = np.setdiff1d(points, held_out, assume_unique=True)
        fit = _path(codes[rest], labels[rest])
        hits += [np.mean(fit(penalty)(codes[held_out]) == labels[held_out]) for penalty in PENALTIES]
    return _path(codes, labels)(float(PENALTIES[np.argmax(hits)]))


def _path(codes: Array, labels: Labels) -> Callable[[float], Callable[[Array], Labels]]:
    """A function from the penalty to a fitted predictor, each fit starting where the one before it ended."""
    if (labels == labels[0]).all():
        return lambda _: lambda x: np.full(len(x), labels[0])
    model: Any = logistic_regression("lbfgs", random_state=0, warm_start=True)

    def fit(penalty: float) -> Callable[[Array], Labels]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.set_params(C=penalty).fit(codes, labels)
        predict: Callable[[Array], Labels] = model.predict
        return predict

    return fit
