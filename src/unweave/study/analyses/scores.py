"""What a study found, in one table: the median score of each method, per data set and metric."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unweave.study.analyses.intervals import grouped
from unweave.study.results import NotInStudyError, label_modes, select

# What a fair comparison of methods holds fixed; medians are over all else: strengths, seeds, further settings.
CONDITIONS = ["data", "correlation", "latent_size", "steps", "protocol"]


def median_scores(
    table: pd.DataFrame,
    metrics: Sequence[str] | None = None,
    level: float = 0.95,
    u_given: bool = False,
) -> pd.DataFrame:
    """The median over strengths and seeds of each method's scores, with its bootstrap interval.

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
    one row per condition, method and metric, data sets in the order of ``table``: the columns ``CONDITIONS``, method,
    metric, representation, value, low, high, n. A metric that has the mean representation is that of the mean
    representation only. What a study has only with u given is not in the table of the others.
    """
    known = table["metric"].unique().tolist()
    wanted = [name for name in known if "." not in name] if metrics is None else list(metrics)
    if missing := sorted(set(wanted) - set(known)):
        raise NotInStudyError(f"the study has no metric {missing[0]!r}")
    rows = table[table["metric"].isin(wanted) & ((label_modes(table) == "given") == u_given)]
    groups = rows.groupby(["metric", "protocol"], sort=False)
    chosen = [select(group, str(name), labels="given" if u_given else None) for (name, _), group in groups]
    rows = pd.concat(chosen) if chosen else rows
    found = grouped(rows, [*CONDITIONS, "method", "metric", "representation"], level=level)
    places = {"data": table["data"].unique().tolist(), "metric": wanted}
    return found.sort_values(
        [*CONDITIONS, "method", "metric"],
        key=lambda column: column.map(places[column.name].index) if column.name in places else column,
        kind="stable",
        ignore_index=True,
    )
