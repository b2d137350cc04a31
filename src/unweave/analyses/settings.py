"""What several analyses of Locatello et al. (2019) ask of a table: which metrics, which runs, which setting."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unweave.analyses.variants import by_variant
from unweave.study.results import NotInStudyError

# In the order of the paper's figures.
DISENTANGLEMENT_METRICS = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "sap")
_FURTHER = ["correlation", "latent_size", "steps", "settings"]


def available(table: pd.DataFrame, metrics: Sequence[str], least: int = 1) -> list[str]:
    """Those of ``metrics`` that the study has; an error if they are fewer than ``least``."""
    known = set(table["metric"].unique())
    found = [metric for metric in metrics if metric in known]
    if len(found) < least:
        raise NotInStudyError(
            f"the study has {', '.join(found) or 'none'} of the metrics {', '.join(metrics)}; "
            f"at least {least} needed"
        )
    return found


def independent_noise(table: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """The rows of ``metrics`` from runs whose posterior has independent noise, as all of the paper's have.

    Each variant of a method, as a label fraction, is a method of its own (``by_variant``).
    """
    rows = table[(table["correlation"] == 0) & table["metric"].isin(list(metrics))]
    if rows.empty:
        raise NotInStudyError("the study has no such metrics of runs with independent posterior noise")
    return by_variant(rows)


def with_strength_index(rows: pd.DataFrame) -> pd.DataFrame:
    """Adds ``strength_index``: 1 for the smallest strength of a method in the study, 2 for the next, and so on.

    The methods' strengths have different scales, so that only their order can share an axis. A method without a
    strength has the index 1.
    """
    index = rows.groupby("method")["strength"].rank("dense").fillna(1).astype(int)
    return rows.assign(strength_index=index)


def with_setting(runs: pd.DataFrame) -> pd.DataFrame:
    """Adds ``setting``: one number per hyperparameter setting, the same on every data set and for every seed.

    A setting is a method and a strength, and whatever else the study varies for the same data set, method, strength
    and seed. What differs between data sets only (as a likelihood may) does not tell settings apart.
    """
    varied = runs.groupby(["data", "method", "strength", "seed"], dropna=False)[_FURTHER].nunique().max() > 1
    keys = ["method", "strength", *(name for name in _FURTHER if varied[name])]
    return runs.assign(setting=runs.groupby(keys, dropna=False).ngroup())
