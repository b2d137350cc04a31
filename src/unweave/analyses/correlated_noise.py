"""What does correlated noise of the posterior change? (Yang et al., "Towards better understanding of disentangled
representations via mutual information", 2020)
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from unweave.analyses.runs import main_runs
from unweave.analyses.statistics.intervals import FEWEST, Level, bootstrap_samples
from unweave.analyses.statistics.significance import holm, mann_whitney
from unweave.analyses.variants import with_variant
from unweave.parameters import Count, Seed
from unweave.study.results import NotInStudyError, select, wide

# The paper's estimator by sampling (appendix D, with factorised densities) if the study has it under this name; else
# the exact one, or that of the Gaussian with the codes' covariance.
EXACT = "monte_carlo_total_correlation"
TOTAL_CORRELATIONS = ("factorised_total_correlation", EXACT, "gaussian_total_correlation")


def scores_by_correlation(
    table: pd.DataFrame, metric: str = "mig", latent_size: int | None = None
) -> pd.DataFrame:
    """The scores of methods that were trained both with and without correlated noise (Figures 1 and 5).

    Parameters
    ----------
    table
        a results table.
    metric
        which score.
    latent_size
        None is that of the main line (:func:`main_runs`), which the ranking is of; the number of steps is its, too.

    Returns
    -------
    rows of ``table``, with the column ``variant``; only of data sets and methods with at least two values of
    ``correlation``.

    Examples
    --------
    >>> from unweave.analyses import scores_by_correlation, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5, correlations=[0.0, 0.9])
    >>> scores_by_correlation(table)["correlation"].value_counts().to_dict()
    {0.0: 30, 0.9: 30}
    """
    rows = with_variant(select(table, metric).dropna(subset="value"))
    if latent_size is not None:
        rows = rows[rows["latent_size"] == latent_size]
    setup = ["data", "latent_size", "steps"]
    rows = rows.merge(main_runs(rows)[setup].drop_duplicates())
    several = rows.groupby(["data", "method", "variant"])["correlation"].transform("nunique") > 1
    if not several.any():
        wanted = "" if latent_size is None else f" and {latent_size} latents"
        raise NotInStudyError(f"the study has no method with two values of correlation{wanted}")
    return rows[several]


def correlation_decline(
    table: pd.DataFrame, metric: str = "mig", level: Level = 0.95, draws: Count = 1000, seed: Seed = 0
) -> pd.DataFrame:
    """How much the median score changes when the posterior's noise is correlated.

    Runs of all strengths of a method are taken together, so that both sides need the same strengths.

    Parameters
    ----------
    table
        a results table.
    metric
        which score.
    level, draws, seed
        the probability that the interval covers; its bootstrap samples; of the random numbers.

    Returns
    -------
    one row per data set, number of latents, method, variant and correlation s > 0: ``independent``, ``correlated``: the
    medians over runs at s = 0 (or the smallest s) and at s; their ``difference``, correlated - independent, with its
    bootstrap interval ``low`` to ``high``, each side drawn by itself (NaN for fewer than five runs); ``p`` of a
    two-sided Mann-Whitney test,
    ``p_holm`` with Holm's correction for all rows; ``n_independent``, ``n_correlated``.

    Examples
    --------
    >>> from unweave.analyses import correlation_decline, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5, correlations=[0.0, 0.9])
    >>> row = correlation_decline(table).iloc[0]
    >>> bool(row["high"] < 0 and row["p"] < 0.01)
    True
    """
    rng = np.random.default_rng(seed)
    rows = with_variant(select(table, metric).dropna(subset="value"))
    result, pairs = [], []
    for key, group in rows.groupby(["data", "latent_size", "method", "variant"], sort=False):
        smallest, *others = sorted(group["correlation"].unique().tolist())
        sides = {s: group.loc[group["correlation"] == s, "value"].to_numpy() for s in (smallest, *others)}
        for s in others:
            one, other = sides[smallest], sides[s]
            low = high = np.nan
            if min(len(one), len(other)) >= FEWEST:
                medians = [bootstrap_samples(side[None], "median", draws, rng)[0] for side in (one, other)]
                low, high = np.quantile(medians[1] - medians[0], [(1 - level) / 2, (1 + level) / 2])
            independent, correlated = float(np.median(one)), float(np.median(other))
            result.append(
                {
                    **dict(zip(("data", "latent_size", "method", "variant"), key, strict=True)),
                    "correlation": s,
                    "independent": independent,
                    "correlated": correlated,
                    "difference": correlated - independent,
                    "low": low,
                    "high": high,
                    "n_independent": len(one),
                    "n_correlated": len(other),
                }
            )
            pairs.append((one, other))
    if not result:
        raise NotInStudyError("the study has no method with two values of correlation")
    p = mann_whitney(pairs)
    return pd.DataFrame(result).assign(p=p, p_holm=holm(p))


def correlation_costs(table: pd.DataFrame) -> pd.DataFrame:
    """Per run the reconstruction error, the KL term and the total correlation, in nats (Figure 2).

    The KL term is that of the paper's objective, KL(N(mean, diag(variance)) || N(0, I)): without the constant
    1/2 log 1/det(Sigma) that correlated noise adds to the true KL (appendix B), which would hide how alike the terms
    are. The total correlation is on the same footing: by appendix D with factorised densities where the study has it
    (``factorised_total_correlation``); else the exact one by sampling, less the same constant, which is the total
    correlation of the noise itself: a posterior that ignores the image then has 0, not 9.3 nats; else that of the
    Gaussian that fits sampled codes, as it is.

    Parameters
    ----------
    table
        a results table; methods that were trained with at least two values of ``correlation`` count.

    Returns
    -------
    the columns of the run, variant, reconstruction, kl, total_correlation.

    Examples
    --------
    >>> from unweave.analyses import correlation_costs, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5, correlations=[0.0, 0.9])
    >>> correlation_costs(table)[["reconstruction", "kl", "total_correlation"]].shape
    (60, 3)
    """
    from unweave.objectives import correlation_constant  # imports torch

    known = set(table["metric"].unique())
    table = with_variant(table)
    total = next((name for name in TOTAL_CORRELATIONS if name in known), TOTAL_CORRELATIONS[-1])
    groups = table.groupby(["data", "method", "variant", "latent_size"])
    table = table[groups["correlation"].transform("nunique") > 1]
    if table.empty:
        raise NotInStudyError("the study has no method with two values of correlation")
    names = {
        "unsupervised.reconstruction": "reconstruction",
        "unsupervised.kl": "kl",
        total: "total_correlation",
    }
    rows = pd.concat([_of_samples(table, name) for name in names])
    runs = wide(rows, list(names)).rename(columns=names)
    runs = runs.assign(variant=runs["run"].map(rows.drop_duplicates("run").set_index("run")["variant"]))
    setups = list(zip(runs["correlation"], runs["latent_size"], strict=True))
    constant = {setup: correlation_constant(*setup) for setup in set(setups)}
    of_noise = np.array([constant[setup] for setup in setups])
    footing = runs["total_correlation"] - (of_noise if total == EXACT else 0.0)
    return runs.assign(kl=runs["kl"] - of_noise, total_correlation=footing)


def _of_samples(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows for sampled codes if there are any."""
    sampled = (table["metric"] == metric) & (table["representation"] == "sampled")
    return select(table, metric, "sampled" if sampled.any() else None)
