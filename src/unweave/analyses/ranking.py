"""Which method is best, and how sure that is: medians over seeds, ranks and tests, per data set and metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from unweave.analyses.intervals import Array, bootstrap_interval, resampled
from unweave.analyses.summaries import main_runs
from unweave.errors import ArgumentError
from unweave.study.results import NotInStudyError, select

# Scores of disentanglement of which more is better, in the order of the papers.
METRICS = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "explicitness", "sap", "z_diff")
_EXACT = 8  # up to so many values on one side the Mann-Whitney test is exact, if no values are equal

Strengths = Literal["best", "all"]


@dataclass(frozen=True)
class _Entry:
    """What represents a method in one comparison: its scores, and bootstrap draws of its median."""

    method: str
    strength: float
    values: Array
    draws: Array


def ranking(
    table: pd.DataFrame,
    metrics: Sequence[str] = METRICS,
    strengths: Strengths = "best",
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Rank the methods on each data set by the median over seeds of each metric.

    Parameters
    ----------
    metrics
        those of which more is better; those that the study lacks are left out.
    strengths
        "best": a method is represented by the strength with the best median there, as most papers do. This is
        optimistic, and more so for a method that was tried with more strengths: its median, its interval and the
        tests do not know that the strength was chosen by the same scores. "all": by its runs of all strengths, as
        if the strength were drawn at random; this says nothing of a well-tuned method.
    level
        of all intervals; 1 - level is the significance level of the tests.

    Returns
    -------
    one row per data set, metric and method, best first: ``strength`` (NaN for "all"), the median ``value`` with
    its interval ``low`` to ``high`` and ``n`` runs; ``rank`` by the median, with the interval ``rank_low`` to
    ``rank_high``; ``best``, the bootstrap probability of having the largest median (equal medians share it);
    ``letters``: methods that share a letter cannot be told apart; ``tied``: cannot be told apart from the first.

    The bootstrap draws seeds with replacement, for each strength by itself, and chooses the best strength anew in
    each draw; with a few seeds it is too sure of itself. Where a method has a single run, ``best`` and the rank's
    interval are NaN. Two methods are told apart
    if a two-sided Mann-Whitney test of their runs says so, with Holm's correction for all pairs on one data set and
    metric. The runs are those of ``main_runs``.
    """
    if strengths not in ("best", "all"):
        raise ArgumentError("strengths", strengths, "is 'best' or 'all'")
    rows = main_runs(table[table["metric"].isin(metrics)])
    rng = np.random.default_rng(seed)
    cells: dict[tuple[str, str], list[_Entry]] = {}
    known = set(rows["metric"].unique())
    for metric in (name for name in metrics if name in known):
        for data, cell in select(rows, metric).groupby("data", sort=False):
            entries = _entries(cell, strengths, draws, rng)
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
    found = []
    for (data, metric), entries in cells.items():
        pairs = len(entries) * (len(entries) - 1) // 2
        own, pvalues = pvalues[:pairs], pvalues[pairs:]
        found.append(_ranked(entries, holm(own), level, draws, seed).assign(data=data, metric=metric))
    result = pd.concat(found, ignore_index=True)
    return result[["data", "metric", *(name for name in result if name not in ("data", "metric"))]]


def mann_whitney(pairs: Sequence[tuple[Array, Array]]) -> Array:
    """The two-sided p-value of the Mann-Whitney test for each pair of samples; 1 if one of them is empty.

    Exact if the smaller sample has at most 8 values and no values are equal, else the normal approximation with
    corrections for ties and continuity.
    """
    result = np.ones(len(pairs))
    alike: dict[
        tuple[int, int, Literal["exact", "asymptotic"]], list[int]
    ] = {}  # tests of equal sizes are made at once
    for place, (one, other) in enumerate(pairs):
        if len(one) and len(other):
            small = min(len(one), len(other)) <= _EXACT
            exact = small and len(np.unique(np.concatenate([one, other]))) == len(one) + len(other)
            alike.setdefault((len(one), len(other), "exact" if exact else "asymptotic"), []).append(place)
    for (_, _, method), places in alike.items():
        ones, others = (np.stack([pairs[place][side] for place in places], axis=1) for side in (0, 1))
        result[places] = stats.mannwhitneyu(ones, others, axis=0, method=method).pvalue
    return result


