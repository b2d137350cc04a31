"""Do metrics agree, and do method and strength decide the score? (Locatello et al., sections 5.3 to 5.5)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from unweave.analyses.intervals import grouped
from unweave.analyses.rank_correlation import rank_correlations
from unweave.analyses.settings import (
    DISENTANGLEMENT_METRICS,
    available,
    independent_noise,
    with_strength_index,
)
from unweave.study.results import select, wide

# What needs no labels, with the representation that it is measured on.
UNSUPERVISED_SCORES = {
    "unsupervised.reconstruction": "sampled",
    "gaussian_total_correlation": "sampled",
    "unsupervised.kl": "sampled",
    "unsupervised.elbo": "sampled",
}


def scores(table: pd.DataFrame, least: int = 1) -> tuple[pd.DataFrame, list[str]]:
    """One row per run with its ``strength_index`` and disentanglement metrics, and which metrics these are."""
    metrics = available(table, DISENTANGLEMENT_METRICS, least)
    return with_strength_index(wide(independent_noise(table, metrics), metrics)), metrics


def between_metrics(table: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation over runs of every two metrics, per data set (Figure 6).

    Columns: data, row, column, value, low, high, n, with the bootstrap interval over seeds.
    """
    runs, metrics = scores(table, least=2)
    return per_data(runs, metrics, metrics)


def with_unsupervised_scores(table: pd.DataFrame) -> pd.DataFrame:
    """As ``between_metrics``, but of the unsupervised scores (rows) with the metrics (columns) (Figure 9).

    Reconstruction is an error, -log p(x|z): a negative correlation is one with good reconstructions.
    """
    runs, metrics = scores(table)
    chosen = available(table, list(UNSUPERVISED_SCORES))
    rows = independent_noise(table, chosen)
    columns: list[pd.DataFrame | pd.Series] = [
        select(rows, name, UNSUPERVISED_SCORES[name]).set_index("run")["value"].rename(name)
        for name in chosen
    ]
    return per_data(runs.set_index("run").join(columns), chosen, metrics)


def distributions(table: pd.DataFrame) -> pd.DataFrame:
    """How the scores of all runs of a method spread, per data set and metric (Figure 7).

    Columns: data, method, metric, n, and the quantiles q05, q25, q50, q75 and q95 over strengths and seeds.
    """
    runs, metrics = scores(table)
    keys = ["data", "method", "metric"]
    groups = runs.melt(keys[:2], metrics, var_name="metric").dropna(subset="value").groupby(keys)["value"]
    found = groups.quantile(np.array([0.05, 0.25, 0.5, 0.75, 0.95])).unstack()
    found.columns = pd.Index([f"q{100 * level:02.0f}" for level in found.columns])
    return groups.size().rename("n").to_frame().join(found).reset_index()


def against_strength(table: pd.DataFrame) -> pd.DataFrame:
    """The median score of each data set, method, strength and metric (Figure 8).

    Columns: data, method, strength_index, metric, value, low, high, n; ``low`` and ``high`` are the 95% bootstrap
    interval of the median over runs.
    """
    runs, metrics = scores(table)
    keys = ["data", "method", "strength_index"]
    return grouped(runs.melt(keys, metrics, var_name="metric"), [*keys, "metric"])


def per_data(runs: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """``rank_correlations`` within each data set, in the data sets' order of appearance."""
    parts = [
        rank_correlations(part, rows, columns).assign(data=name)
        for name, part in runs.groupby("data", sort=False)
    ]
    return pd.concat(parts, ignore_index=True)[["data", "row", "column", "value", "low", "high", "n"]]
