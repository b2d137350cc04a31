"""What a study found, in one table: the median score of each method, per data set and metric."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unweave.analyses.intervals import grouped
from unweave.analyses.variants import in_order, variants
from unweave.study.results import NotInStudyError, select

# What a fair comparison of methods holds fixed.
CONDITIONS = ["data", "correlation", "latent_size", "steps", "protocol"]


def median_scores(
    table: pd.DataFrame,
    metrics: Sequence[str] | None = None,
    level: float = 0.95,
    u_given: bool = False,
) -> pd.DataFrame:
    """The median over strengths and seeds of the scores of each method and variant, with its bootstrap interval.

    Parameters
    ----------
    metrics
        which, in this order. Without it all metrics' own values, in the order of ``table``; details such as
        ``dci.completeness`` have a dot in their name and are left out.
    level
        of the interval from ``low`` to ``high``: NaN for a single run.
    u_given
        only the scores of encoders that were given the true labels u, which their codes are scored against. Without
        it those that compare with each other, as ``select`` takes them: of such an encoder with u predicted, else
        unknown.

    Returns
    -------
    one row per condition, method, variant and metric, data sets in the order of ``table``: the columns ``CONDITIONS``,
    method, variant (the settings that the study varies besides, of ``variants``), metric, representation, labels,
    value, low, high, n. A metric that has the mean representation is that of the mean
    representation only. What a study has only with u given is not in the table of the others.
    """
    known = table["metric"].unique().tolist()
    wanted = [name for name in known if "." not in name] if metrics is None else list(metrics)
    if missing := sorted(set(wanted) - set(known)):
        raise NotInStudyError(f"the study has no metric {missing[0]!r}")
    rows = table[table["metric"].isin(wanted) & ((table["labels"] == "given") == u_given)]
    groups = rows.groupby(["metric", "protocol"], sort=False)
    chosen = [select(group, str(name), labels="given" if u_given else None) for (name, _), group in groups]
    rows = pd.concat(chosen) if chosen else rows
    rows = _with_variant(rows, table)
    found = grouped(
        rows, [*CONDITIONS, "method", "variant", "metric", "representation", "labels"], level=level
    )
    return _sorted(found, [*CONDITIONS, "method", "variant", "metric"], table, wanted)


def seed_medians(table: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """The median over seeds of every score of the study, with its bootstrap interval.

    Returns
    -------
    one row per data set, method, strength, metric, representation and labels, in the order of ``median_scores``:
    these, value, low, high and n; between them ``variant``, ``correlation``, ``latent_size``, ``steps``, ``protocol``
    if the study has several. Scores with u given, of codes made from the true labels, have "given" in ``labels``.
    """
    rows = _with_variant(table, table)
    setup = [name for name in ("variant", *CONDITIONS[1:]) if rows[name].nunique() > 1]
    by = ["data", "method", "strength", *setup, "metric"]
    return _sorted(
        grouped(rows, [*by, "representation", "labels"], level=level),
        by,
        table,
        table["metric"].unique().tolist(),
    )


def _with_variant(rows: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    told = variants(table)
    varied = bool((told != "").any())
    return rows.assign(variant=rows["run"].map(told) if varied else "")


def _sorted(found: pd.DataFrame, by: list[str], table: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """Rows by the columns ``by``: data sets and metrics in their order, variants by their numbers."""
    places = {"data": table["data"].unique().tolist(), "metric": metrics}
    if "variant" in found:
        places["variant"] = sorted(found["variant"].unique(), key=in_order)
    return found.sort_values(
        by,
        key=lambda column: column.map(places[column.name].index) if column.name in places else column,
        kind="stable",
        ignore_index=True,
    )
