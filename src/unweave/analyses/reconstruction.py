"""What does disentanglement cost in reconstruction? (Kumar et al., Figures 1 and 2, Table 1)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from unweave.analyses.runs import best_strengths, main_runs
from unweave.analyses.statistics.intervals import grouped_intervals
from unweave.study.results import NotInStudyError, select

ERROR = "unsupervised.l2"
SCORES = ("sap", "z_diff")


def reconstruction_trade_off(
    table: pd.DataFrame, scores: Sequence[str] = SCORES, values_per_image: Mapping[str, int] | None = None
) -> pd.DataFrame:
    """Medians over seeds of scores and of the reconstruction error, per strength.

    The error of an image is the sum over pixels and channels of (x - x')^2, x' decoded from the mean code. The paper
    does not say which error it averages per pixel, and takes images of a test set.

    Parameters
    ----------
    table
        a results table; its main runs count.
    scores
        the metrics to compare with; those that the study lacks are left out.
    values_per_image
        by data set, pixels times channels of an image, by which its error is divided; without it the error is a sum.

    Returns
    -------
    one row per data set, method, variant and strength: data, method, variant, strength_name, strength, ``error``,
    ``error_low``, ``error_high``, ``error_values``, n, and for each score that the study has its name, name_low,
    name_high and name_values (those of fewer than five seeds); ``chosen``: whether the
    strength is the method's best by the first of these scores.

    Examples
    --------
    >>> from unweave.analyses import reconstruction_trade_off, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5, strengths=3)
    >>> costs = reconstruction_trade_off(table, ["sap"], values_per_image={"dsprites": 64 * 64})
    >>> costs[["strength", "error", "sap", "chosen"]]
       strength  error   sap  chosen
    0       1.0  0.004  0.05    True
    1       2.0  0.007  0.05   False
    2       4.0  0.008  0.01   False
    """
    rows = main_runs(table[table["metric"].isin([ERROR, *scores])])
    known = set(rows["metric"].unique())
    present = [score for score in scores if score in known]
    if not present:
        raise NotInStudyError(f"the study has none of the scores {', '.join(scores)}")
    by = ["data", "method", "variant", "strength_name", "strength"]
    errors = select(rows, ERROR)
    sizes = errors["data"].map(dict(values_per_image or {})).astype(np.float64).fillna(1.0)
    result = _medians(errors.assign(value=errors["value"] / sizes), by, "error")
    for score in present:
        result = result.merge(_medians(select(rows, score), by, score).drop(columns="n"), on=by)
    best = best_strengths(select(rows, present[0])).assign(chosen=True).drop(columns="value")
    result = result.merge(best, on=["data", "method", "variant", "strength"], how="left")
    return result.assign(chosen=result["chosen"].notna())


def _medians(rows: pd.DataFrame, by: list[str], name: str) -> pd.DataFrame:
    """``grouped_intervals`` with columns that say what the median is of."""
    names = {"value": name, "low": f"{name}_low", "high": f"{name}_high", "values": f"{name}_values"}
    return grouped_intervals(rows, by).rename(columns=names)
