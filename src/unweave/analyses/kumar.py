"""Kumar et al., "Variational inference of disentangled latent concepts from unlabeled observations" (2018)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from unweave.analyses.intervals import grouped
from unweave.analyses.summaries import best_strengths, main_runs
from unweave.study.results import NotInStudyError, select

ERROR = "unsupervised.l2"
SCORES = ("sap", "z_diff")
ATTRIBUTES = "attribute_classification."


def trade_off(
    table: pd.DataFrame, scores: Sequence[str] = SCORES, values_per_image: Mapping[str, int] | None = None
) -> pd.DataFrame:
    """Medians over seeds of scores and of the reconstruction error (figures 1 and 2, table 1).

    Returns
    -------
    one row per data set, method and strength: data, method, strength_name, strength, n, ``error``, ``error_low``,
    ``error_high``, and for each score that the study has its name, name_low and name_high; ``chosen``: whether the
    strength is the method's best by the first of these scores.

    The error of an image is the sum over pixels and channels of (x - x')^2, x' decoded from the mean code; divided
    by the image's number of values for a data set in ``values_per_image``. The paper does not say which error it
    averages per pixel, and takes images of a test set.
    """
    rows = main_runs(table[table["metric"].isin([ERROR, *scores])])
    known = set(rows["metric"].unique())
    present = [score for score in scores if score in known]
    if not present:
        raise NotInStudyError(f"the study has none of the scores {', '.join(scores)}")
    by = ["data", "method", "strength_name", "strength"]
    errors = select(rows, ERROR)
    sizes = errors["data"].map(dict(values_per_image or {})).astype(np.float64).fillna(1.0)
    result = _medians(errors.assign(value=errors["value"] / sizes), by, "error")
    for score in present:
        result = result.merge(_medians(select(rows, score), by, score).drop(columns="n"), on=by)
    best = best_strengths(select(rows, present[0])).assign(chosen=True).drop(columns="value")
    result = result.merge(best, on=["data", "method", "strength"], how="left")
    return result.assign(chosen=result["chosen"].notna())


def attribute_accuracy(table: pd.DataFrame) -> pd.DataFrame:
    """Median accuracy of attribute classification (table 2): one row per data set, method and strength.

    Columns: data, method, strength_name, strength, n, then for each attribute its name, name_low and name_high (the 95%
    bootstrap interval over seeds); those whose medians differ most come first (the paper's table shows only these).
    """
    rows = main_runs(table[table["metric"].str.startswith(ATTRIBUTES)])
    if rows.empty:
        raise NotInStudyError("the study has no attribute classification")
    names = rows["metric"].unique()
    rows = pd.concat([select(rows, name) for name in names])
    by = ["data", "method", "strength_name", "strength"]
    found = grouped(rows.assign(metric=rows["metric"].str.removeprefix(ATTRIBUTES)), [*by, "metric"])
    medians, low, high = (
        found.pivot(index=by, columns="metric", values=part) for part in ("value", "low", "high")
    )
    spread = (medians.max() - medians.min()).sort_values(ascending=False, kind="stable")
    result = found.groupby(by, dropna=False)["n"].max().to_frame()
    for name in spread.index:
        ends = {name: medians[name], f"{name}_low": low[name], f"{name}_high": high[name]}
        result = result.assign(**ends)
    return result.reset_index()


def best_runs(table: pd.DataFrame, metric: str = "sap") -> pd.DataFrame:
    """Per data set and method the run with the largest score, whose traversals are shown (figures 3 and 4)."""
    rows = select(main_runs(table[table["metric"] == metric]), metric).dropna(subset="value")
    return rows.loc[rows.groupby(["data", "method"], sort=False)["value"].idxmax()].reset_index(drop=True)


def _medians(rows: pd.DataFrame, by: list[str], name: str) -> pd.DataFrame:
    found = grouped(rows, by)
    return found.rename(columns={"value": name, "low": f"{name}_low", "high": f"{name}_high"})
