"""How much of the spread of scores do the method and its strength explain? (Locatello et al., section 5.4)"""

from __future__ import annotations

import numpy as np
import pandas as pd

from unweave.analyses.runs import disentanglement_scores
from unweave.arrays import ArrayLike
from unweave.study.results import NotInStudyError


def explained_variance(table: pd.DataFrame) -> pd.DataFrame:
    """The share of the variance of a score that the method explains, and the method with its strength.

    The paper gives the plain share, 1 - (sum of squares within groups) / (total sum of squares), which grows with the
    number of groups: of pure noise, 18 groups of 2 runs explain about a half. Here it is the adjusted one,

        1 - (SS_within / (n - groups)) / (SS_total / (n - 1)),

    whose expectation is 0 if the groups do not matter; it may be below 0.

    Parameters
    ----------
    table
        a results table.

    Returns
    -------
    one row per data set and metric: ``method`` and ``method_and_strength``, the adjusted shares; ``plain_method`` and
    ``plain_method_and_strength``, the paper's; ``groups``, of methods with their strengths, and ``n`` runs. NaN where
    each group has one run, or all scores are equal.

    Examples
    --------
    >>> from unweave.analyses import explained_variance, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae", "factor_vae"], seeds=10)
    >>> explained_variance(table).query("metric == 'mig'")[["groups", "n"]].to_numpy().tolist()
    [[12, 120]]
    """
    runs, metrics = disentanglement_scores(table)
    rows = []
    for data, of_data in runs.groupby("data", sort=False):
        methods = of_data.groupby(["method", "variant"], dropna=False).ngroup()
        settings = of_data.groupby(["method", "variant", "strength_index"], dropna=False).ngroup()
        for metric in metrics:
            known = of_data[metric].notna()
            values = of_data.loc[known, metric].to_numpy(np.float64)
            if len(values) < 3:
                continue
            by_method, by_setting = (
                variance_shares(values, g[known].to_numpy()) for g in (methods, settings)
            )
            rows.append(
                {
                    "data": data,
                    "metric": metric,
                    "method": by_method[1],
                    "method_and_strength": by_setting[1],
                    "plain_method": by_method[0],
                    "plain_method_and_strength": by_setting[0],
                    "groups": int(settings[known].nunique()),
                    "n": len(values),
                }
            )
    if not rows:
        raise NotInStudyError("the variance of scores needs three runs on one data set")
    return pd.DataFrame(rows)


def variance_shares(values: ArrayLike, groups: ArrayLike) -> tuple[float, float]:
    """The share of the variance of values (n,) that groups (n,) explain: as it is, and adjusted.

    Examples
    --------
    >>> variance_shares([1.0, 2.0, 5.0, 6.0], [0, 0, 1, 1])
    (0.9411764705882353, 0.9117647058823529)
    """
    numbers, labels = np.asarray(values, np.float64), np.asarray(groups)
    total = float(((numbers - numbers.mean()) ** 2).sum())
    within = 0.0
    different = np.unique(labels)
    for label in different:
        part = numbers[labels == label]
        within += float(((part - part.mean()) ** 2).sum())
    if total == 0:
        return float("nan"), float("nan")
    freedom = len(numbers) - len(different)
    adjusted = 1 - (within / freedom) / (total / (len(numbers) - 1)) if freedom else float("nan")
    return 1 - within / total, adjusted
