"""How much do method and strength decide the score? (Locatello et al., section 5.4; Mita et al., section 5)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from unweave.analyses.runs import disentanglement_scores, main_runs
from unweave.analyses.statistics.intervals import grouped_intervals
from unweave.study.results import NotInStudyError, select


def score_distributions(table: pd.DataFrame) -> pd.DataFrame:
    """How the scores of all runs of a method spread, per data set and metric (Locatello et al., Figure 7).

    Parameters
    ----------
    table
        a results table.

    Returns
    -------
    data, method, variant, metric, n, and the quantiles q05, q25, q50, q75 and q95 over strengths and seeds.

    Examples
    --------
    >>> from unweave.analyses import score_distributions, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae", "factor_vae"], seeds=5)
    >>> score_distributions(table).query("metric == 'mig'")[["method", "n", "q50"]]
           method   n   q50
    3    beta_vae  30  0.01
    9  factor_vae  30  0.14
    """
    runs, metrics = disentanglement_scores(table)
    keys = ["data", "method", "variant"]
    scores = runs.melt(keys, metrics, var_name="metric").dropna(subset="value")
    groups = scores.groupby([*keys, "metric"])["value"]
    quantiles = groups.quantile(np.array([0.05, 0.25, 0.5, 0.75, 0.95])).unstack()
    quantiles.columns = pd.Index([f"q{100 * level:02.0f}" for level in quantiles.columns])
    return groups.size().rename("n").to_frame().join(quantiles).reset_index()


def scores_by_strength(table: pd.DataFrame) -> pd.DataFrame:
    """The median score of each data set, method, strength and metric (Locatello et al., Figure 8).

    Parameters
    ----------
    table
        a results table.

    Returns
    -------
    data, method, variant, strength_index (1 for a method's smallest strength), metric, value, low, high, n; low and
    high are the 95% bootstrap interval of the median over runs.

    Examples
    --------
    >>> from unweave.analyses import scores_by_strength, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5, strengths=3)
    >>> scores_by_strength(table).query("metric == 'mig'")["strength_index"].tolist()
    [1, 2, 3]
    """
    runs, metrics = disentanglement_scores(table)
    keys = ["data", "method", "variant", "strength_index"]
    return grouped_intervals(runs.melt(keys, metrics, var_name="metric"), [*keys, "metric"])


def method_scores(
    table: pd.DataFrame,
    metrics: Sequence[str],
    representation: str | None = None,
    protocol: str | None = None,
    labels: str | None = None,
) -> pd.DataFrame:
    """The scores of all runs of the main line, of which box plots are drawn (Mita et al., Figures 3 and 5).

    A metric has one representation and one protocol only: those of :func:`unweave.study.select`, by default its own
    choice, so that scores of codes computed with and without knowing u are never mixed unknowingly:
    ``labels="given"``, the paper's choice, has to be asked for.

    Parameters
    ----------
    table
        a results table.
    metrics
        in this order; those that the study lacks are left out.
    representation, protocol, labels
        as in :func:`unweave.study.select`.

    Returns
    -------
    rows of ``table``, with the column ``variant``.

    Examples
    --------
    >>> from unweave.analyses import method_scores, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5, strengths=3)
    >>> method_scores(table, ["mig", "sap"]).groupby("metric").size().to_dict()
    {'mig': 15, 'sap': 15}
    """
    rows = main_runs(table[table["metric"].isin(metrics)])
    known = set(rows["metric"].unique())
    present = [metric for metric in metrics if metric in known]
    if not present:
        raise NotInStudyError(f"the study has none of the metrics {', '.join(metrics)}")
    return pd.concat([select(rows, metric, representation, protocol, labels) for metric in present])


def strength_medians(scores: pd.DataFrame) -> pd.DataFrame:
    """The median over seeds of each strength (Mita et al., Figures 4 and 6).

    Parameters
    ----------
    scores
        rows of :func:`method_scores`.

    Returns
    -------
    metric, data, method, variant, strength, value, low, high, n, with the 95% bootstrap interval.

    Examples
    --------
    >>> from unweave.analyses import method_scores, simulate_results, strength_medians
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5, strengths=3)
    >>> strength_medians(method_scores(table, ["mig"]))["strength"].tolist()
    [1.0, 2.0, 4.0]
    """
    return grouped_intervals(scores, ["metric", "data", "method", "variant", "strength"])
