"""Logistic regression by scikit-learn, with every argument pinned, on one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression


def logistic_regression(
    solver: Literal["lbfgs", "liblinear"],
    C: float = 1.0,
    max_iter: int = 100,
    random_state: int | np.random.RandomState | None = None,
    class_weight: Literal["balanced"] | None = None,
    warm_start: bool = False,
) -> LogisticRegression:
    r"""A logistic regression that is the same in all releases of scikit-learn.

    It minimises :math:`\frac{1}{2} |w|^2 + C \sum_i c_i \log(1 + e^{-s_i (w \cdot x_i + b)})` for two classes
    (:math:`s_i = \pm 1`), with the weight :math:`c_i` of the class of point i, and the corresponding loss of the
    softmax for more.

    Parameters
    ----------
    solver
        "lbfgs", or "liblinear", which fits one class against the rest and penalises the intercept b too.
    C
        the weight of the data against the l2 penalty; infinite for no penalty.
    max_iter
        the most iterations.
    random_state
        of "liblinear".
    class_weight
        "balanced" for n / (K n_k) in class k, None for 1.
    warm_start
        whether a fit starts from the weights of the one before.

    Returns
    -------
    sklearn.linear_model.LogisticRegression
        not fitted yet. Fit it in :func:`one_thread`.

    Examples
    --------
    >>> codes = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> with one_thread():
    ...     model = logistic_regression("lbfgs", C=10.0).fit(codes, [0, 0, 1, 1])
    >>> model.predict([[0.5], [2.5]])
    array([0, 1])
    """
    from sklearn.linear_model import LogisticRegression

    # The l2 penalty is the default: releases disagree on how to name it.
    return LogisticRegression(
        C=C,
        dual=False,
        tol=1e-4,
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=class_weight,
        random_state=random_state,
        solver=solver,
        max_iter=max_iter,
        verbose=0,
        warm_start=warm_start,
    )


def one_thread() -> AbstractContextManager[object]:
    """A context in which matrix products take one thread, in this process.

    The matrices of the metrics are narrow: several threads wait for each other more than they compute, many times
    longer if other programs use the processors, and their number would decide the last bits of a score.

    Examples
    --------
    >>> with one_thread():
    ...     product = np.eye(2) @ np.eye(2)
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limits
