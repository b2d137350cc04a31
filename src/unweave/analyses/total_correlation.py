"""Do codes factorise? The Gaussian total correlation of mean and sampled codes (Locatello et al., section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from unweave.analyses.runs import independent_noise, with_strength_index
from unweave.analyses.statistics.intervals import grouped_intervals
from unweave.study.results import NotInStudyError, select

METRIC = "gaussian_total_correlation"


def total_correlation_by_strength(
    table: pd.DataFrame, representation: str, without: Sequence[str] = ("annealed_vae",)
) -> pd.DataFrame:
    """The median total correlation over runs of each data set, method and strength (Figures 2, 3, 15 and 16).

    Parameters
    ----------
    table
        a results table.
    representation
        "mean" or "sampled".
    without
        methods that are left out, with all their variants.

    Returns
    -------
    data, method, variant, strength_index, value, low, high, n, lower_quartile, upper_quartile, in nats; low and high
    are the 95% bootstrap interval of the median, the quartiles those of the runs.

    Examples
    --------
    >>> from unweave.analyses import simulate_results, total_correlation_by_strength
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5, strengths=3)
    >>> medians = total_correlation_by_strength(table, "sampled")
    >>> bool(medians["value"].is_monotonic_decreasing)
    True
    """
    rows = select(independent_noise(table, [METRIC]), METRIC, representation)
    rows = rows[~rows["method"].isin(list(without))]
    if rows.empty:
        raise NotInStudyError(f"the study has no methods other than {', '.join(without)}")
    rows, keys = with_strength_index(rows), ["data", "method", "variant", "strength_index"]
    medians = grouped_intervals(rows, keys)
    quartiles = rows.dropna(subset="value").groupby(keys)["value"].quantile(np.array([0.25, 0.75])).unstack()
    quartiles.columns = pd.Index(["lower_quartile", "upper_quartile"])
    return medians.merge(quartiles, on=keys)


def mean_and_sampled(table: pd.DataFrame) -> pd.DataFrame:
    """The total correlation of mean and of sampled codes of each run that has both (Figure 4).

    Parameters
    ----------
    table
        a results table.

    Returns
    -------
    run, data, method, variant, seed, mean, sampled, in nats.

    Examples
    --------
    >>> from unweave.analyses import mean_and_sampled, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5, strengths=3)
    >>> len(mean_and_sampled(table))
    15
    """
    rows = independent_noise(table, [METRIC])
    mean = select(rows, METRIC, "mean")[["run", "data", "method", "variant", "seed", "value"]]
    sampled = select(rows, METRIC, "sampled")[["run", "value"]]
    both = mean.rename(columns={"value": "mean"}).merge(
        sampled.rename(columns={"value": "sampled"}), on="run"
    )
    return both.dropna(subset=["mean", "sampled"])


def share_above(both: pd.DataFrame) -> pd.DataFrame:
    """Per data set, the share of runs whose mean codes have the larger total correlation.

    Parameters
    ----------
    both
        the table of :func:`mean_and_sampled`.

    Returns
    -------
    data, value, low, high, n. The interval is the bootstrap's over seeds, each seed with its share; n counts seeds.

    Examples
    --------
    >>> from unweave.analyses import mean_and_sampled, share_above, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5)
    >>> share_above(mean_and_sampled(table))["value"].round(2).tolist()
    [0.87]
    """
    above = both.assign(value=(both["mean"] > both["sampled"]).astype(float))
    shares = above.groupby(["data", "seed"])["value"].mean().reset_index()
    return grouped_intervals(shares, ["data"], statistic="mean")
