"""Claim (l) of Mita et al.: a conditional prior p(z|u) with enough different u makes the model identifiable (Theorem 1,
appendix A; Khemakhem et al. 2020).

The theorem is about the model and infinite data. What it lets one expect of runs is judged where the sources are known:
on simulated ones, two of which depend on a segment u. Codes that are the sources have an MCC and a linear R^2 of 1.
"""

from __future__ import annotations

import math

import pandas as pd

from unweave.analyses.paper_claims.claim import (
    Claim,
    Evidence,
    Judgement,
    Verdict,
    judge_together,
    label,
    metric_label,
    number,
)
from unweave.analyses.statistics.intervals import FEWEST
from unweave.analyses.statistics.permutation import trend_test
from unweave.study.results import NotInStudyError, select

SOURCES = 2
FEW, LEAST, ENOUGH = 2, 2 * SOURCES + 1, 20  # segments; the theorem needs 2n + 1 = 5
METRICS = ("mcc", "linear_r2")
RANK = "conditional_prior_rank"  # of L, condition (iv) of the theorem
# What is trained, on how many segments; the seed of a run is that of its data set, too.
RUNS = (("vae", ENOUGH), ("ivae", FEW), ("ivae", LEAST), ("ivae", ENOUGH), ("idvae", ENOUGH))

_Runs = tuple[str, int]
# (what finds the sources better, than what, in words, where)
_COMPARISONS: list[tuple[_Runs, _Runs, str, str]] = [
    (
        ("ivae", ENOUGH),
        ("vae", ENOUGH),
        f"{label('ivae')} finds the sources better than {label('vae')}, {ENOUGH} segments",
        "Theorem 1 (appendix A); Khemakhem et al. 2020",
    ),
    (
        ("ivae", ENOUGH),
        ("ivae", FEW),
        f"{label('ivae')} finds the sources better with {ENOUGH} segments than with {FEW}, fewer than 2n + 1 = {LEAST}",
        "Theorem 1 (iv)",
    ),
    (
        ("idvae", ENOUGH),
        ("vae", ENOUGH),
        f"{label('idvae')} finds the sources better than {label('vae')}, {ENOUGH} segments",
        "Theorem 1 (appendix A), for the prior of section 4",
    ),
]
# (the method, and the rank of L by the number of segments)
_RANKS: list[tuple[str, dict[int, int]]] = [
    ("ivae", {FEW: FEW - 1, LEAST: 2 * SOURCES, ENOUGH: 2 * SOURCES}),
    ("idvae", {ENOUGH: 2 * SOURCES}),
]


def simulated_data(segments: int) -> str:
    """The name of the data sets with so many segments in a results table.

    >>> simulated_data(20)
    'simulated_sources_20'
    """
    return f"simulated_sources_{segments}"


SIMULATED = frozenset(simulated_data(segments) for _, segments in RUNS)


def identifiability_claims(table: pd.DataFrame) -> list[Claim]:
    """Claim (l) in its parts, on simulated sources; one row, not tested, of a study without such.

    Runs are compared on equal data sets, by a sign test. That L has a rank holds if it has it in every run.

    Examples
    --------
    >>> from unweave.analyses import simulate_results
    >>> from unweave.analyses.paper_claims.identifiability import identifiability_claims
    >>> claim, = identifiability_claims(simulate_results(["dsprites"], ["beta_vae"], seeds=2))
    >>> claim.verdict
    'not tested'
    """
    table = table[table["data"].isin(SIMULATED)]
    if table.empty:
        whole = Claim(
            "(l) A conditional prior with enough different u makes the model identifiable",
            "Theorem 1 (appendix A)",
        )
        return [
            whole.not_tested("needs the true sources: stored:identifiability tests it, on simulated ones")
        ]
    tested = [_comparison(table, *comparison, metric) for comparison in _COMPARISONS for metric in METRICS]
    return [*judge_together(tested), *(_rank(table, *expected) for expected in _RANKS)]


def _comparison(
    table: pd.DataFrame, one: _Runs, other: _Runs, words: str, where: str, metric: str
) -> tuple[Claim, Evidence | None]:
    claim = Claim(f"(l) {words}: {metric_label(metric)}", where)
    try:
        rows = _pairs(table, one, other, metric)
    except NotInStudyError as error:
        return claim.not_tested(error), None
    test = trend_test(rows["value"], rows["order"], rows["seed"])
    sides = rows.pivot_table(index="seed", columns="order", values="value", aggfunc="median")
    names = [_side_name(runs, alone=one[0] != other[0]) for runs in (one, other)]
    medians = " and ".join(number(float(sides[order].median())) for order in (1, 0))
    text = (
        f"medians of {' and '.join(names)}: {medians}; the first is above in {(sides[1] > sides[0]).sum()} of "
        f"{len(sides)} data sets"
    )
    return claim.with_measured(text, rows), Evidence(test.effect, test.p, test.smallest)


def _pairs(table: pd.DataFrame, one: _Runs, other: _Runs, metric: str) -> pd.DataFrame:
    """Scores of both on the seeds that both have, with ``order`` 1 and 0."""
    scores = select(table, metric, "mean")
    rows = pd.concat([_runs_of(scores, *runs).assign(order=order) for order, runs in ((1, one), (0, other))])
    rows = rows[rows.groupby("seed")["order"].transform("nunique") == 2]
    if rows.empty:
        names = " and ".join(_side_name(runs) for runs in (one, other))
        raise NotInStudyError(f"no runs of {names} on equal data sets")
    return rows


def _runs_of(rows: pd.DataFrame, method: str, segments: int) -> pd.DataFrame:
    chosen = rows[(rows["method"] == method) & (rows["data"] == simulated_data(segments))]
    chosen = chosen.dropna(subset="value")
    if chosen.empty:
        raise NotInStudyError(f"the study has no finished runs of {_side_name((method, segments))}")
    return chosen


def _side_name(runs: _Runs, alone: bool = False) -> str:
    """A method, and unless it stands ``alone`` its number of segments."""
    method, segments = runs
    return label(method) if alone else f"{label(method)} with {segments} segments"


def _rank(table: pd.DataFrame, method: str, expected: dict[int, int]) -> Claim:
    """By the rule for what is no matter of chance: every run has the rank."""
    ranks = ", ".join(f"{rank} with {segments}" for segments, rank in expected.items())
    claim = Claim(
        f"(l) L of {label(method)}'s prior has rank {ranks} segments, and needs {2 * SOURCES}",
        "Theorem 1 (iv)",
    )
    try:
        scores = select(table, RANK, "mean")
        parts = {segments: _runs_of(scores, method, segments) for segments in expected}
    except NotInStudyError as error:
        return claim.not_tested(error)
    text = ", ".join(_seen(part["value"], segments) for segments, part in parts.items())
    claim = claim.with_measured(f"rank {text}", pd.concat(parts.values()))
    if min(part["seed"].nunique() for part in parts.values()) < FEWEST:
        return claim.not_tested(f"needs {FEWEST} data sets of each number of segments")
    every = all((part["value"] == expected[segments]).all() for segments, part in parts.items())
    verdict: Verdict = "holds" if every else "does not hold"
    return claim.judged(Judgement(math.nan, verdict, "rule: in every run; there is no test"))


def _seen(values: pd.Series[float], segments: int) -> str:
    """The ranks of some runs, each with how many have it."""
    counts = values.astype(int).value_counts().sort_index()
    each = " and ".join(f"{rank} in {count}" for rank, count in counts.items())
    return f"{each} of {len(values)} runs with {segments} segments"
