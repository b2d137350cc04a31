"""Which method is best, and how sure is that? Medians over seeds, ranks and tests, per data set and metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, cast

import numpy as np
import pandas as pd

from unweave.analyses.runs import DISENTANGLEMENT_METRICS, main_runs
from unweave.analyses.statistics.intervals import FEWEST, Level, bootstrap_interval, bootstrap_samples
from unweave.analyses.statistics.significance import compact_letters, holm, mann_whitney
from unweave.arrays import FloatArray
from unweave.metrics import METRICS
from unweave.parameters import Count, Seed, check_value
from unweave.study.results import NotInStudyError, select

Strengths = Literal["best", "all"]


def rank_methods(
    table: pd.DataFrame,
    metrics: Sequence[str] | None = None,
    strengths: Strengths = "best",
    level: Level = 0.95,
    draws: Count = 1000,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Rank the methods on each data set by the median over seeds of each metric.

    The runs are those of :func:`main_runs`. The bootstrap draws seeds with replacement, for each strength by itself,
    and chooses the best strength anew in each draw; with a few seeds it is too sure of itself. Two methods differ if
    a two-sided Mann-Whitney test of their runs says so, with Holm's correction for all pairs on one data set and
    metric.

    Parameters
    ----------
    table
        a results table.
    metrics
        those that the study lacks are left out. A metric that says of itself that less is better is ranked so. None:
        all metrics of the study that compare codes with factors and of which more is better.
    strengths
        "best": a method is represented by the strength with the best median there, as most papers do. This is
        optimistic, and more so for a method that was tried with more strengths: its median, its interval and the
        tests do not know that the strength was chosen by the same scores. "all": by its runs of all strengths, as
        if the strength were drawn at random; this says nothing of a well-tuned method.
    level
        of all intervals; 1 - level is the significance level of the tests.
    draws, seed
        how many bootstrap samples; of the random numbers.

    Returns
    -------
    one row per data set, metric, method and variant, best first: ``strength`` (NaN for "all"), the median ``value``
    with its interval ``low`` to ``high`` and ``n`` runs; ``rank`` by the median, with the interval ``rank_low`` to
    ``rank_high``; ``best``, the bootstrap probability of having the largest median (equal medians share it);
    ``letters``: methods that share a letter do not differ; ``tied``: does not differ from the first. Where a method
    has fewer than five runs there, ``best`` and the intervals are NaN, and ``values`` are its scores.

    Examples
    --------
    >>> from unweave.analyses import rank_methods, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae", "factor_vae"], seeds=10)
    >>> rank_methods(table, ["mig"])[["method", "rank", "tied"]]
           method  rank  tied
    0  factor_vae     1  True
    1    beta_vae     2  True
    """
    check_value("strengths", strengths, Strengths)
    metrics = _comparable(table) if metrics is None else metrics
    rows = main_runs(table[table["metric"].isin(metrics)])
    rng = np.random.default_rng(seed)
    cells: dict[tuple[str, str], list[_Entry]] = {}
    known = set(rows["metric"].unique())
    for metric in (name for name in metrics if name in known):
        for data, cell in select(rows, metric).groupby("data", sort=False):
            sign = -1.0 if _less_is_better(metric) else 1.0
            entries = _entries(cell.assign(value=sign * cell["value"]), strengths, draws, rng)
            if len(entries) > 1:
                cells[str(data), metric] = entries
    if not cells:
        raise NotInStudyError(
            "a ranking needs two methods on one data set, with one of the disentanglement scores"
        )
    tests = [
        (one.values, other.values) for entries in cells.values() for one, other in combinations(entries, 2)
    ]
    pvalues = mann_whitney(tests)
    parts = []
    for (data, metric), entries in cells.items():
        pairs = len(entries) * (len(entries) - 1) // 2
        within, pvalues = pvalues[:pairs], pvalues[pairs:]
        ranked = _ranked(entries, holm(within), level, draws, seed)
        if _less_is_better(metric):
            ranked = ranked.assign(value=-ranked["value"], low=-ranked["high"], high=-ranked["low"])
            ranked["values"] = [tuple(-value for value in reversed(few)) for few in ranked["values"]]
        parts.append(ranked.assign(data=data, metric=metric))
    result = pd.concat(parts, ignore_index=True)
    return result[["data", "metric", *(name for name in result if name not in ("data", "metric"))]]


