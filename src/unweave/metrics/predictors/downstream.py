"""Downstream tasks: predicting the factors from few and from many codes (Locatello et al., 2019, section 5.5)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from unweave.arrays import FloatArray, IntArray
from unweave.errors import ArgumentError
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.parameters import Count, Seed

STRENGTHS = np.logspace(-4, 4, 10)
FOLDS = 5


@register_metric(
    "downstream",
    label="Downstream",
    takes="split",
    sizes=("sizes",),
    rows=lambda score, factors: {
        str(size): float(accuracy.mean())
        for size, accuracy in zip(score.details["sizes"], score.details["accuracy"], strict=True)
    },
)
def downstream(
    train: Sample,
    test: Sample,
    *,
    learner: Literal["logistic", "gbt"] = "logistic",
    sizes: Sequence[Count] = (10, 100, 1000, 10_000),
    seed: Seed = 0,
) -> Score:
    """Accuracy of predicting the factors from few and from many codes.

    The value is the mean accuracy on test points of a classifier per factor that saw the largest of ``sizes``
    points. If the points agree on a factor, that value is predicted. Values that they lack count as errors.

    Parameters
    ----------
    learner
        - "logistic": multinomial logistic regression on the codes as they are; C is the one of ten from 1e-4 to
          1e4 with the best mean accuracy over five folds of successive points (the smallest of equals), then all
          points are used. With fewer than five points there are as many folds as points. A fold whose other
          points all have one value predicts that value; a value that they lack is not predicted in that fold.
        - "gbt": gradient boosted trees, for which ``seed`` decides between equal splits.
    sizes
        the numbers of points to learn from, the first ones each time; one larger than all becomes all of them.

    Returns
    -------
    Score
        ``details``: ``sizes`` (S,) as used, ``accuracy`` and ``accuracy_train`` (S, K), ``per_factor`` (K,) at
        the largest size, and ``efficiency``: mean accuracy from 100 points over that from 10,000, NaN unless both
        are sizes.

    References
    ----------
    Locatello et al., "Challenging common assumptions in the unsupervised learning of disentangled representations",
    2019, section 5.5.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.integers(0, 2, (90, 1))
    >>> codes = factors + rng.normal(0, 0.1, (90, 1))
    >>> uw.metrics.downstream(codes, factors, sizes=(10, 50)).details["accuracy"].ravel()
    array([1., 1.])
    """
    from unweave.metrics.solvers.logistic_regression import one_thread

    learners: dict[str, Callable[[FloatArray, IntArray, FloatArray], tuple[IntArray, IntArray]]] = {
        "logistic": _logistic,
        "gbt": lambda codes, factors, held_out: _boosted(codes, factors, held_out, seed),
    }
    if not sizes:
        raise ArgumentError("sizes", tuple(sizes), "needs at least one number of points")
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


def _boosted(
    codes: FloatArray, factors: IntArray, held_out: FloatArray, seed: int
) -> tuple[IntArray, IntArray]:
    """Predicted factors for both sets of codes."""
    from unweave.metrics.solvers.boosted_trees import fit_boosted_trees

    models = fit_boosted_trees(codes, factors, seed)
    fitted = np.stack([model.fitted for model in models], axis=1)
    return fitted, np.stack([model.predict(held_out) for model in models], axis=1)


def _logistic(codes: FloatArray, factors: IntArray, held_out: FloatArray) -> tuple[IntArray, IntArray]:
    """Predicted factors for both sets of codes."""
    models = [_cross_validated(codes, column) for column in factors.T]
    return tuple(np.stack([model(x) for model in models], axis=1) for x in (codes, held_out))  # type: ignore[return-value]


def _cross_validated(codes: FloatArray, labels: IntArray) -> Callable[[FloatArray], IntArray]:
    """The predictor with the C that does best on points left out."""
    if (labels == labels[0]).all():
        return _path(codes, labels)(1.0)
    points = np.arange(len(labels))
    hits = np.zeros(len(STRENGTHS))
    for held_out in np.array_split(points, min(FOLDS, len(points))):
        rest = np.setdiff1d(points, held_out, assume_unique=True)
        fit = _path(codes[rest], labels[rest])
        hits += [np.mean(fit(C)(codes[held_out]) == labels[held_out]) for C in STRENGTHS]
    return _path(codes, labels)(float(STRENGTHS[np.argmax(hits)]))


def _path(codes: FloatArray, labels: IntArray) -> Callable[[float], Callable[[FloatArray], IntArray]]:
    """A function from C to a fitted predictor, each fit starting where the one before it ended."""
    if (labels == labels[0]).all():
        return lambda _: lambda x: np.full(len(x), labels[0])
    from sklearn.exceptions import ConvergenceWarning

    from unweave.metrics.solvers.logistic_regression import logistic_regression

    model: Any = logistic_regression("lbfgs", random_state=0, warm_start=True)

    def fit(C: float) -> Callable[[FloatArray], IntArray]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings(
                "ignore", "The number of unique classes", UserWarning
            )  # few of many values
            model.set_params(C=C).fit(codes, labels)
        predict: Callable[[FloatArray], IntArray] = model.predict
        return predict

    return fit
