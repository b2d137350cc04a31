"""Do disentangled codes help a task that comes after? (Locatello et al., section 5.6; Kumar et al., Table 2)"""

from __future__ import annotations

import pandas as pd

from unweave.analyses.agreement import correlations_by_data
from unweave.analyses.runs import available_metrics, disentanglement_scores, independent_noise, main_runs
from unweave.analyses.statistics.intervals import grouped_intervals
from unweave.study.results import NotInStudyError, details_of, select, wide

# The names under which studies keep the scores of each learner, and their labels in figures.
LEARNERS = {"downstream_logistic": "LR", "downstream_gbt": "GBT"}
_PARTS = ("10", "100", "1000", "10000", "efficiency")
_ATTRIBUTES = "attribute_classification"


def downstream_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation over runs of each metric with each downstream score (Locatello et al., Figure 12).

    Downstream scores are the mean accuracy of logistic regression and of gradient boosted trees from 10, 100, 1000
    and 10,000 labels, and the statistical efficiency: accuracy from 100 over that from 10,000.

    Parameters
    ----------
    table
        a results table.

    Returns
    -------
    data, row (metric), column (downstream score), value, low, high, n, with the bootstrap interval over seeds.

    Examples
    --------
    >>> from unweave.analyses import downstream_correlations, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5)
    >>> len(downstream_correlations(table))  # 6 metrics, 2 learners, 5 scores of each
    60
    """
    tasks = available_metrics(table, [f"{learner}.{part}" for learner in LEARNERS for part in _PARTS])
    runs, metrics = _with_tasks(table, tasks)
    return correlations_by_data(runs, metrics, tasks)


def statistical_efficiency(table: pd.DataFrame, learner: str) -> tuple[pd.DataFrame, list[str]]:
    """The statistical efficiency of a learner on each run's codes (Locatello et al., Figures 13 and 14).

    Parameters
    ----------
    table
        a results table.
    learner
        "downstream_logistic" or "downstream_gbt".

    Returns
    -------
    one row per run with its disentanglement metrics and ``efficiency``, and which metrics these are.

    Examples
    --------
    >>> from unweave.analyses import simulate_results, statistical_efficiency
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5)
    >>> runs, metrics = statistical_efficiency(table, "downstream_gbt")
    >>> runs["efficiency"].between(0, 1).all()
    np.True_
    """
    name = f"{learner}.efficiency"
    runs, metrics = _with_tasks(table, available_metrics(table, [name]))
    runs = runs.rename(columns={name: "efficiency"}).dropna(subset="efficiency")
    if runs.empty:
        raise NotInStudyError(f"{learner} was not learnt from both 100 and 10,000 labels")
    return runs, metrics


def attribute_accuracy(table: pd.DataFrame) -> pd.DataFrame:
    """The median accuracy over seeds of attribute classification (Kumar et al., Table 2).

    Parameters
    ----------
    table
        a results table with the metric "attribute_classification"; its main runs count.

    Returns
    -------
    data, method, variant, strength_name, strength, attribute, value, low, high, n, with the 95% bootstrap interval.
    Attributes whose medians differ most come first (the paper's table shows only these).

    Examples
    --------
    >>> from unweave.analyses import attribute_accuracy, simulate_results
    >>> table = simulate_results(data=["celeba"], methods=["beta_vae"], seeds=5, strengths=1)
    >>> rows = table.query("metric == 'sap'")
    >>> attribute_accuracy(rows.assign(metric="attribute_classification.Smiling"))[["attribute", "n"]]
      attribute  n
    0   Smiling  5
    """
    rows = main_runs(details_of(table, _ATTRIBUTES))
    if rows.empty:
        raise NotInStudyError("the study has no attribute classification")
    rows = pd.concat([select(rows, name) for name in rows["metric"].unique()])
    rows = rows.rename(columns={"detail": "attribute"})
    by = ["data", "method", "variant", "strength_name", "strength"]
    medians = grouped_intervals(rows, [*by, "attribute"])
    values = medians.groupby("attribute")["value"]
    spread = (values.max() - values.min()).sort_values(ascending=False, kind="stable")
    order = {name: position for position, name in enumerate(spread.index)}
    return medians.sort_values(
        "attribute", key=lambda names: names.map(order), kind="stable", ignore_index=True
    )


def _with_tasks(table: pd.DataFrame, tasks: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """One row per run with its disentanglement metrics and the downstream scores, and which metrics."""
    runs, metrics = disentanglement_scores(table)
    values = wide(independent_noise(table, tasks), tasks).set_index("run")[tasks]
    return runs.set_index("run").join(values).reset_index(), metrics
