"""The BetaVAE metric (Higgins et al., 2017)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from unweave.arrays import FloatArray, IntArray
from unweave.metrics.interventions.votes import (
    Interventions,
    RowInterventions,
    VoteSource,
    vote_blocks,
    vote_source,
)
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.parameters import Count, Seed

Predict = Callable[[FloatArray], IntArray]
Fit = Callable[[FloatArray, IntArray, np.random.RandomState], tuple[Predict, bool]]

Solver = Literal["lbfgs", "liblinear_ovr"]

_ITERATIONS = 100


@register_metric(
    "beta_vae",
    label="BetaVAE",
    takes="interventions",
    factors="two",
    paper=True,
    sizes=("num_train", "num_eval"),
    images=lambda params: 2 * params["batch_size"] * (params["num_train"] + params["num_eval"]),
)
def beta_vae(
    representation: Interventions | RowInterventions,
    *,
    seed: Seed = 0,
    batch_size: Count = 64,
    num_train: Count = 10_000,
    num_eval: Count = 5_000,
    solver: Solver = "lbfgs",
) -> Score:
    """The BetaVAE metric: how well a linear classifier recognises the factor that two batches have in common.

    Per point a factor k is drawn, and pairs of images l = 1 .. ``batch_size`` that have the same value of k and
    are independent otherwise; the point is z = mean over l of |code of the first - code of the second| (D,), its
    label k. A logistic regression fitted to ``num_train`` such points is scored on ``num_eval``.

    The random stream is that of disentanglement_lib with ``RandomState(seed)``. Factors with one value are never
    drawn, as nothing could recognise them (the library draws them too); two others are needed.

    Parameters
    ----------
    batch_size
        the number of pairs of a point.
    num_train, num_eval
        the numbers of points to learn from and to judge on.
    solver
        - "lbfgs": one multinomial model, C = 1, at most 100 iterations (scikit-learn since 0.22).
        - "liblinear_ovr": one binary model per factor with the intercept penalised (before 0.22, which the
          published studies used).

    Returns
    -------
    Score
        ``details``: ``train_accuracy``, ``eval_accuracy`` (the value), ``converged`` and ``excluded``, the
        factors with one value.

    References
    ----------
    Higgins et al., "beta-VAE: learning basic visual concepts with a constrained variational framework", 2017.

    Examples
    --------
    >>> factors = np.random.default_rng(0).integers(0, 4, (500, 2))
    >>> uw.metrics.beta_vae(factors, factors, num_train=100, num_eval=50)
    beta_vae = 1
    """
    fits: dict[Solver, Fit] = {"lbfgs": _multinomial, "liblinear_ovr": _one_vs_rest}
    sizes = {"batch_size": batch_size, "num_train": num_train, "num_eval": num_eval}
    details = held_factor_accuracy(representation, fits[solver], seed=seed, **sizes)
    return Score(details["eval_accuracy"], details, {"seed": seed, **sizes, "solver": solver})


def held_factor_accuracy(
    representation: Interventions | RowInterventions,
    fit: Fit,
    *,
    seed: int,
    batch_size: int,
    num_train: int,
    num_eval: int,
) -> dict[str, Any]:
    """Accuracies of a classifier of the held factor from mean absolute differences of pairs."""
    rng = np.random.RandomState(seed)  # the stream of disentanglement_lib: part of the protocol
    source = vote_source(representation)
    points, labels = difference_points(source, num_train, batch_size, rng)
    predict, converged = fit(points, labels, rng) if np.ptp(labels) else (_always(labels[0]), True)
    train_accuracy = float(np.mean(predict(points) == labels))
    points, labels = difference_points(source.judging, num_eval, batch_size, rng)
    eval_accuracy = float(np.mean(predict(points) == labels))
    return {
        "train_accuracy": train_accuracy,
        "eval_accuracy": eval_accuracy,
        "converged": converged,
        "excluded": np.setdiff1d(np.arange(source.num_factors), source.varying),
    }


def difference_points(
    source: VoteSource, number: int, batch_size: int, rng: np.random.RandomState
) -> tuple[FloatArray, IntArray]:
    """Mean absolute differences (number, D) of pairs that share a factor, and that factor (number,)."""
    points, labels = [], []
    for votes in vote_blocks(source, number, 2, batch_size, "pair", rng):
        points.append(np.abs(votes.codes[:, 0] - votes.codes[:, 1]).mean(axis=1))
        labels.append(votes.factor)
    return np.concatenate(points), np.concatenate(labels)


def _always(label: int) -> Predict:
    return lambda points: np.full(len(points), label, dtype=np.int64)


def _multinomial(points: FloatArray, labels: IntArray, rng: np.random.RandomState) -> tuple[Predict, bool]:
    from sklearn.exceptions import ConvergenceWarning

    from unweave.metrics.solvers.logistic_regression import logistic_regression, one_thread

    model = logistic_regression("lbfgs", max_iter=_ITERATIONS, random_state=rng)
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(points, labels)
    return model.predict, bool(model.n_iter_.max() < _ITERATIONS)


def _one_vs_rest(points: FloatArray, labels: IntArray, rng: np.random.RandomState) -> tuple[Predict, bool]:
    """One model per class, of two classes for the second only. Draws once, as liblinear for all classes does."""
    from sklearn.exceptions import ConvergenceWarning

    from unweave.metrics.solvers.logistic_regression import logistic_regression

    classes = np.unique(labels)
    random_state = rng.randint(np.iinfo(np.int32).max)
    models = []
    for label in classes if len(classes) > 2 else classes[1:]:
        model = logistic_regression("liblinear", max_iter=_ITERATIONS, random_state=random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models.append(model.fit(points, labels == label))

    def predict(points: FloatArray) -> IntArray:
        scores = np.stack([model.decision_function(points) for model in models], axis=1)
        best = np.argmax(scores, axis=1) if len(models) > 1 else (scores[:, 0] > 0).astype(np.int64)
        predicted: IntArray = classes[best]
        return predicted

    return predict, all(model.n_iter_.max() < _ITERATIONS for model in models)
