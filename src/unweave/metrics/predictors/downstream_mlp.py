"""Downstream tasks by a neural network: what is in a part of the codes at all (multi-stage modelling, Figure 6)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unweave.arrays import FloatArray, IntArray
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.parameters import Count, Seed


@register_metric(
    "downstream_mlp",
    label="Downstream (MLP)",
    takes="split",
    in_all=False,
    rows=lambda score, factors: dict(zip(factors, map(float, score.details["per_factor"]), strict=True)),
)
def downstream_mlp(
    train: Sample, test: Sample, *, hidden: Sequence[Count] = (100, 100), steps: Count = 2_000, seed: Seed = 0
) -> Score:
    """Mean accuracy on test points of one multilayer perceptron per factor.

    Each is trained on all points to learn from: codes with mean 0 and variance 1, hidden layers of ReLU, cross entropy,
    Adam with 1e-3 on batches of 200, an l2 penalty of 1e-4; it stops before ``steps`` batches if ten passes over the
    points in a row have lowered the loss by less than 1e-4. The paper names no sizes: these are scikit-learn's defaults
    with a second hidden layer. Its inputs C, Z and C + Z are parts of the codes:
    ``uw.evaluate(run, data, "downstream_mlp", part="z")``.

    A factor with one value among the points to learn from is always predicted to have it. Values that they lack count
    as errors.

    Parameters
    ----------
    hidden
        the sizes of the hidden layers.
    steps
        the most batches; passes over the points are whole.

    Returns
    -------
    Score
        ``details``: ``per_factor`` (K,) and ``per_factor_train`` (K,) accuracies, ``chance`` (K,), the share of the
        commonest value among test points.

    References
    ----------
    "Improving the reconstruction of disentangled representation learners via multi-stage modelling", 2020, section 4
    and Figure 6.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = rng.normal(size=(300, 2))
    >>> inside = (codes**2).sum(axis=1) < 1  # no line separates a disc
    >>> f"{uw.metrics.downstream_mlp(codes, inside).value:.1f}"
    '1.0'
    """
    from unweave.metrics.solvers.logistic_regression import one_thread

    varies = np.ptp(train.codes, axis=0) > 0
    mean, deviation = train.codes.mean(axis=0), np.where(varies, train.codes.std(axis=0), 1.0)

    def scaled(codes: FloatArray) -> FloatArray:
        return np.where(varies, (codes - mean) / deviation, 0.0)

    codes, held_out = scaled(train.codes), scaled(test.codes)
    accuracy, chance = np.zeros((2, train.factors.shape[1])), np.zeros(train.factors.shape[1])
    with one_thread():
        for k, (known, true) in enumerate(zip(train.factors.T, test.factors.T, strict=True)):
            predict = _fitted(codes, known, tuple(hidden), steps, seed)
            accuracy[:, k] = np.mean(predict(codes) == known), np.mean(predict(held_out) == true)
            chance[k] = np.unique(true, return_counts=True)[1].max() / len(true)
    return Score(
        float(accuracy[1].mean()),
        {"per_factor": accuracy[1], "per_factor_train": accuracy[0], "chance": chance},
        {"hidden": tuple(hidden), "steps": steps, "seed": seed},
    )


def _fitted(
    codes: FloatArray, labels: IntArray, hidden: tuple[int, ...], steps: int, seed: int
) -> Callable[[FloatArray], IntArray]:
    """A predictor of labels, trained; every argument is pinned, as defaults drift between releases."""
    if (labels == labels[0]).all():
        return lambda x: np.full(len(x), labels[0])
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    batch_size = min(200, len(labels))
    model: Any = MLPClassifier(
        hidden_layer_sizes=hidden,
        activation="relu",
        solver="adam",
        alpha=1e-4,
        batch_size=batch_size,
        learning_rate_init=1e-3,
        max_iter=-(-steps // -(-len(labels) // batch_size)),
        shuffle=True,
        random_state=seed,
        tol=1e-4,
        n_iter_no_change=10,
        early_stopping=False,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-8,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is stopped after ``steps``
        model.fit(codes, labels)
    predict: Callable[[FloatArray], IntArray] = model.predict
    return predict
