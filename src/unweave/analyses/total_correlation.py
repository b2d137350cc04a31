"""Do codes factorise? The Gaussian total correlation of mean and sampled codes (Locatello et al., section 5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from unweave.analyses.intervals import grouped
from unweave.analyses.settings import independent_noise, with_strength_index
from unweave.study.results import NotInStudyError, select

METRIC = "gaussian_total_correlation"


def against_strength(
    table: pd.DataFrame, representation: str, without: Sequence[str] = ("annealed_vae",)
) -> pd.DataFrame:
    """The median over runs of each data set, method and strength, in nats (Figures 2, 3, 15 and 16).

    Columns: data, method, strength_index, value, low, high, n, lower_quartile, upper_quartile; ``low`` and ``high`` are
    the 95% bootstrap interval of the median, the quartiles those of the runs. The methods ``without`` are left out.
    """
    rows = select(independent_noise(table, [METRIC]), METRIC, representation)
    rows = rows[~rows["method"].str.partition(", ")[0].isin(list(without))]  # nor any variant of these
    if rows.empty:
        raise NotInStudyError(f"the study has no methods other than {', '.join(without)}")
    rows, keys = with_strength_index(rows), ["data", "method", "strength_index"]
    medians = grouped(rows, keys)
    quartiles = rows.dropna(subset="value").groupby(keys)["value"].quantile(np.array([0.25, 0.75])).unstack()
    quartiles.columns = pd.Index(["lower_quartile", "upper_quartile"])
    return medians.merge(quartiles, on=keys)


def mean_and_sampled(table: pd.DataFrame) -> pd.DataFrame:
    """Per run that has both: run, data, method, seed, and its total correlation ``mean`` and ``sampled`` (Figure 4)."""
    rows = independent_noise(table, [METRIC])
    mean = select(rows, METRIC, "mean")[["run", "data", "method", "seed", "value"]]
    sampled = select(rows, METRIC, "sampled")[["run", "value"]]
    both = mean.rename(columns={"value": "mean"}).merge(
        sampled.rename(columns={"value": "sampled"}), on="run"
    )
    return both.dropna(subset=["mean", "sampled"])


def share_above(both: pd.DataFrame) -> pd.DataFrame:
    """Per data set, the share of runs whose mean codes have the larger total correlation: data, value, low, high, n.

    Takes the table of ``mean_and_sampled``. The interval is the bootstrap's over seeds, each seed with its share;
    n counts seeds.
    """
    above = both.assign(value=(both["mean"] > both["sampled"]).astype(float))
    return grouped(above.groupby(["data", "seed"])["value"].mean().reset_index(), ["data"], statistic="mean")
