"""95 % intervals of scores, by computing them again on other points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from unweave.arrays import IntArray
from unweave.errors import ArgumentError
from unweave.metrics.result import Score
from unweave.parameters import Natural, check_value


def with_interval(
    score: Score, again: Callable[[np.random.Generator], Score], bootstrap: int, seed: int
) -> Score:
    """A score with ``details["interval"]``: the value plus the spread of further scores around their mean.

    A bound may lie beyond the metric's range, as in 0.99 to 1.01: it is not clipped. Where a score is nan, so are
    both.

    Parameters
    ----------
    score
        the score itself.
    again
        computes the score on other points, which it draws from the generator. They must spread as the points of
        the score itself do: fresh ones, or random halves of them.
    bootstrap
        how many further scores; with 0 there is no interval.
    seed
        of the generator.
    """
    if not bootstrap:
        return score
    rng = np.random.default_rng([seed, bootstrap])
    values = np.array([again(rng).value for _ in range(bootstrap)])
    low, high = (score.value + np.quantile(values - values.mean(), [0.025, 0.975])).tolist()
    return replace(score, details={**score.details, "interval": (low, high)})


def random_half(n: int, rng: np.random.Generator) -> IntArray:
    """A random half of n rows, none repeated: repeated rows would count as information in many metrics.

    Halves spread around their mean as whole samples do: drawn without replacement they have the variance s^2 / n.
    """
    return rng.permutation(n)[: max(2, n // 2)]


def check_bootstrap(bootstrap: Any) -> int:
    """The number of further scores: 0, or at least 2."""
    try:
        number: int = check_value("bootstrap", bootstrap, Natural)
    except ArgumentError:
        number = 1
    if number == 1:
        raise ArgumentError("bootstrap", bootstrap, "needs 0, or a whole number >= 2")
    return number
