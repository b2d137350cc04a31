"""Yang et al., "Towards better understanding of disentangled representations via mutual information" (2020)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from unweave.analyses.intervals import resampled
from unweave.analyses.ranking import holm, mann_whitney
from unweave.analyses.summaries import main_runs
from unweave.analyses.variants import by_variant
from unweave.objectives import correlation_constant
from unweave.study.results import NotInStudyError, select, wide

# The paper's estimator by sampling if the study has it, else that of the Gaussian with the codes' covariance.
TOTAL_CORRELATIONS = ("monte_carlo_total_correlation", "gaussian_total_correlation")


def by_correlation(table: pd.DataFrame, metric: str = "mig", latent_size: int | None = None) -> pd.DataFrame:
    """The rows of a metric for methods that were trained both with and without correlated noise (figures 1 and 5).

    Only data sets and methods with at least two values of ``correlation`` are kept. ``latent_size`` None is that of
    the main line (``main_runs``), which the ranking is of; the number of steps is its, too.
    """
    rows = by_variant(select(table, metric).dropna(subset="value"))
    if latent_size is not None:
        rows = rows[rows["latent_size"] == latent_size]
    setup = ["data", "latent_size", "steps"]
    rows = rows.merge(main_runs(rows)[setup].drop_duplicates())
    several = rows.groupby(["data", "method"])["correlation"].transform("nunique") > 1
    if not several.any():
        wanted = "" if latent_size is None else f" and {latent_size} latents"
        raise NotInStudyError(f"the study has no method with two values of correlation{wanted}")
    return rows[several]


def decline(
    table: pd.DataFrame, metric: str = "mig", level: float = 0.95, draws: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """How much the median score changes when the posterior's noise is correlated.

    Returns
    -------
    one row per data set, number of latents, method and correlation s > 0: ``plain``, ``correlated``: the medians
    over runs at s = 0 (or the smallest s) and at s; their ``difference``, correlated - plain, with its bootstrap
    interval ``low`` to ``high``, each side drawn by itself; ``p`` of a two-sided Mann-Whitney test, ``p_holm`` with
    Holm's correction for all rows; ``n_plain``, ``n_correlated``.

    Runs of all strengths of a method are taken together, so that both sides need the same strengths.
    """
    rng = np.random.default_rng(seed)
    rows = by_variant(select(table, metric).dropna(subset="value"))
    found, pairs = [], []
    for (data, latents, method), group in rows.groupby(["data", "latent_size", "method"], sort=False):
        smallest, *others = sorted(group["correlation"].unique().tolist())
        sides = {s: group.loc[group["correlation"] == s, "value"].to_numpy() for s in (smallest, *others)}
        for s in others:
            one, other = sides[smallest], sides[s]
            low = high = np.nan
            if min(len(one), len(other)) > 1:
                medians = [resampled(side[None], "median", draws, rng)[0] for side in (one, other)]
                low, high = np.quantile(medians[1] - medians[0], [(1 - level) / 2, (1 + level) / 2])
            plain, correlated = float(np.median(one)), float(np.median(other))
            found.append(
                {
                    "data": data,
                    "latent_size": latents,
                    "method": method,
                    "correlation": s,
                    "plain": plain,
                    "correlated": correlated,
                    "difference": correlated - plain,
                    "low": low,
                    "high": high,
                    "n_plain": len(one),
                    "n_correlated": len(other),
                }
            )
            pairs.append((one, other))
    if not found:
        raise NotInStudyError("the study has no method with two values of correlation")
    p = mann_whitney(pairs)
    return pd.DataFrame(found).assign(p=p, p_holm=holm(p))


def costs(table: pd.DataFrame) -> pd.DataFrame:
    """Per run the reconstruction error, the KL term and the total correlation (figure 2).

    Of methods that were trained with at least two values of ``correlation``: the columns of the run, and
    ``reconstruction``, ``kl``, ``total_correlation``, all in nats. ``kl`` is the term of the paper's objective,
    KL(N(mean, diag(variance)) || N(0, I)): without the constant 1/2 log 1/det(Sigma) that correlated noise adds to
    the true KL (their appendix B), which would hide how alike the terms are. The total correlation is that of
    sampled codes, by the first of ``TOTAL_CORRELATIONS`` in the study.
    """
    known = set(table["metric"].unique())
    table = by_variant(table)
    total = next((name for name in TOTAL_CORRELATIONS if name in known), TOTAL_CORRELATIONS[-1])
    several = table.groupby(["data", "method", "latent_size"])["correlation"].transform("nunique") > 1
    table = table[several]
    if table.empty:
        raise NotInStudyError("the study has no method with two values of correlation")
    parts = [_of_samples(table, name) for name in ("unsupervised.reconstruction", "unsupervised.kl", total)]
    runs = wide(pd.concat(parts), ["unsupervised.reconstruction", "unsupervised.kl", total])
    runs = runs.rename(
        columns={
            "unsupervised.reconstruction": "reconstruction",
            "unsupervised.kl": "kl",
            total: "total_correlation",
        }
    )
    setups = list(zip(runs["correlation"], runs["latent_size"], strict=True))
    constant = {setup: correlation_constant(*setup) for setup in set(setups)}
    return runs.assign(kl=runs["kl"] - np.array([constant[setup] for setup in setups]))


def _of_samples(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows for sampled codes if there are any."""
    sampled = (table["metric"] == metric) & (table["representation"] == "sampled")
    return select(table, metric, "sampled" if sampled.any() else None)
