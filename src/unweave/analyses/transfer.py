"""Does a good setting on one data set do well on another? (Locatello et al., section 5.5)"""

from __future__ import annotations

import pandas as pd

from unweave.analyses.agreement import scores
from unweave.analyses.intervals import grouped
from unweave.analyses.rank_correlation import rank_correlations
from unweave.analyses.settings import with_setting
from unweave.study.results import NotInStudyError


def setting_medians(table: pd.DataFrame) -> pd.DataFrame:
    """The median over seeds of each metric, setting and data set, with its 95% bootstrap interval.

    Columns: metric, data, method, setting, value, low, high, n. Settings have the same number on all data sets.
    """
    runs, metrics = scores(table)
    if runs["data"].nunique() < 2:
        raise NotInStudyError("the study has one data set: nothing can be transferred to another")
    keys = ["data", "method", "setting"]
    found = grouped(with_setting(runs).melt(keys, metrics, var_name="metric"), ["metric", *keys])
    order = {name: place for place, name in enumerate([*metrics, *runs["data"].unique()])}
    return found.sort_values(["metric", "data"], key=lambda names: names.map(order), kind="stable")


def between_data(table: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation over settings of the median scores on every two data sets, per metric (Figure 10).

    Columns: metric, row, column (data sets), value, low, high, n. What is compared are hyperparameter settings, so
    n counts those that both data sets have, and the bootstrap interval is that over settings. Resampling seeds
    instead would add noise to medians that are noisy already, and so draw every correlation towards 0.
    """
    medians = setting_medians(table)
    names = list(medians["data"].unique())
    parts = []
    for metric, part in medians.groupby("metric", sort=False):
        by_data = part.pivot(index="setting", columns="data", values="value").reindex(columns=names)
        found = rank_correlations(by_data.reset_index(), names, names, cluster="setting")
        parts.append(found.assign(metric=metric))
    found = pd.concat(parts, ignore_index=True)[["metric", "row", "column", "value", "low", "high", "n"]]
    if found.loc[found["row"] != found["column"], "value"].isna().all():
        raise NotInStudyError("the study has fewer than three settings that two data sets share")
    return found
