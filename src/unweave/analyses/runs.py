"""Which runs of a study are compared with each other, and which of them represents a method."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from unweave.analyses.variants import with_variant
from unweave.study.results import NotInStudyError, select, wide

# In the order of the figures of Locatello et al.
DISENTANGLEMENT_METRICS = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "sap")
_SETUP = ["correlation", "latent_size", "steps"]


def main_runs(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a study's main line, in which only data set, method, variant, strength and seed differ.

    Per data set, the runs whose posterior noise is least correlated; of these, those of the most frequent number of
    latents (of equally frequent ones the smaller), and then of steps (the larger). Without it a median over seeds
    would also be one over what a study varies besides: the correlation of Yang et al., say.

    Parameters
    ----------
    table
        a results table, or some of its rows.

    Returns
    -------
    these rows, with the column ``variant`` of :func:`with_variant`.

    Examples
    --------
    >>> from unweave.analyses import main_runs, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=2, correlations=[0.0, 0.9])
    >>> main_runs(table)["correlation"].unique().tolist()
    [0.0]
    """
    table = with_variant(table)
    runs = table.drop_duplicates("run")[["run", "data", *_SETUP]]
    kept = []
    for _, group in runs.groupby("data", sort=False):
        size = group["correlation"].abs()
        group = group[size == size.min()]
        latents = group["latent_size"]
        group = group[latents.isna() | (latents == latents.mode().min())]  # a method may have no such setting
        group = group[group["steps"] == group["steps"].mode().iloc[-1]]
        kept.append(group["run"])
    return table[table["run"].isin(pd.concat(kept))] if kept else table


def independent_noise(table: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """The rows of ``metrics`` from runs whose posterior has independent noise, as all of Locatello et al. have.

    The column ``variant`` of :func:`with_variant` is added.
    """
    rows = table[(table["correlation"] == 0) & table["metric"].isin(list(metrics))]
    if rows.empty:
        raise NotInStudyError("the study has no such metrics of runs with independent posterior noise")
    return with_variant(rows)


def available_metrics(table: pd.DataFrame, metrics: Sequence[str], at_least: int = 1) -> list[str]:
    """Those of ``metrics`` that the study has; an error if they are fewer than ``at_least``."""
    known = set(table["metric"].unique())
    present = [metric for metric in metrics if metric in known]
    if len(present) < at_least:
        raise NotInStudyError(
            f"the study has {', '.join(present) or 'none'} of the metrics {', '.join(metrics)}; "
            f"at least {at_least} needed"
        )
    return present


def disentanglement_scores(table: pd.DataFrame, at_least: int = 1) -> tuple[pd.DataFrame, list[str]]:
    """The disentanglement metrics of all runs with independent noise.

    Parameters
    ----------
    table
        a results table.
    at_least
        the number of metrics without which the question makes no sense.

    Returns
    -------
    one row per run with its ``variant``, ``strength_index`` and a column per metric, and the metrics that the study
    has, in the order of the figures of Locatello et al.

    Examples
    --------
    >>> from unweave.analyses import disentanglement_scores, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=2, strengths=2)
    >>> runs, metrics = disentanglement_scores(table)
    >>> metrics
    ['beta_vae', 'factor_vae', 'mig', 'dci', 'modularity', 'sap']
    >>> runs["strength_index"].tolist()
    [1, 1, 2, 2]
    """
    metrics = available_metrics(table, DISENTANGLEMENT_METRICS, at_least)
    return with_strength_index(with_variant(wide(independent_noise(table, metrics), metrics))), metrics


def with_strength_index(rows: pd.DataFrame) -> pd.DataFrame:
    """Adds ``strength_index``: 1 for the smallest strength of a method in the study, 2 for the next, and so on.

    The methods' strengths have different scales, so that only their order can share an axis. A method without a
    strength has the index 1.
    """
    index = rows.groupby(["method", "variant"])["strength"].rank("dense").fillna(1).astype(int)
    return rows.assign(strength_index=index)


def with_setting(runs: pd.DataFrame) -> pd.DataFrame:
    """Adds ``setting``: one number per hyperparameter setting, the same on every data set and for every seed.

    A setting is a method, a variant and a strength, and whatever else the study varies for the same data set and seed.
    What differs between data sets only (as a likelihood may) makes no setting.
    """
    keys, further = ["method", "variant", "strength"], [*_SETUP, "settings"]
    varied = runs.groupby(["data", *keys, "seed"], dropna=False)[further].nunique().max() > 1
    keys += [name for name in further if varied[name]]
    return runs.assign(setting=runs.groupby(keys, dropna=False).ngroup())


def best_strengths(rows: pd.DataFrame) -> pd.DataFrame:
    """Per data set, method and variant the strength with the best median.

    The median of the chosen strength is optimistic: it is the largest of several noisy numbers, the more so the more
    strengths were tried and the fewer seeds there are.

    Parameters
    ----------
    rows
        of one metric for which more is better.

    Returns
    -------
    data, method, variant, strength, value. Of equal medians the smaller strength is taken.

    Examples
    --------
    >>> from unweave.analyses import best_strengths, main_runs, simulate_results
    >>> table = main_runs(simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5))
    >>> best_strengths(table.query("metric == 'mig'"))[["method", "strength"]]
         method  strength
    0  beta_vae       8.0
    """
    keys = ["data", "method", "variant"]
    medians = rows.groupby([*keys, "strength"], dropna=False)["value"].median().reset_index()
    medians = medians.dropna(subset="value")
    best = medians.groupby(keys, sort=False)["value"].idxmax()
    return medians.loc[best].reset_index(drop=True)


def best_runs(table: pd.DataFrame, metric: str = "sap") -> pd.DataFrame:
    """Per data set, method and variant the main run with the largest score: the one whose traversals a paper shows.

    Examples
    --------
    >>> from unweave.analyses import best_runs, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae", "factor_vae"], seeds=3)
    >>> best_runs(table, "mig")["method"].tolist()
    ['beta_vae', 'factor_vae']
    """
    rows = select(main_runs(table[table["metric"] == metric]), metric).dropna(subset="value")
    best = rows.groupby(["data", "method", "variant"], sort=False)["value"].idxmax()
    return rows.loc[best].reset_index(drop=True)
