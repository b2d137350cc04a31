"""What is said of a claim of a paper: what was measured, and a verdict by a rule that is computed.

The rules, the same for all papers:

- A claim with a direction (falls, is above) is tested two-sided. It **holds** if Holm's adjusted p, over all tests of
  the claim on a data set, is below 0.05 and the effect has the claimed direction, and **does not hold** if p is below
  0.05 and the effect is the opposite. Else it is **not shown**: no evidence either way.
- A claim that nothing changes holds if the 95 % interval of the change lies within a stated margin, does not hold if it
  lies outside, and is not shown otherwise.
- A claim about what is no matter of chance, such as the rank of a matrix, holds if every run agrees with it.
- A claim that there is no relation does not hold if one is shown; else it is not shown, as having seen nothing is not
  evidence.
- Where so few runs could not give p < 0.05 whatever their scores, or the study lacks what is needed, the claim is
  **not tested**, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from unweave.analyses.statistics.significance import holm
from unweave.methods.registry import method_label
from unweave.metrics import METRICS

Verdict = Literal["holds", "does not hold", "not shown", "not tested"]
LEVEL = 0.05
COLUMNS = ["claim", "data", "verdict", "p", "measured", "n", "paper", "reason"]


@dataclass(frozen=True)
class Claim:
    """A row of the table of claims.

    Parameters
    ----------
    claim
        what the paper claims, in a sentence that begins with its letter: "(a) …".
    paper
        where, and the paper's number if it has one.
    measured
        a plain sentence with the numbers.
    n
        how many runs and seeds.
    p
        Holm's adjusted p-value; NaN where there is none.
    verdict, reason
        by the rules above.
    data
        the data set; "" for a claim about several.
    """

    claim: str
    paper: str
    measured: str = ""
    n: str = ""
    p: float = math.nan
    verdict: Verdict = "not tested"
    reason: str = ""
    data: str = ""

    def with_measured(self, text: str, rows: pd.DataFrame) -> Claim:
        """With what was measured, on which runs."""
        return replace(self, measured=text, n=counted(rows))

    def judged(self, judgement: Judgement) -> Claim:
        """With its verdict."""
        return replace(self, p=judgement.p, verdict=judgement.verdict, reason=judgement.reason)

    def not_tested(self, why: object) -> Claim:
        """With the reason why it was not tested."""
        return replace(self, verdict="not tested", reason=str(why))


@dataclass(frozen=True)
class Evidence:
    """A test of one statement: the effect, positive in the claimed direction, and its two-sided p.

    ``smallest`` is the smallest p that so few runs can give.
    """

    effect: float
    p: float
    smallest: float = 0.0


@dataclass(frozen=True)
class Judgement:
    """Holm's adjusted p, and what follows."""

    p: float
    verdict: Verdict
    reason: str


def judge(family: Sequence[Evidence]) -> list[Judgement]:
    """The verdict on each test of a claim, by the rule for claims with a direction.

    Examples
    --------
    >>> from unweave.analyses.paper_claims.claim import Evidence, judge
    >>> [each.verdict for each in judge([Evidence(0.8, 0.001), Evidence(-0.9, 0.002), Evidence(0.1, 0.6)])]
    ['holds', 'does not hold', 'not shown']
    >>> judge([Evidence(1.0, 0.25, smallest=0.25)])[0].verdict
    'not tested'
    """
    adjusted = holm(np.array([one.p for one in family]))
    attainable = holm(np.array([one.smallest for one in family]))
    return [
        _judge(one, float(p), float(least), len(family))
        for one, p, least in zip(family, adjusted, attainable, strict=True)
    ]


def judge_together(tested: Sequence[tuple[Claim, Evidence | None]]) -> list[Claim]:
    """Claims with the verdicts on their tests, all of which are one family; a claim without a test stays as it is.

    Examples
    --------
    >>> from unweave.analyses.paper_claims.claim import Claim, Evidence, judge_together
    >>> rises, falls = Claim("(a) It rises", "section 1"), Claim("(a) It falls", "section 1").not_tested("no runs")
    >>> [claim.verdict for claim in judge_together([(rises, Evidence(0.8, 0.001)), (falls, None)])]
    ['holds', 'not tested']
    """
    judgements = iter(judge([test for _, test in tested if test is not None]))
    return [claim if test is None else claim.judged(next(judgements)) for claim, test in tested]


