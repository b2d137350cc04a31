"""Percentile bootstrap intervals of medians and means, of one group or of all groups of a table at once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unweave.errors import ArgumentError

Statistic = Literal["median", "mean"]
Array = NDArray[np.float64]

_CHUNK = 1000  # groups that are resampled together: 8 MB at 1000 draws


def bootstrap_interval(
    values: Array, statistic: Statistic = "median", level: float = 0.95, draws: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The percentile bootstrap interval of the statistic of ``values``, of shape (n,).

    The statistic of ``draws`` samples of size n, drawn with replacement; the interval is between the quantiles
    (1 - level) / 2 and (1 + level) / 2 of them (Efron, 1979). NaN values are dropped; one value has no interval
    (NaN, NaN). With few values, as in studies of 2 to 5 seeds, it is too narrow: a sample of size n cannot reach
    beyond its own smallest and largest value.
    """
    _check(statistic, level, draws)
    known = np.asarray(values, dtype=np.float64).ravel()
    low, high = _intervals(known[~np.isnan(known)][None], statistic, level, draws, seed)
    return float(low[0]), float(high[0])


def grouped(
    table: pd.DataFrame,
    by: list[str],
    value: str = "value",
    statistic: Statistic = "median",
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """The statistic of ``value`` per group, with its bootstrap interval: columns [*by, value, low, high, n].

    Each interval is that of ``bootstrap_interval``, whatever other groups there are. Rows without a value are
    dropped; a NaN in ``by`` (the strength of a method that has none) is a group of its own. Groups are sorted.
    """
    _check(statistic, level, draws)
    rows = table.loc[table[value].notna(), [*by, value]]
    groups = rows.groupby(by, dropna=False, observed=True, sort=True)
    codes, numbers = groups.ngroup().to_numpy(), rows[value].to_numpy(dtype=np.float64)
    result = groups.size().rename("n").reset_index()
    sizes = result["n"].to_numpy()
    numbers = numbers[np.argsort(codes, kind="stable")]
    starts = np.cumsum(sizes) - sizes
    found = np.empty((3, len(sizes)))
    for n in np.unique(sizes):
        alike = np.flatnonzero(sizes == n)
        for some in np.split(alike, range(_CHUNK, len(alike), _CHUNK)):
            values = numbers[starts[some, None] + np.arange(n)]
            found[0, some] = np.median(values, axis=1) if statistic == "median" else values.mean(axis=1)
            found[1:, some] = _intervals(values, statistic, level, draws, seed)
    return result.assign(**dict(zip((value, "low", "high"), found, strict=True)))[
        [*by, value, "low", "high", "n"]
    ]


def resampled(values: Array, statistic: Statistic, draws: int, rng: np.random.Generator) -> Array:
    """The statistic of bootstrap samples of each row of ``values`` (groups, n): an array (groups, draws).

    All rows share the drawn places, counted in sorted order, so draws of different rows are not independent: for
    a probability that compares groups, call it once per group.
    """
    n = values.shape[1]
    if statistic == "mean":
        counts = rng.multinomial(n, np.full(n, 1 / n), size=draws)
        return np.asarray(np.sort(values, axis=1) @ counts.T / n)
    # A sample is values[floor(n U)] of n uniform U; in sorted values its median stands at the middle U, or between
    # the middle two. The k-th smallest of n uniforms is Beta(k, n + 1 - k), and the next is the smallest of the
    # n - k that are uniform above it: no need to draw all n.
    k = (n + 1) // 2
    first = rng.beta(k, n + 1 - k, size=draws)
    second = first if n % 2 else first + (1 - first) * rng.beta(1, n - k, size=draws)
    places = np.minimum((n * np.stack([first, second])).astype(np.int64), n - 1)
    return np.asarray(np.sort(values, axis=1)[:, places].mean(axis=1))


def _intervals(values: Array, statistic: Statistic, level: float, draws: int, seed: int) -> Array:
    """Low and high ends for each row of ``values`` (groups, n), of shape (2, groups)."""
    groups, n = values.shape
    if n < 2:
        return np.full((2, groups), np.nan)
    samples = resampled(values, statistic, draws, np.random.default_rng([seed, n]))
    return np.quantile(samples, [(1 - level) / 2, (1 + level) / 2], axis=1)


def _check(statistic: Any, level: float, draws: int) -> None:
    if statistic not in ("median", "mean"):
        raise ArgumentError("statistic", statistic, "is 'median' or 'mean'")
    if not 0 < level < 1:
        raise ArgumentError("level", level, "lies between 0 and 1")
    if draws < 1:
        raise ArgumentError("draws", draws, "at least 1")
