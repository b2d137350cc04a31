"""The claims of the papers that a study is about, with verdicts: a table per paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from unweave.analyses.paper_claims.claim import p_text
from unweave.analyses.paper_claims.table import PAPER_CLAIMS, claims
from unweave.figures.papers.paper import Exhibit
from unweave.study import NotInStudyError, Results

_CAPTION = (
    "Verdicts are computed. A claim holds, or does not hold, if a two-sided test gives p < 0.05 in the claimed, or the "
    "opposite, direction, with Holm's correction over all tests of the claim; a claim that nothing changes, if a 95 % "
    "interval is inside, or outside, a stated margin. Else it is not shown: there is no evidence either way. What the "
    "study lacks runs for is not tested."
)


def claim_exhibits(papers: Sequence[str]) -> tuple[Exhibit, ...]:
    """A table for each of some papers that has claims.

    >>> [exhibit.name for exhibit in claim_exhibits(["yang", "ranking"])]
    ['claims-yang']
    """
    return tuple(
        Exhibit(
            f"claims-{name}",
            f"Claims of {name.capitalize()} et al.",
            f"{name.capitalize()} et al.",
            _CAPTION,
            partial(claim_results, paper=name),
            explains_labels=True,
        )
        for name in papers
        if name in PAPER_CLAIMS
    )


def claim_results(results: Results, paper: str) -> pd.DataFrame:
    """The claims of a paper as a table for readers."""
    table = results.analysed(claims, papers=[paper])
    if (table["verdict"] == "not tested").all():
        raise NotInStudyError(
            f"its runs test none of the {len(table)} claims ('unweave study claims' says why of each)"
        )
    if len(set(table["data"]) - {""}) < 2:
        table = table.drop(columns="data")
    shown = table.assign(p=["" if pd.isna(p) else p_text(p) for p in table["p"]])
    return shown.rename(columns=str.capitalize).rename(columns={"P": "p", "N": "n"})