def _judge(one: Evidence, p: float, attainable: float, tests: int) -> Judgement:
    """``attainable`` is the smallest adjusted p that runs of these numbers can give."""
    if p < LEVEL:
        agrees = one.effect > 0
        return Judgement(
            p,
            "holds" if agrees else "does not hold",
            p_in_words(p) + ("" if agrees else ", the opposite"),
        )
    if attainable >= LEVEL:
        among = f" among {tests} tests" if tests > 1 else ""
        return Judgement(p, "not tested", f"so few runs cannot give p < 0.05{among}")
    return Judgement(p, "not shown", p_in_words(p))


def absence(judgements: Iterable[tuple[str, float, Judgement]], what: str) -> tuple[float, Verdict, str]:
    """The verdict on a claim that there is no relation: p, verdict and reason.

    Parameters
    ----------
    judgements
        of each relation its name, its size, and whether it was shown, in whichever direction.
    what
        a relation, in the plural: "correlations".
    """
    given = list(judgements)
    known = [(name, size, one) for name, size, one in given if not math.isnan(one.p)]
    shown = [f"{name} {size:.2f}" for name, size, one in known if one.p < LEVEL]
    p = min((one.p for *_, one in known), default=math.nan)
    if shown:
        return p, "does not hold", f"{len(shown)} of {len(known)} {what} have p < 0.05: {', '.join(shown)}"
    if given and all(one.verdict == "not tested" for *_, one in given):
        return p, "not tested", (known or given)[0][2].reason
    return (
        p,
        "not shown",
        f"none of {len(known)} {what} has p < 0.05, which is not evidence that there is none",
    )


def claim_table(claims: Iterable[Claim]) -> pd.DataFrame:
    """Claims as a table with the columns ``COLUMNS``."""
    rows = [[getattr(claim, name) for name in COLUMNS] for claim in claims]
    return pd.DataFrame(rows, columns=COLUMNS)


def label(method: str, variant: str = "") -> str:
    """A method as the papers write it, with its variant.

    >>> label("beta_vae"), label("beta_tcvae", "correlated noise")
    ('β-VAE', 'β-TCVAE (correlated noise)')
    """
    name = method_label(method)
    return f"{name} ({variant})" if variant else name


def metric_label(metric: str) -> str:
    """A metric's short name.

    >>> metric_label("mig")
    'MIG'
    """
    return METRICS[metric].label if metric in METRICS else metric


def number(value: float) -> str:
    """A number to three digits, without an exponent.

    >>> number(0.04567), number(1234.5), number(-0.5)
    ('0.0457', '1234', '-0.5')
    """
    if not math.isfinite(value):
        return "none"
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:.{min(digits, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def correlation_text(value: float) -> str:
    """A correlation to two digits.

    >>> correlation_text(-0.254), correlation_text(math.nan)
    ('-0.25', 'none')
    """
    return "none" if math.isnan(value) else f"{value:.2f}"


def p_text(p: float) -> str:
    """A p-value to two digits, or three where two would hide on which side of 0.05 it is.

    >>> p_text(0.0213), p_text(0.04985), p_text(0.00001), p_text(1.0)
    ('0.021', '0.0498', '< 0.0001', '1')
    """
    if p < 0.0001:
        return "< 0.0001"
    text = f"{p:.2g}"
    return f"{p:.3g}" if text == "0.05" else text


def p_in_words(p: float) -> str:
    """A p-value in a sentence.

    >>> p_in_words(0.0213), p_in_words(0.00001)
    ('p = 0.021', 'p < 0.0001')
    """
    return f"p {p_text(p)}" if p < 0.0001 else f"p = {p_text(p)}"


def data_of(table: pd.DataFrame) -> str:
    """The data set of a table, if it has one only."""
    names = table["data"].unique().tolist()
    return str(names[0]) if len(names) == 1 else ""


def counted(rows: pd.DataFrame) -> str:
    """How many runs and seeds some rows are of."""
    runs, seeds = rows["run"].nunique(), rows["seed"].nunique()
    return f"{runs} run{'s' * (runs != 1)}, {seeds} seed{'s' * (seeds != 1)}"
