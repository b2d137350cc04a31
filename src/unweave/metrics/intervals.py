"""95 % intervals of scores, by computing them again on other points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from unweave.metrics.score import Rows, Score

Source = np.random.Generator


def with_interval(found: Score, again: Callable[[Source], Score], times: int, seed: int) -> Score:
    """A score with ``details["interval"]``: the value plus the spread of ``times`` scores around their mean.

    ``again`` computes the score on other points, which it draws from the source. They must spread as the points of
    the score itself do: fresh ones, or random halves of its own.

    A bound may lie beyond the metric's range, as in 0.99 to 1.01: it is not clipped. Where a score is nan, so are
    both.
    """
    rng = np.random.default_rng([seed, times])
    values = np.array([again(rng).value for _ in range(times)])
    low, high = (found.value + np.quantile(values - values.mean(), [0.025, 0.975])).tolist()
    return replace(found, details={**found.details, "interval": (low, high)})


def half(n: int, rng: Source) -> Rows:
    """A random half of n rows, none repeated: repeated rows would look like information to many metrics.

    Halves spread around their mean as whole samples do: drawn without replacement they have the variance s^2 / n.
    """
    return rng.permutation(n)[: max(2, n // 2)]