def _comparable(table: pd.DataFrame) -> list[str]:
    """The metrics of a study by which methods are ranked unless others are asked for."""
    known = [METRICS.get(name) for name in table["metric"].unique()]
    names = [metric.name for metric in known if metric and metric.uses_factors and metric.higher_is_better]
    order = dict.fromkeys(
        [*DISENTANGLEMENT_METRICS, *METRICS]
    )  # that of the papers' figures, then of the registry
    return sorted(names, key=list(order).index)


def _less_is_better(name: str) -> bool:
    """Whether a metric says so; what is not known by name is taken as it is."""
    metric = METRICS.get(name)
    return metric is not None and not metric.higher_is_better


@dataclass(frozen=True)
class _Entry:
    """What represents a method in one comparison: its scores (more is better), and bootstrap draws of its median."""

    method: str
    variant: str
    strength: float
    values: FloatArray
    draws: FloatArray


def _entries(cell: pd.DataFrame, strengths: Strengths, draws: int, rng: np.random.Generator) -> list[_Entry]:
    """The methods of one data set and metric, best median first."""
    groups: dict[tuple[str, str], list[tuple[float, FloatArray]]] = {}
    if strengths == "all":
        cell = cell.assign(strength=np.nan)
    for key, values in cell.groupby(["method", "variant", "strength"], dropna=False)["value"]:
        method, variant, strength = cast("tuple[str, str, float]", key)
        known = values.dropna().to_numpy(np.float64)
        if len(known):
            groups.setdefault((method, variant), []).append((strength, known))
    entries = []
    for pair, candidates in groups.items():
        best = int(np.argmax([np.median(values) for _, values in candidates]))
        medians = [bootstrap_samples(values[None], "median", draws, rng)[0] for _, values in candidates]
        entries.append(_Entry(*pair, *candidates[best], np.max(medians, axis=0)))
    return sorted(entries, key=lambda entry: (-np.median(entry.values), entry.method, entry.variant))


def _ranked(entries: list[_Entry], pvalues: FloatArray, level: float, draws: int, seed: int) -> pd.DataFrame:
    """The rows of one data set and metric; ``pvalues`` are those of all pairs of entries."""
    medians = np.array([np.median(entry.values) for entry in entries])
    samples = np.stack([entry.draws for entry in entries])
    top = samples == samples.max(axis=0)
    best = (top / top.sum(axis=0)).mean(axis=1)
    ranks = 1 + (samples[None] > samples[:, None]).sum(axis=1)
    tail = [(1 - level) / 2, (1 + level) / 2]
    rank_low, rank_high = np.quantile(ranks, tail, axis=1, method="inverted_cdf").astype(np.float64)
    if min(len(entry.values) for entry in entries) < FEWEST:
        best, rank_low, rank_high = (np.full(len(entries), np.nan) for _ in range(3))
    different = np.zeros((len(entries), len(entries)), dtype=bool)
    above = np.triu_indices(len(entries), 1)
    different[above] = pvalues < 1 - level
    different |= different.T
    low, high = np.array(
        [bootstrap_interval(entry.values, "median", level, draws, seed) for entry in entries]
    ).T
    return pd.DataFrame(
        {
            "method": [entry.method for entry in entries],
            "variant": [entry.variant for entry in entries],
            "strength": [entry.strength for entry in entries],
            "value": medians,
            "low": low,
            "high": high,
            "n": [len(entry.values) for entry in entries],
            "rank": 1 + (medians[None] > medians[:, None]).sum(axis=1),
            "rank_low": rank_low,
            "rank_high": rank_high,
            "best": best,
            "letters": compact_letters(different),
            "tied": ~different[0],
        }
    ).assign(values=pd.Series([_few(entry.values) for entry in entries], dtype=object))


def _few(values: FloatArray) -> tuple[float, ...]:
    """The values, where there are too few for an interval."""
    return tuple(np.sort(values).tolist()) if len(values) < FEWEST else ()
