"""The claims of Kumar et al., "Variational Inference of Disentangled Latent Concepts from Unlabeled Observations",
section 4, on 2D Shapes (dSprites).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from unweave.analyses.paper_claims.claim import Claim, Evidence, data_of, judge_together, label, number
from unweave.analyses.reconstruction import ERROR
from unweave.analyses.runs import main_runs
from unweave.analyses.statistics.permutation import pair_test, trend_test
from unweave.study.results import NotInStudyError, select

# (the method that is better, than which, by which score, where the paper says so)
_TRADE_OFFS = [
    ("dip_vae_ii", "beta_vae", "sap", "section 4, Figure 1: a much better trade-off"),
    ("dip_vae_ii", "dip_vae_i", "sap", "section 4, Figure 1: a much better trade-off"),
    ("dip_vae_i", "beta_vae", "z_diff", "section 4, Figure 1: much higher at little to no cost"),
]
_NAMES = {"sap": "SAP", "z_diff": "Z-diff"}


def kumar_claims(table: pd.DataFrame) -> list[Claim]:
    """Claim (i) in its parts, on each data set of a study.

    Examples
    --------
    >>> from unweave.analyses import simulate_results
    >>> from unweave.analyses.paper_claims.kumar import kumar_claims
    >>> table = simulate_results(["dsprites"], ["beta_vae", "dip_vae_ii"], seeds=4)
    >>> kumar_claims(table)[1].reason
    'the study has no finished runs of DIP-VAE-I'
    """
    claims: list[Claim] = []
    for part in [part for _, part in table.groupby("data", sort=False)] or [table]:
        claims += _trade_offs(part)
        claims += _price(part)
    return claims


def _trade_offs(table: pd.DataFrame) -> list[Claim]:
    """A run is better than another of its seed if its score is higher and its error is lower.

    Tested by permuting methods within seeds: pairs in which one is better, less those in which the other is.
    """
    tested: list[tuple[Claim, Evidence | None]] = []
    for method, other, score, where in _TRADE_OFFS:
        claim = Claim(
            f"(i) {label(method)} trades {_NAMES[score]} and reconstruction better than {label(other)}",
            where,
            data=data_of(table),
        )
        try:
            sides = [_with_strengths(_runs(table, name, score), name) for name in (other, method)]
            rows = pd.concat(sides, ignore_index=True)
        except NotInStudyError as error:
            tested.append((claim.not_tested(error), None))
            continue
        values, errors = (rows[name].to_numpy(np.float64) for name in ("score", "error"))
        higher = np.sign(values[:, None] - values[None]) + np.sign(errors[None] - errors[:, None])
        above = np.sign(np.where(np.abs(higher) == 2, higher, 0))
        order = (rows["method"] == method).to_numpy(int)
        test = pair_test(above, order, rows["seed"].to_numpy())
        pairs = above[np.ix_(order == 1, order == 0)]
        same = rows["seed"].to_numpy()[order == 1][:, None] == rows["seed"].to_numpy()[order == 0][None]
        best = "; ".join(_best(rows[rows["method"] == name]) for name in (method, other))
        text = (
            f"of {same.sum()} pairs of runs of a seed {label(method)} has the higher score and the lower error in "
            f"{(pairs[same] > 0).sum()}, {label(other)} in {(pairs[same] < 0).sum()}. {best}"
        )
        tested.append((claim.with_measured(text, rows), Evidence(test.effect, test.p, test.smallest)))
    return judge_together(tested)


def _price(table: pd.DataFrame) -> list[Claim]:
    """What beta-VAE pays: SAP and the reconstruction error rise with beta."""
    statements = [
        (
            "beta_vae",
            "score",
            f"The SAP of {label('beta_vae')} rises with beta",
            "Table 1: 0.04, 0.08, 0.55 at 1, 4, 60",
        ),
        (
            "beta_vae",
            "error",
            f"The reconstruction error of {label('beta_vae')} rises with beta",
            "Table 1: 0.0017, 0.0032, 0.0113",
        ),
    ]
    tested: list[tuple[Claim, Evidence | None]] = []
    for method, column, text, where in statements:
        claim = Claim(f"(i) {text}", where, data=data_of(table))
        try:
            rows = _with_strengths(_runs(table, method, "sap"), method)
        except NotInStudyError as error:
            tested.append((claim.not_tested(error), None))
            continue
        test = trend_test(rows[column], rows["strength"], rows["seed"])
        medians = rows.groupby("strength")[column].median()
        shown = ", ".join(number(value) for value in medians)
        betas = ", ".join(f"{beta:g}" for beta in medians.index)
        claim = claim.with_measured(f"medians {shown} at beta {betas}", rows)
        tested.append((claim, Evidence(test.effect, test.p, test.smallest)))
    return judge_together(tested)


def _runs(table: pd.DataFrame, method: str, score: str) -> pd.DataFrame:
    """The runs of a method with their score and reconstruction error (sum over pixels)."""
    rows = main_runs(table)
    scores = select(rows, score)
    errors = select(rows, ERROR).set_index("run")["value"]
    scores = scores[scores["method"] == method]
    scores = scores.assign(score=scores["value"], error=scores["run"].map(errors))
    scores = scores.dropna(subset=["score", "error"])
    if scores.empty:
        raise NotInStudyError(f"the study has no finished runs of {label(method)}")
    return scores


def _with_strengths(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """The rows, if they are of several strengths: one is neither a trade-off nor a trend."""
    if rows["strength"].nunique() < 2:
        raise NotInStudyError(f"the study has {label(method)} with one strength")
    return rows


def _best(rows: pd.DataFrame) -> str:
    medians = rows.groupby("strength", as_index=False)[["score", "error"]].median()
    strength, score, error = medians.sort_values("score").iloc[-1][["strength", "score", "error"]].tolist()
    method = label(str(rows["method"].iloc[0]))
    return f"{method} at its best strength {strength:g}: {number(score)}, error {number(error)}"
