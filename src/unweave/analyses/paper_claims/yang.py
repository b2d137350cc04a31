"""The claims of Yang et al., "Towards Better Understanding of Disentangled Representations via Mutual Information",
section 5.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from unweave.analyses.correlated_noise import correlation_costs, scores_by_correlation
from unweave.analyses.paper_claims.claim import (
    Claim,
    Evidence,
    Judgement,
    Verdict,
    data_of,
    judge_together,
    label,
    number,
)
from unweave.analyses.statistics.intervals import FEWEST
from unweave.analyses.statistics.significance import mann_whitney
from unweave.study.results import NotInStudyError

MARGIN = 0.1  # what "nearly unchanged" may be: this share of the mean at s = 0, or the smallest s
_METHODS = ("vae", "factor_vae", "beta_tcvae")
_QUANTITIES = {
    "reconstruction": "reconstruction error",
    "kl": "KL term",
    "total_correlation": "total correlation",
}
_OF_TCVAE = {"reconstruction": (1, "higher"), "kl": (-1, "lower"), "total_correlation": (-1, "lower")}


def yang_claims(table: pd.DataFrame) -> list[Claim]:
    """Claim (j) in its parts, on each data set of a study.

    Examples
    --------
    >>> from unweave.analyses import simulate_results
    >>> from unweave.analyses.paper_claims.yang import yang_claims
    >>> table = simulate_results(["dsprites"], ["factor_vae"], seeds=8, strengths=1, correlations=[0.0, 0.9])
    >>> [claim.verdict for claim in yang_claims(table)][:2]
    ['not tested', 'holds']
    """
    claims: list[Claim] = []
    for part in [part for _, part in table.groupby("data", sort=False)] or [table]:
        claims += _mig(part)
        claims += _costs(part)
        claims += _invariance(part)
    return claims


def _mig(table: pd.DataFrame) -> list[Claim]:
    claim = Claim(
        "(j) A correlated posterior lowers MIG",
        "Figure 1: consistent across models and data sets",
        data=data_of(table),
    )
    return _score(table, claim, "mig", "median MIG {}", -1)


def _invariance(table: pd.DataFrame) -> list[Claim]:
    """Assumption 2 is that I(z_j; x) does not change when the other factors are known."""
    claim = Claim(
        "(j) A correlated posterior violates information invariance (a larger gap)",
        "Assumption 2 and Theorem 1; the paper has no figure of it",
        data=data_of(table),
    )
    return _score(table, claim, "information_invariance", "median gap {} nats", 1)


def _score(table: pd.DataFrame, about: Claim, metric: str, measured: str, direction: int) -> list[Claim]:
    """The claim that the size of a score falls (-1) or rises (1) when noise is correlated, for each method."""
    try:
        rows = scores_by_correlation(table, metric)
        why = ""
    except NotInStudyError as error:
        rows, why = table.iloc[:0].assign(variant=""), str(error)
    tested: list[tuple[Claim, Evidence | None]] = []
    for method, variant in _with_variants(rows):
        claim = replace(about, claim=f"{about.claim}: {label(method, variant)}")
        sides = _sides(rows, method, variant, "value")
        if sides is None:
            claim = claim.not_tested(why or f"no finished runs of {label(method, variant)} at both s")
            tested.append((claim, None))
            continue
        low, high, used = sides
        claim = claim.with_measured(measured.format(_change(low, high, used)), used)
        tested.append((claim, _difference(np.abs(low), np.abs(high), direction)))
    return judge_together(tested)


def _costs(table: pd.DataFrame) -> list[Claim]:
    try:
        runs = correlation_costs(table)
        why = ""
    except NotInStudyError as error:
        runs, why = pd.DataFrame({"method": [], "variant": []}), str(error)
    tested: list[tuple[Claim, Evidence | None]] = []
    for method, variant in _with_variants(runs):
        for quantity, name in _QUANTITIES.items():
            direction, word = _OF_TCVAE[quantity] if method == "beta_tcvae" else (0, "nearly unchanged")
            claim = Claim(
                f"(j) With a correlated posterior the {name} is {word}: {label(method, variant)}",
                "section 5.1, Figure 2 (dSprites)",
                data=data_of(table),
            )
            sides = _sides(runs, method, variant, quantity)
            if sides is None:
                claim = claim.not_tested(why or f"no finished runs of {label(method, variant)} at both s")
                tested.append((claim, None))
                continue
            low, high, used = sides
            claim = claim.with_measured(f"median {_change(low, high, used)} nats", used)
            if direction:
                tested.append((claim, _difference(low, high, direction)))
            else:
                tested.append((claim.judged(_unchanged(low, high, used["correlation"].min())), None))
    return judge_together(tested)


def _with_variants(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """The paper's methods, each with the variants that a study has of it."""
    pairs = []
    for method in _METHODS:
        known = sorted(rows.loc[rows["method"] == method, "variant"].unique().tolist())
        pairs += [(method, variant) for variant in known or [""]]
    return pairs


def _sides(
    rows: pd.DataFrame, method: str, variant: str, column: str
) -> tuple[Any, Any, pd.DataFrame] | None:
    """The values at the smallest and the largest correlation, and the rows of both; None if one is missing.

    Of a study under way some runs of one correlation lack their counterpart at the other, of equal strength and seed.
    These are left out: else a difference might be that of the strengths.
    """
    rows = rows[(rows["method"] == method) & (rows["variant"] == variant)]
    rows = rows.dropna(subset=column) if len(rows) else rows
    if rows.empty or rows["correlation"].nunique() < 2:
        return None
    ends = (rows["correlation"].min(), rows["correlation"].max())
    rows = rows[rows["correlation"].isin(ends)]
    pairs = rows.groupby(["strength", "seed"], dropna=False)["correlation"]
    rows = rows[pairs.transform("nunique") == 2]
    if rows.empty:
        return None
    low, high = (rows.loc[rows["correlation"] == end, column].to_numpy(np.float64) for end in ends)
    return low, high, rows


def _difference(low: Any, high: Any, direction: int) -> Evidence:
    """The Mann-Whitney test of both sides."""
    ranks = np.mean(np.sign(high[:, None] - low[None]))
    p = float(mann_whitney([(low, high)])[0])
    return Evidence(direction * float(ranks), p, 2 / math.comb(len(low) + len(high), len(low)))


def _unchanged(low: Any, high: Any, s: float) -> Judgement:
    """By the rule for what does not change: Welch's 95 % interval of the difference of means, and the margin."""
    from scipy import stats

    if min(len(low), len(high)) < FEWEST:
        return Judgement(math.nan, "not tested", f"an interval needs {FEWEST} seeds of each")
    margin = MARGIN * abs(float(low.mean()))
    interval = stats.ttest_ind(high, low, equal_var=False).confidence_interval(0.95)
    inside = -margin <= interval.low and interval.high <= margin
    outside = interval.low > margin or interval.high < -margin
    verdict: Verdict = "holds" if inside else "does not hold" if outside else "not shown"
    where = "inside" if inside else "outside" if outside else "across the ends of"
    return Judgement(
        math.nan,
        verdict,
        f"95 % interval of the change of the mean [{number(interval.low)}, {number(interval.high)}], {where} "
        f"{MARGIN:.0%} of the mean at s = {s:g} (+-{number(margin)})",
    )


def _change(low: Any, high: Any, rows: pd.DataFrame) -> str:
    small, large = rows["correlation"].min(), rows["correlation"].max()
    return (
        f"{number(float(np.median(low)))} at s = {small:g}, {number(float(np.median(high)))} at s = {large:g}"
    )
