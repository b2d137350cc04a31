"""The claims of Mita et al., "Learning Optimal Conditional Priors For Disentangled Representations", section 5."""

from __future__ import annotations

import math

import pandas as pd

from unweave.analyses.paper_claims.claim import (
    LEVEL,
    Claim,
    Evidence,
    Judgement,
    Verdict,
    data_of,
    judge,
    label,
    metric_label,
    number,
)
from unweave.analyses.paper_claims.identifiability import SIMULATED, identifiability_claims
from unweave.analyses.runs import main_runs
from unweave.analyses.statistics.permutation import trend_test
from unweave.study.results import NotInStudyError, select

METRICS = ("beta_vae", "explicitness", "mig", "sap", "modularity")
# (the method that is above, which, where and in which words)
_PAIRS = [
    ("idvae", "ivae", "Figure 3: IDVAE always outperforms iVAE"),
    ("idvae", "beta_vae", "Figure 3: β-VAE is often the worst"),
    ("ivae", "beta_vae", "Figure 3: β-VAE is often the worst; Figure 4: by beta score on dSprites iVAE is"),
    ("idvae", "full_vae", "Figure 3: IDVAE emerges as the best method, except for SmallNORB"),
]
_SEMI = [("ss_idvae", "ss_ivae", "appendix C; the paper has no figure of it")]
_MODES = {"given": "u given", "predicted": "u predicted", "unknown": "u unknown"}


def mita_claims(table: pd.DataFrame) -> list[Claim]:
    """Claims (k), for each way in which encoders get labels, on each data set of a study; (l) on simulated sources.

    Examples
    --------
    >>> from unweave.analyses import simulate_results
    >>> from unweave.analyses.paper_claims.mita import mita_claims
    >>> mita_claims(simulate_results(["dsprites"], ["beta_vae"], seeds=2))[0].reason
    'the study has no finished runs of IDVAE'
    """
    claims: list[Claim] = []
    images = table[~table["data"].isin(SIMULATED)]
    parts = [part for _, part in images.groupby("data", sort=False)]
    for part in parts or ([table] if table.empty else []):
        for mode in ("given", "unknown"):
            claims += _comparisons(part, _PAIRS, mode)
        for mode in ("given", "predicted", "unknown"):
            claims += _comparisons(part, _SEMI, mode)
    return [*claims, *identifiability_claims(table)]


def _comparisons(table: pd.DataFrame, pairs: list[tuple[str, str, str]], mode: str) -> list[Claim]:
    """Runs of equal seed and strength are compared, metric by metric, all tests of a mode as one family.

    A claim holds where a method is above by more than half of the metrics with p < 0.05, and below by none; it does not
    hold where it is below by some, and above by none.
    """
    claims: list[Claim] = []
    families: list[list[Evidence]] = []
    for method, other, where in pairs:
        claim = Claim(
            f"(k) {label(method)} is above {label(other)}, {_MODES[mode]}", where, data=data_of(table)
        )
        evidence, parts, used = [], [], []
        try:
            for metric in METRICS:
                rows = _rows(table, method, other, metric, mode)
                order = (rows["method"] == method).astype(int)
                test = trend_test(rows["value"], order, rows["block"])
                evidence.append(Evidence(test.effect, test.p, test.smallest))
                one, two = (rows.loc[rows["method"] == name, "value"].median() for name in (method, other))
                parts.append(f"{metric_label(metric)} {number(one)} and {number(two)}")
                used.append(rows)
        except NotInStudyError as error:
            claims.append(claim.not_tested(error))
            families.append([])
            continue
        claims.append(claim.with_measured("medians: " + ", ".join(parts), pd.concat(used)))
        families.append(evidence)
    judgements = iter(judge([one for family in families for one in family]))
    return [
        claim.judged(_by_metrics([next(judgements) for _ in family], family)) if family else claim
        for claim, family in zip(claims, families, strict=True)
    ]


def _by_metrics(judgements: list[Judgement], family: list[Evidence]) -> Judgement:
    shown = [
        (metric, one, test.effect > 0) for metric, one, test in zip(METRICS, judgements, family, strict=True)
    ]
    above = [metric_label(metric) for metric, one, up in shown if one.p < LEVEL and up]
    below = [metric_label(metric) for metric, one, up in shown if one.p < LEVEL and not up]
    p = min((one.p for one in judgements), default=math.nan)
    verdict: Verdict = "not shown"
    if all(one.verdict == "not tested" for one in judgements):
        return Judgement(p, "not tested", judgements[0].reason)
    if len(above) > len(METRICS) / 2 and not below:
        verdict = "holds"
    elif below and not above:
        verdict = "does not hold"
    said = [f"{word} by {', '.join(names)}" for word, names in (("above", above), ("below", below)) if names]
    return Judgement(p, verdict, f"p < 0.05: {'; '.join(said) or 'by none of the metrics'}")


def _rows(table: pd.DataFrame, method: str, other: str, metric: str, mode: str) -> pd.DataFrame:
    """Scores of two methods at equal strengths and seeds; an encoder that takes no labels has none of any mode."""
    for name in (method, other):
        if not (table["method"] == name).any():
            raise NotInStudyError(f"the study has no finished runs of {label(name)}")
    rows = main_runs(select(table, metric, "mean", labels=mode))
    rows = rows[rows["method"].isin([method, other])].dropna(subset="value")
    block = rows["seed"].astype(str) + "/" + rows["strength"].astype(str)
    both = rows.groupby(block)["method"].transform("nunique") == 2
    rows = rows.assign(block=block)[both]
    if rows.empty:
        raise NotInStudyError(
            f"no runs of {label(method)} and {label(other)} of equal seed and strength, {_MODES[mode]}"
        )
    return rows