def holm(pvalues: Array) -> Array:
    """Holm's (1979) adjusted p-values: the i-th smallest of m, times m - i + 1, at least those before it, at most 1.

    A hypothesis is rejected at level a if its adjusted value is below a; then the chance of any false rejection is
    at most a.
    """
    order = np.argsort(pvalues, kind="stable")
    adjusted = np.maximum.accumulate(pvalues[order] * np.arange(len(pvalues), 0, -1))
    result = np.empty(len(pvalues))
    result[order] = np.minimum(adjusted, 1.0)
    return result


def letters(different: NDArray[np.bool_]) -> list[str]:
    """A compact letter display of ``different`` (k, k), symmetric: two items share a letter unless they differ.

    Each letter stands for a largest set of items of which no two differ, found by Bron and Kerbosch's search; "a"
    is the set of the first item.
    """
    friends = [set(np.flatnonzero(~row)) - {place} for place, row in enumerate(different)]
    found: list[list[int]] = []

    def grow(inside: set[int], possible: set[int], seen: set[int]) -> None:
        if not possible and not seen:
            found.append(sorted(inside))
        for item in sorted(possible):
            grow(inside | {item}, possible & friends[item], seen & friends[item])
            possible, seen = possible - {item}, seen | {item}

    grow(set(), set(range(len(different))), set())
    groups = list(enumerate(sorted(found)))
    return [
        "".join(_letter(place) for place, group in groups if item in group) for item in range(len(friends))
    ]


def _entries(cell: pd.DataFrame, strengths: Strengths, draws: int, rng: np.random.Generator) -> list[_Entry]:
    """The methods of one data set and metric, best median first."""
    groups: dict[str, list[tuple[float, Array]]] = {}
    if strengths == "all":
        cell = cell.assign(strength=np.nan)
    for key, values in cell.groupby(["method", "strength"], dropna=False)["value"]:
        method, strength = cast("tuple[str, float]", key)
        known = values.dropna().to_numpy(np.float64)
        if len(known):
            groups.setdefault(method, []).append((strength, known))
    entries = []
    for method, candidates in groups.items():
        best = int(np.argmax([np.median(values) for _, values in candidates]))
        medians = [resampled(values[None], "median", draws, rng)[0] for _, values in candidates]
        entries.append(_Entry(method, *candidates[best], np.max(medians, axis=0)))
    return sorted(entries, key=lambda entry: (-np.median(entry.values), entry.method))


def _ranked(entries: list[_Entry], pvalues: Array, level: float, draws: int, seed: int) -> pd.DataFrame:
    medians = np.array([np.median(entry.values) for entry in entries])
    samples = np.stack([entry.draws for entry in entries])
    top = samples == samples.max(axis=0)
    best = (top / top.sum(axis=0)).mean(axis=1)
    ranks = 1 + (samples[None] > samples[:, None]).sum(axis=1)
    tail = [(1 - level) / 2, (1 + level) / 2]
    rank_low, rank_high = np.quantile(ranks, tail, axis=1, method="inverted_cdf").astype(np.float64)
    if min(len(entry.values) for entry in entries) < 2:
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
            "strength": [entry.strength for entry in entries],
            "value": medians,
            "low": low,
            "high": high,
            "n": [len(entry.values) for entry in entries],
            "rank": 1 + (medians[None] > medians[:, None]).sum(axis=1),
            "rank_low": rank_low,
            "rank_high": rank_high,
            "best": best,
            "letters": letters(different),
            "tied": ~different[0],
        }
    )


def _letter(place: int) -> str:
    """a to z, then a1 to z1, and so on."""
    return "abcdefghijklmnopqrstuvwxyz"[place % 26] + (str(place // 26) if place >= 26 else "")
