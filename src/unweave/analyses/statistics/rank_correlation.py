"""Spearman's rank correlation with a bootstrap interval over clusters of runs, such as those of one seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from unweave.analyses.statistics.intervals import FEWEST, Level
from unweave.arrays import FloatArray, IntArray
from unweave.parameters import Count, Seed

_BATCH = 20  # resamples at a time: 5 MB for 1,800 runs and 16 scores
_FEWEST = 3  # two points always have a correlation of 1 or -1


def rank_correlations(
    scores: pd.DataFrame,
    rows: Sequence[str],
    columns: Sequence[str],
    cluster: str = "seed",
    level: Level = 0.95,
    draws: Count = 500,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Spearman's rank correlation of every two scores, with a bootstrap interval over clusters of runs.

    Each pair is compared on the n runs that have both scores, equal values sharing their mean rank. For the percentile
    bootstrap, clusters are drawn with replacement, all runs of a cluster together, and ranked anew each time; with
    few clusters the interval is too narrow.

    Parameters
    ----------
    scores
        one row per run (or whatever is compared), one column per score.
    rows, columns
        each score in ``rows`` is correlated with each in ``columns``.
    cluster
        the column whose values are drawn: runs of one seed are not independent.
    level, draws, seed
        the probability that the interval covers; how many samples; of the random numbers.

    Returns
    -------
    row, column, value, low, high, n. NaN: no correlation of fewer than 3 runs or of a constant, no interval from fewer
    than 5 clusters.

    Examples
    --------
    >>> import pandas as pd
    >>> from unweave.analyses import rank_correlations
    >>> scores = pd.DataFrame({"seed": [0, 1, 2, 3], "mig": [0.1, 0.2, 0.3, 0.4], "sap": [0.1, 0.3, 0.2, 0.4]})
    >>> rank_correlations(scores, ["mig"], ["sap"])[["row", "column", "value", "n"]]
       row column  value  n
    0  mig    sap    0.8  4
    """
    left, right = list(rows), list(columns)
    used = scores[[cluster, *dict.fromkeys([*left, *right])]]
    if not used.isna().to_numpy().any():
        return _frame(left, right, *_correlate(used, left, right, cluster, level, draws, seed), n=len(used))
    # Some runs lack scores: each pair is compared on other runs.
    pairs = []
    for row in left:
        for column in right:
            both = used.dropna(subset=[row, column])
            estimates = _correlate(both, [row], [column], cluster, level, draws, seed)
            pairs.append(_frame([row], [column], *estimates, n=len(both)))
    return pd.concat(pairs, ignore_index=True)


def _correlate(
    scores: pd.DataFrame, left: list[str], right: list[str], cluster: str, level: float, draws: int, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, low and high, each (left, right), where every run has every score."""
    nothing = np.full((len(left), len(right)), np.nan)
    if len(scores) < _FEWEST:
        return nothing, nothing, nothing
    codes, clusters = pd.factorize(scores[cluster])
    names = list(dict.fromkeys([*left, *right]))
    below = np.stack([_below(scores[name].to_numpy(np.float64), codes) for name in names])
    i, j = ([names.index(name) for name in side] for side in (left, right))
    value = _resampled(below, codes, np.ones((1, len(clusters))))[0, i][:, j]
    if len(clusters) < FEWEST:
        return value, nothing, nothing
    chances = np.full(len(clusters), 1 / len(clusters))
    counts = np.random.default_rng(seed).multinomial(len(clusters), chances, size=draws).astype(np.float64)
    batches = np.split(counts, range(_BATCH, draws, _BATCH))
    samples = np.concatenate([_resampled(below, codes, batch)[:, i][:, :, j] for batch in batches])
    low, high = _quantiles(samples, [(1 - level) / 2, (1 + level) / 2])
    return value, low, high


def _below(values: FloatArray, codes: IntArray) -> FloatArray:
    """Per cluster and run (C, n): how many of the cluster's runs score less, and half of those that score alike.

    Weighted by how often each cluster was drawn, their sum over clusters is the run's rank among what was drawn.
    So the ranks in all resamples are one matrix product, without any sorting.
    """
    order = np.argsort(values, kind="stable")
    member = np.zeros((len(values) + 1, codes.max() + 1))
    member[np.arange(1, len(values) + 1), codes[order]] = 1
    counts = np.cumsum(member, axis=0)
    first, last = (np.searchsorted(values[order], values, side) for side in ("left", "right"))
    below: FloatArray = (counts[first] + counts[last]).T / 2
    return below


def _resampled(below: FloatArray, codes: IntArray, counts: FloatArray) -> FloatArray:
    """Pearson's correlations of the ranks in each resample (draws, M, M), from M times ``_below`` (M, C, n)."""
    weights = counts[:, codes]
    middle = weights.sum(axis=1)[:, None, None] / 2  # the mean rank
    ranks = (counts @ below).transpose(1, 0, 2) - middle
    ranks *= np.sqrt(weights)[:, None]
    products = ranks @ ranks.transpose(0, 2, 1)
    deviations = np.sqrt(np.diagonal(products, axis1=1, axis2=2))
    with np.errstate(invalid="ignore"):
        correlations: FloatArray = products / (deviations[:, :, None] * deviations[:, None])
    return np.clip(correlations, -1, 1)


def _quantiles(samples: FloatArray, which: list[float]) -> FloatArray:
    """Quantiles over the first axis, without NaN."""
    if not np.isnan(samples).any():
        return np.quantile(samples, which, axis=0)
    # In some resamples a score was constant; where it always is, there is no interval.
    flat = samples.reshape(len(samples), -1)
    quantiles = np.full((len(which), flat.shape[1]), np.nan)
    defined = ~np.isnan(flat).all(axis=0)
    quantiles[:, defined] = np.nanquantile(flat[:, defined], which, axis=0)
    return quantiles.reshape(len(which), *samples.shape[1:])


def _frame(
    left: list[str], right: list[str], value: FloatArray, low: FloatArray, high: FloatArray, n: int
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "row": np.repeat(np.array(left, dtype=object), len(right)),
            "column": np.tile(np.array(right, dtype=object), len(left)),
            "value": value.ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
            "n": n,
        }
    )
