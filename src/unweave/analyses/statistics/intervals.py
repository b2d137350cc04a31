"""Percentile bootstrap intervals of medians and means, of one group or of all groups of a table at once."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import pandas as pd
from annotated_types import Gt, Lt

from unweave.arrays import ArrayLike, FloatArray
from unweave.parameters import Count, Seed, check_value

Statistic = Literal["median", "mean"]
Level = Annotated[float, Gt(0), Lt(1)]

FEWEST = 5  # values of which an interval is given: of fewer it is far too narrow, and the values say more
_CHUNK = 1000  # groups that are resampled together: 8 MB at 1000 draws


def bootstrap_interval(
    values: ArrayLike,
    statistic: Statistic = "median",
    level: Level = 0.95,
    draws: Count = 1000,
    seed: Seed = 0,
) -> tuple[float, float]:
    """The percentile bootstrap interval of a statistic (Efron, 1979).

    The statistic of ``draws`` samples of size n, drawn with replacement; the interval is between the quantiles
    (1 - level) / 2 and (1 + level) / 2 of them. With few values it is too narrow, as a sample of size n cannot reach
    beyond the smallest and the largest value: of fewer than five none is given.

    Parameters
    ----------
    values
        (n,). NaN values are dropped.
    statistic, level, draws, seed
        "median" or "mean"; the probability that the interval covers; how many samples; of the random numbers.

    Returns
    -------
    low and high; NaN for fewer than five values.

    Examples
    --------
    >>> from unweave.analyses import bootstrap_interval
    >>> low, high = bootstrap_interval([0.1, 0.2, 0.2, 0.3, 0.9])
    >>> low, high
    (0.1, 0.9)
    """
    _check(statistic, level, draws, seed)
    known = np.asarray(values, dtype=np.float64).ravel()
    low, high = _intervals(known[~np.isnan(known)][None], statistic, level, draws, seed)
    return float(low[0]), float(high[0])


def grouped_intervals(
    table: pd.DataFrame,
    by: list[str],
    value: str = "value",
    statistic: Statistic = "median",
    level: Level = 0.95,
    draws: Count = 1000,
    seed: Seed = 0,
) -> pd.DataFrame:
    """The statistic of each group of a table, with its bootstrap interval.

    Each interval is that of :func:`bootstrap_interval`, whatever other groups there are.

    Parameters
    ----------
    table
        rows without a ``value`` are dropped.
    by
        the columns that make a group. NaN (the strength of a method that has none) is a value like any other.
    value
        the column whose statistic is taken.
    statistic, level, draws, seed
        as in :func:`bootstrap_interval`.

    Returns
    -------
    one row per group, sorted: the columns ``by``, then ``value``, low, high, n, and ``values``: where there are fewer
    than five, and therefore no interval, these in order; else an empty tuple.

    Examples
    --------
    >>> from unweave.analyses import grouped_intervals, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], strengths=2, seeds=5)
    >>> medians = grouped_intervals(table.query("metric == 'mig'"), ["representation", "strength"])
    >>> medians.columns.tolist()
    ['representation', 'strength', 'value', 'low', 'high', 'n', 'values']
    >>> medians["n"].tolist()
    [5, 5, 5, 5]
    """
    _check(statistic, level, draws, seed)
    rows = table.loc[table[value].notna(), [*by, value]]
    groups = rows.groupby(by, dropna=False, observed=True, sort=True)
    codes, numbers = groups.ngroup().to_numpy(), rows[value].to_numpy(dtype=np.float64)
    result = groups.size().rename("n").reset_index()
    sizes = result["n"].to_numpy()
    numbers = numbers[np.argsort(codes, kind="stable")]
    starts = np.cumsum(sizes) - sizes
    estimates = np.empty((3, len(sizes)))
    few: list[tuple[float, ...]] = [()] * len(sizes)
    for n in np.unique(sizes):
        of_size = np.flatnonzero(sizes == n)
        for chunk in np.split(of_size, range(_CHUNK, len(of_size), _CHUNK)):
            values = numbers[starts[chunk, None] + np.arange(n)]
            estimates[0, chunk] = np.median(values, axis=1) if statistic == "median" else values.mean(axis=1)
            estimates[1:, chunk] = _intervals(values, statistic, level, draws, seed)
            if n < FEWEST:
                for group, row in zip(chunk.tolist(), np.sort(values, axis=1).tolist(), strict=True):
                    few[group] = tuple(row)
    columns = dict(zip((value, "low", "high"), estimates, strict=True))
    result = result.assign(**columns)[[*by, value, "low", "high", "n"]]
    return result.assign(values=pd.Series(few, index=result.index, dtype=object))


def jackknife_interval(value: float, without_one: ArrayLike, level: Level = 0.95) -> tuple[float, float]:
    """The interval of a statistic by leaving out one cluster at a time (Tukey, 1958): value +- t s.

    s^2 = (k - 1) / k sum (v_i - mean v)^2 of the k values without one cluster, and t is Student's with k - 1 degrees of
    freedom. It is rough, but does not pretend that three or four clusters are many.

    Parameters
    ----------
    value
        the statistic of all clusters.
    without_one
        (k,): without each of them.
    level
        the probability that the interval covers.

    Returns
    -------
    low and high; NaN for fewer than three clusters, or if a value is NaN.

    Examples
    --------
    >>> from unweave.analyses.statistics.intervals import jackknife_interval
    >>> numbers = np.array([1.0, 2.0, 4.0, 5.0])
    >>> jackknife_interval(numbers.mean(), [np.delete(numbers, i).mean() for i in range(4)])
    (0.09, 5.9)
    """
    from scipy import stats

    values = np.asarray(without_one, dtype=np.float64)
    k = len(values)
    if k < 3 or np.isnan(values).any() or np.isnan(value):
        return float("nan"), float("nan")
    error = float(np.sqrt((k - 1) / k * ((values - values.mean()) ** 2).sum()))
    reach = float(stats.t.ppf((1 + level) / 2, k - 1)) * error
    return float(value - reach), float(value + reach)


def bootstrap_samples(
    values: FloatArray, statistic: Statistic, draws: int, rng: np.random.Generator
) -> FloatArray:
    """The statistic of bootstrap samples of each row of ``values`` (groups, n): an array (groups, draws).

    All rows share the drawn positions in sorted order, so draws of different rows are not independent: for a
    probability that compares groups, call it once per group.
    """
    n = values.shape[1]
    if statistic == "mean":
        counts = rng.multinomial(n, np.full(n, 1 / n), size=draws)
        return np.asarray(np.sort(values, axis=1) @ counts.T / n)
    # A sample is values[floor(n U)] of n uniform U; in sorted values its median is at the middle U, or between the
    # middle two. The k-th smallest of n uniforms is Beta(k, n + 1 - k), and the next is the smallest of the n - k that
    # are uniform above it: no need to draw all n.
    k = (n + 1) // 2
    first = rng.beta(k, n + 1 - k, size=draws)
    second = first if n % 2 else first + (1 - first) * rng.beta(1, n - k, size=draws)
    middle = np.minimum((n * np.stack([first, second])).astype(np.int64), n - 1)
    return np.asarray(np.sort(values, axis=1)[:, middle].mean(axis=1))


def _intervals(values: FloatArray, statistic: Statistic, level: float, draws: int, seed: int) -> FloatArray:
    """Low and high ends for each row of ``values`` (groups, n), of shape (2, groups)."""
    groups, n = values.shape
    if n < FEWEST:
        return np.full((2, groups), np.nan)
    samples = bootstrap_samples(values, statistic, draws, np.random.default_rng([seed, n]))
    return np.quantile(samples, [(1 - level) / 2, (1 + level) / 2], axis=1)


def _check(statistic: str, level: float, draws: int, seed: int) -> None:
    check_value("statistic", statistic, Statistic)
    check_value("level", level, Level)
    check_value("draws", draws, Count)
    check_value("seed", seed, Seed)
