"""Mita et al., "Learning optimal conditional priors for disentangled representations" (2021)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unweave.analyses.intervals import grouped
from unweave.analyses.summaries import main_runs
from unweave.study.results import NotInStudyError, select

METRICS = ("beta_vae", "mig", "sap", "modularity", "explicitness")  # figures 5 and 6
MAIN_METRICS = ("beta_vae", "explicitness")  # figures 3 and 4


def scores(
    table: pd.DataFrame,
    metrics: Sequence[str] = METRICS,
    representation: str | None = None,
    protocol: str | None = None,
    labels: str | None = None,
) -> pd.DataFrame:
    """The scores of all runs of the main line (``main_runs``): what a box plot of a method is drawn from.

    A metric has one representation and one protocol only: those of ``select``, by default its own choice, so that
    scores of codes made with and without knowing u are never mixed unknowingly: ``labels="given"``, the paper's choice,
    has to be asked for. Metrics that the study lacks are left out.
    """
    rows = main_runs(table[table["metric"].isin(metrics)])
    known = set(rows["metric"].unique())
    present = [metric for metric in metrics if metric in known]
    if not present:
        raise NotInStudyError(f"the study has none of the metrics {', '.join(metrics)}")
    return pd.concat([select(rows, metric, representation, protocol, labels) for metric in present])


def medians(
    table: pd.DataFrame,
    metrics: Sequence[str] = METRICS,
    representation: str | None = None,
    protocol: str | None = None,
    labels: str | None = None,
) -> pd.DataFrame:
    """The median over seeds per strength (figures 4 and 6): metric, data, method, strength, value, low, high, n."""
    rows = scores(table, metrics, representation, protocol, labels)
    return grouped(rows, ["metric", "data", "method", "strength"])
