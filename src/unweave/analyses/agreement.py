"""Do the metrics agree with each other? (Locatello et al., section 5.3)"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unweave.analyses.runs import disentanglement_scores
from unweave.analyses.statistics.rank_correlation import rank_correlations


def metric_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation over runs of every two disentanglement metrics, per data set (Figure 6).

    Parameters
    ----------
    table
        a results table with at least two of the metrics.

    Returns
    -------
    data, row, column, value, low, high, n, with the bootstrap interval over seeds.

    Examples
    --------
    >>> from unweave.analyses import metric_correlations, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5)
    >>> metric_correlations(table).query("row == 'mig' and column == 'mig'")[["value", "n"]]
        value   n
    14    1.0  30
    """
    runs, metrics = disentanglement_scores(table, at_least=2)
    return correlations_by_data(runs, metrics, metrics)


def correlations_by_data(runs: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """:func:`rank_correlations` within each data set, in the data sets' order of appearance."""
    parts = [
        rank_correlations(part, rows, columns).assign(data=name)
        for name, part in runs.groupby("data", sort=False)
    ]
    return pd.concat(parts, ignore_index=True)[["data", "row", "column", "value", "low", "high", "n"]]
