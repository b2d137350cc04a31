"""Linear algebra and linear models that several metrics use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]


def one_thread() -> AbstractContextManager[object]:
    """A context in which matrix products take one thread, in this process.

    The matrices here are narrow: several threads wait for each other more than they compute, many times longer if
    other programs use the processors, and their number would decide the last bits of a score.
    """
    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limits


def standardised(codes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Columns with mean 0 and variance 1 (divisor n); a constant column becomes 0."""
    varies = np.ptp(codes, axis=0) > 0
    deviation = np.where(varies, codes.std(axis=0), 1.0)
    return np.where(varies, (codes - codes.mean(axis=0)) / deviation, 0.0)


def logistic_regression(
    solver: str,
    penalty: float = 1.0,
    iterations: int = 100,
    random_state: Any = None,
    class_weight: str | None = None,
    warm_start: bool = False,
) -> LogisticRegression:
    """A logistic regression with C = ``penalty``, every argument pinned.

    Its l2 penalty is the default: releases disagree on how to name it.
    """
    return LogisticRegression(
        C=penalty,
        dual=False,
        tol=1e-4,
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=class_weight,
        random_state=random_state,
        solver=solver,
        max_iter=iterations,
        verbose=0,
        warm_start=warm_start,
    )
