"""The Z-diff score (Kumar et al., 2018)."""

from __future__ import annotations

import warnings

import numpy as np

from unweave.arrays import FloatArray, IntArray
from unweave.metrics.interventions.beta_vae import Predict, held_factor_accuracy
from unweave.metrics.interventions.votes import Interventions, RowInterventions
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.parameters import Count, Positive, Seed

_ITERATIONS = 1_000


@register_metric(
    "z_diff",
    label="Z-diff",
    takes="interventions",
    factors="two",
    sizes=("num_train", "num_eval"),
    images=lambda params: 2 * params["batch_size"] * (params["num_train"] + params["num_eval"]),
    renamed={"penalty": "C"},
)
def z_diff(
    representation: Interventions | RowInterventions,
    *,
    seed: Seed = 0,
    batch_size: Count = 64,
    num_train: Count = 10_000,
    num_eval: Count = 5_000,
    C: Positive = 0.01,
) -> Score:
    """The BetaVAE metric with a support vector machine.

    One linear machine per factor against the rest, hinge loss with weight ``C`` and regulariser |w|^2 / 2 with
    weight 1. Points and their labels are those of :func:`~unweave.metrics.beta_vae`; the paper does not say how
    many it takes. The intercept is penalised like a weight, and the solver stops after 1,000 passes (liblinear's
    dual solver).

    Parameters
    ----------
    batch_size
        the number of pairs of a point.
    num_train, num_eval
        the numbers of points to learn from and to judge on.
    C
        the inverse strength of the penalty, as in scikit-learn.

    Returns
    -------
    Score
        ``details``: ``train_accuracy``, ``eval_accuracy`` (the value), ``converged`` and ``excluded``, the
        factors with one value.

    References
    ----------
    Kumar et al., "Variational inference of disentangled latent concepts from unlabeled observations", 2018, section 4.

    Examples
    --------
    >>> factors = np.random.default_rng(0).integers(0, 4, (500, 2))
    >>> uw.metrics.z_diff(factors, factors, num_train=500, num_eval=50)
    z_diff = 1
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    def machine(points: FloatArray, labels: IntArray, rng: np.random.RandomState) -> tuple[Predict, bool]:
        model = LinearSVC(
            penalty="l2",
            loss="hinge",
            dual=True,
            tol=1e-4,
            C=C,
            multi_class="ovr",
            fit_intercept=True,
            intercept_scaling=1,
            class_weight=None,
            verbose=0,
            random_state=rng,
            max_iter=_ITERATIONS,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(points, labels)
        return model.predict, bool(np.max(model.n_iter_) < _ITERATIONS)

    sizes = {"batch_size": batch_size, "num_train": num_train, "num_eval": num_eval}
    details = held_factor_accuracy(representation, machine, seed=seed, **sizes)
    return Score(details["eval_accuracy"], details, {"seed": seed, **sizes, "C": C})
