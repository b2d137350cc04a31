"""Choices that several analyses share: which runs are compared, which strength stands for a method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from unweave.analyses.variants import by_variant

_SETUP = ["correlation", "latent_size", "steps"]


def main_runs(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a study's main line, in which only data set, method, strength and seed differ.

    Per data set, the runs whose posterior noise is least correlated; of these, those of the most frequent number
    of latents (of equally frequent ones the smaller), and then of steps (the larger). Each variant of a method, as a
    label fraction, is a method of its own (``by_variant``). Without it a median over seeds would also be one over
    what a study varies besides: the correlation of Yang et al., say.
    """
    table = by_variant(table)
    runs = table.drop_duplicates("run")[["run", "data", *_SETUP]]
    kept = []
    for _, group in runs.groupby("data", sort=False):
        size = group["correlation"].abs()
        group = group[size == size.min()]
        group = group[group["latent_size"] == group["latent_size"].mode().iloc[0]]
        group = group[group["steps"] == group["steps"].mode().iloc[-1]]
        kept.append(group["run"])
    return table[table["run"].isin(pd.concat(kept))] if kept else table


def best_strengths(rows: pd.DataFrame) -> pd.DataFrame:
    """Per data set and method the strength with the best median: columns data, method, strength, value.

    ``rows`` are those of one metric for which more is better. Of equal medians the smaller strength is taken. The
    median of the chosen strength is optimistic: it is the largest of several noisy numbers, the more so the more
    strengths were tried and the fewer seeds there are.
    """
    medians = rows.groupby(["data", "method", "strength"], dropna=False)["value"].median().reset_index()
    medians = medians.dropna(subset="value")
    best = medians.groupby(["data", "method"], sort=False)["value"].idxmax()
    return medians.loc[best].reset_index(drop=True)


def spelled(value: float, low: float, high: float, digits: int = 3) -> str:
    """A value with its interval, as tables show it: "0.412 [0.380, 0.441]"; empty for NaN."""
    if np.isnan(value):
        return ""
    if np.isnan(low) or np.isnan(high):
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def spelled_column(found: pd.DataFrame, value: str, low: str = "low", high: str = "high") -> pd.Series[str]:
    """``spelled`` for each row of a table of estimates."""
    cells = [spelled(*row) for row in found[[value, low, high]].to_numpy(dtype=np.float64)]
    return pd.Series(cells, index=found.index, dtype="str")


def arranged(found: pd.DataFrame, data: Sequence[str], key: Callable[[str], Any]) -> pd.DataFrame:
    """Rows in the order of the data sets ``data``, then of the methods' ``key``, then from weak to strong."""
    keys = pd.DataFrame(
        {
            "data": found["data"].map({name: place for place, name in enumerate(data)}),
            "method": found["method"].map({method: key(method) for method in found["method"].unique()}),
            "strength": found.get("strength", 0.0),
        }
    )
    return found.loc[keys.sort_values(["data", "method", "strength"], kind="stable").index].reset_index(
        drop=True
    )
