"""What did each method score? The median of every metric, per data set."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unweave.analyses.statistics.intervals import Level, grouped_intervals
from unweave.analyses.variants import variant_order, with_variant
from unweave.study.results import NotInStudyError, select

# What a fair comparison of methods holds fixed.
CONDITIONS = ["data", "correlation", "latent_size", "steps", "protocol"]


def median_scores(
    table: pd.DataFrame,
    metrics: Sequence[str] | None = None,
    level: Level = 0.95,
    u_given: bool = False,
) -> pd.DataFrame:
    """The median over strengths and seeds of the scores of each method and variant, with its bootstrap interval.

    Parameters
    ----------
    table
        a results table.
    metrics
        which, in this order. Without it all metrics' own values, in the order of ``table``; details such as
        ``dci.completeness`` have a dot in their name and are left out.
    level
        of the interval from ``low`` to ``high``: NaN for a single run.
    u_given
        only the scores of encoders that were given the true labels u, which their codes are scored against. Without
        it those that compare with each other, as :func:`unweave.study.select` takes them: of such an encoder with u
        predicted, else unknown.

    Returns
    -------
    one row per condition, method, variant and metric, data sets in the order of ``table``: the columns ``CONDITIONS``,
    method, variant (of :func:`with_variant`), metric, representation, labels, value, low, high, n. A metric that has
    the mean representation is that of the mean representation only. What a study has only with u given is not in the
    table of the others.

    Examples
    --------
    >>> from unweave.analyses import median_scores, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae", "factor_vae"], seeds=5)
    >>> median_scores(table, ["mig", "sap"])[["method", "metric", "value", "n"]]
           method metric  value   n
    0    beta_vae    mig   0.01  30
    1    beta_vae    sap   0.04  30
    2  factor_vae    mig   0.14  30
    3  factor_vae    sap   0.06  30
    """
    known = table["metric"].unique().tolist()
    wanted = [name for name in known if "." not in name] if metrics is None else list(metrics)
    if missing := sorted(set(wanted) - set(known)):
        raise NotInStudyError(f"the study has no metric {missing[0]!r}")
    rows = with_variant(table)
    rows = rows[rows["metric"].isin(wanted) & ((rows["labels"] == "given") == u_given)]
    groups = rows.groupby(["metric", "protocol"], sort=False)
    chosen = [select(group, str(name), labels="given" if u_given else None) for (name, _), group in groups]
    rows = pd.concat(chosen) if chosen else rows
    by = [*CONDITIONS, "method", "variant", "metric"]
    return _sorted(grouped_intervals(rows, [*by, "representation", "labels"], level=level), by, table, wanted)


def seed_medians(table: pd.DataFrame, level: Level = 0.95) -> pd.DataFrame:
    """The median over seeds of every score of the study, with its bootstrap interval.

    Parameters
    ----------
    table
        a results table.
    level
        of the interval from ``low`` to ``high``: NaN for a single run.

    Returns
    -------
    one row per data set, method, strength, metric, representation and labels, in the order of :func:`median_scores`:
    these, value, low, high and n; between them ``variant``, ``correlation``, ``latent_size``, ``steps``, ``protocol``
    and ``part`` (of the codes) if the study has several. Scores with u given, of codes computed from the true labels,
    have "given" in ``labels``.

    Examples
    --------
    >>> from unweave.analyses import seed_medians, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5, strengths=2)
    >>> seed_medians(table).query("metric == 'mig'")[["strength", "representation", "value", "n"]]
        strength representation  value  n
    4        1.0           mean   0.07  5
    5        1.0        sampled   0.08  5
    48       2.0           mean   0.07  5
    49       2.0        sampled   0.18  5
    """
    rows = with_variant(table)
    setup = [name for name in ("variant", *CONDITIONS[1:]) if rows[name].nunique() > 1]
    by = ["data", "method", "strength", *setup, "metric", *(["part"] if rows["part"].nunique() > 1 else [])]
    medians = grouped_intervals(rows, [*by, "representation", "labels"], level=level)
    return _sorted(medians, by, table, table["metric"].unique().tolist())


def _sorted(medians: pd.DataFrame, by: list[str], table: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """Rows by the columns ``by``: data sets and metrics in their order, variants by their numbers."""
    orders = {"data": table["data"].unique().tolist(), "metric": metrics}
    if "variant" in medians:
        orders["variant"] = sorted(medians["variant"].unique(), key=variant_order)
    return medians.sort_values(
        by,
        key=lambda column: column.map(orders[column.name].index) if column.name in orders else column,
        kind="stable",
        ignore_index=True,
    )
