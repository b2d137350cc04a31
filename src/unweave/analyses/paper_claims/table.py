"""All claims of all papers, judged on one results table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from unweave.analyses.paper_claims.claim import Claim, claim_table
from unweave.analyses.paper_claims.kumar import kumar_claims
from unweave.analyses.paper_claims.locatello import locatello_claims
from unweave.analyses.paper_claims.mita import mita_claims
from unweave.analyses.paper_claims.yang import yang_claims
from unweave.errors import unknown_name

# In the order of their letters. A function takes a results table, and returns every claim of the paper.
PAPER_CLAIMS: dict[str, Callable[[pd.DataFrame], list[Claim]]] = {
    "locatello": locatello_claims,
    "kumar": kumar_claims,
    "yang": yang_claims,
    "mita": mita_claims,
}


def claims(table: pd.DataFrame, papers: Sequence[str] | None = None) -> pd.DataFrame:
    """The claims of the papers, each with what a study measured and a verdict by a stated rule.

    The rules are those of :mod:`unweave.analyses.paper_claims.claim`: tests within seeds, two-sided, with Holm's
    correction over all tests of a claim.

    Parameters
    ----------
    table
        a results table.
    papers
        "locatello", "kumar", "yang", "mita". By default those of which the study tests something; all if it tests none.

    Returns
    -------
    claim, data, paper (where, and its number), measured, n, p (adjusted; NaN where there is none), verdict ("holds",
    "does not hold", "not shown" or "not tested") and its reason.

    Examples
    --------
    >>> from unweave.analyses import claims, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5)
    >>> claims(table, ["locatello"]).iloc[0][["paper", "verdict"]].tolist()
    ['section 5.2, Figure 2', 'holds']
    """
    for name in papers or ():
        if name not in PAPER_CLAIMS:
            raise unknown_name("paper", name, PAPER_CLAIMS)
    judged = {name: PAPER_CLAIMS[name](table) for name in (papers or PAPER_CLAIMS)}
    if papers is None:
        tested = {name for name, all_ in judged.items() if any(one.verdict != "not tested" for one in all_)}
        judged = {name: all_ for name, all_ in judged.items() if name in (tested or judged)}
    return claim_table(one for all_ in judged.values() for one in all_)
