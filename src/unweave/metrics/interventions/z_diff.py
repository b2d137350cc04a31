"""The Z-diff score (Kumar et al., 2018)."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from unweave.errors import ArgumentError
from unweave.metrics.interventions.beta_vae import Array, Labels, Predict, held_factor_accuracy
from unweave.metrics.interventions.votes import Interventions, TableInterventions
from unweave.metrics.score import Score

_ITERATIONS = 1_000


def z_diff(
    representation: Interventions | TableInterventions,
    *,
    seed: int = 0,
    batch_size: int = 64,
    num_train: int = 10_000,
    num_eval: int = 5_000,
    penalty: float = 0.01,
) -> Score:
    """The BetaVAE metric with a support vector machine: how well it tells which factor two batches share.

    Kumar et al., "Variational inference of disentangled latent concepts from unlabeled observations", 2018,
    section 4: one linear machine per factor against the rest, hinge loss with weight C = ``penalty`` and
    regulariser |w|^2 / 2 with weight 1. Points and their labels are those of
    :func:`unweave.metrics.interventions.beta_vae.beta_vae`; the paper does not say how many it takes. The intercept is
    penalised like a weight, and the solver stops after 1,000 passes (liblinear's dual solver).

    ``details``: ``train_accuracy``, ``eval_accuracy`` (the value), ``converged`` and ``excluded``.
    """
    if not penalty > 0:
        raise ArgumentError("penalty", penalty, "needs a positive number")

    def machine(points: Array, labels: Labels, rng: np.random.RandomState) -> tuple[Predict, bool]:
        model = LinearSVC(
            penalty="l2",
            loss="hinge",
            dual=True,
            tol=1e-4,
            C=penalty,
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
    return Score(details["eval_accuracy"], details, {"seed": seed, **sizes, "penalty": penalty})
