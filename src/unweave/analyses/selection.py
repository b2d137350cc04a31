"""Can a good setting be chosen: without labels, by another data set or seed? (Locatello et al., section 5.5)"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from unweave.analyses.agreement import correlations_by_data
from unweave.analyses.runs import (
    available_metrics,
    disentanglement_scores,
    independent_noise,
    with_setting,
)
from unweave.analyses.statistics.intervals import FEWEST, Level, grouped_intervals
from unweave.analyses.statistics.rank_correlation import rank_correlations
from unweave.arrays import BoolArray, FloatArray, IntArray
from unweave.parameters import Count, Seed
from unweave.study.results import NotInStudyError, select

# What needs no labels, with the representation that it is measured on.
UNSUPERVISED_SCORES = {
    "unsupervised.reconstruction": "sampled",
    "gaussian_total_correlation": "sampled",
    "unsupervised.kl": "sampled",
    "unsupervised.elbo": "sampled",
}
# Choices that need no labels; of both more is better.
UNSUPERVISED_CHOICES = ("udr", "unsupervised.elbo")
CHANCE = "chance"
_ROUNDS = 100  # of redrawing trials that hit a missing run


def unsupervised_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation over runs of unsupervised scores with the metrics, per data set (Figure 9).

    Reconstruction is an error, -log p(x|z): a negative correlation is one with good reconstructions.

    Parameters
    ----------
    table
        a results table.

    Returns
    -------
    data, row (unsupervised score), column (metric), value, low, high, n, with the bootstrap interval over seeds.

    Examples
    --------
    >>> from unweave.analyses import simulate_results, unsupervised_correlations
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5)
    >>> unsupervised_correlations(table)["row"].unique().tolist()
    ['unsupervised.reconstruction', 'gaussian_total_correlation', 'unsupervised.kl', 'unsupervised.elbo']
    """
    runs, metrics = disentanglement_scores(table)
    chosen = available_metrics(table, list(UNSUPERVISED_SCORES))
    rows = independent_noise(table, chosen)
    columns: list[pd.DataFrame | pd.Series] = [
        select(rows, name, UNSUPERVISED_SCORES[name]).set_index("run")["value"].rename(name)
        for name in chosen
    ]
    return correlations_by_data(runs.set_index("run").join(columns), chosen, metrics)


def setting_medians(table: pd.DataFrame) -> pd.DataFrame:
    """The median over seeds of each metric, setting and data set (Figure 11).

    Parameters
    ----------
    table
        a results table with at least two data sets.

    Returns
    -------
    metric, data, method, variant, setting, value, low, high, n, with the 95% bootstrap interval over seeds. A setting
    has the same number on all data sets.

    Examples
    --------
    >>> from unweave.analyses import setting_medians, simulate_results
    >>> table = simulate_results(data=["dsprites", "cars3d"], methods=["beta_vae"], seeds=5, strengths=3)
    >>> setting_medians(table).query("metric == 'mig'")["setting"].tolist()
    [0, 1, 2, 0, 1, 2]
    """
    runs, metrics = disentanglement_scores(table)
    if runs["data"].nunique() < 2:
        raise NotInStudyError("the study has one data set: nothing can be transferred to another")
    keys = ["data", "method", "variant", "setting"]
    medians = grouped_intervals(with_setting(runs).melt(keys, metrics, var_name="metric"), ["metric", *keys])
    order = {name: position for position, name in enumerate([*metrics, *runs["data"].unique()])}
    return medians.sort_values(["metric", "data"], key=lambda names: names.map(order), kind="stable")


def transfer_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation over settings of the median scores on every two data sets, per metric (Figure 10).

    What is compared are hyperparameter settings, so n counts those that both data sets have, and the bootstrap interval
    is that over settings. Resampling seeds instead would add noise to medians that are noisy already, and so draw every
    correlation towards 0.

    Parameters
    ----------
    table
        a results table with at least two data sets that share three settings.

    Returns
    -------
    metric, row, column (data sets), value, low, high, n.

    Examples
    --------
    >>> from unweave.analyses import simulate_results, transfer_correlations
    >>> table = simulate_results(data=["dsprites", "cars3d"], methods=["beta_vae", "factor_vae"], seeds=5)
    >>> transfer_correlations(table).query("metric == 'mig'")["n"].tolist()
    [12, 12, 12, 12]
    """
    medians = setting_medians(table)
    names = list(medians["data"].unique())
    parts = []
    for metric, part in medians.groupby("metric", sort=False):
        by_data = part.pivot(index="setting", columns="data", values="value").reindex(columns=names)
        correlations = rank_correlations(by_data.reset_index(), names, names, cluster="setting")
        parts.append(correlations.assign(metric=metric))
    result = pd.concat(parts, ignore_index=True)[["metric", "row", "column", "value", "low", "high", "n"]]
    if result.loc[result["row"] != result["column"], "value"].isna().all():
        raise NotInStudyError("the study has fewer than three settings that two data sets share")
    return result


def outperforming_random(
    table: pd.DataFrame, draws: Count = 10_000, level: Level = 0.95, resamples: Count = 1000, seed: Seed = 0
) -> pd.DataFrame:
    """How often a chosen hyperparameter setting does at least as well as a random one, on another seed (Table 1).

    A setting is a method, a variant and a strength. One trial of the paper:

    1. Draw a data set d, a seed s and a disentanglement metric m. Of all settings, choose the one whose run on d with
       seed s has the highest m (of equals, one at random).
    2. Take d' = d, or draw another data set; take m' = m, or draw another metric. Draw another seed s' != s, and a
       setting from all settings, which may be the chosen one.
    3. The trial is won if the chosen setting's m' on d' with seed s' is at least the random setting's.

    All draws are uniform and independent. The probability is the share of ``draws`` trials that are won, for each of
    the four combinations of same and different m' and d'. As the random setting may be the chosen one and equals
    count, a useless choice among H settings wins (1 + 1/H) / 2 of the trials, not half, and more if scores are tied.

    Beyond the paper, step 1 also chooses by the UDR score and by the ELBO of the runs on d with seed s, and at random
    ("chance"); then m' is any metric. Trials in which a run is missing are drawn anew.

    Parameters
    ----------
    table
        a results table with at least two seeds and two settings.
    draws
        how many trials.
    level, resamples, seed
        the probability that the interval covers; its bootstrap samples; of the random numbers.

    Returns
    -------
    chosen_by ("metric", "udr", "unsupervised.elbo", "chance"), metric ("same", "different", "any"), data ("same",
    "different"), probability, standard_error (of the simulation: sqrt(p (1 - p) / draws)), low and high (the bootstrap
    interval over seeds: each trial counts as often as s times as often as s' was drawn; NaN for fewer than five
    seeds), draws. Combinations that the study does not allow (a single data set or metric) are left out.

    Examples
    --------
    >>> from unweave.analyses import outperforming_random, simulate_results
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae", "factor_vae"], seeds=5)
    >>> outperforming_random(table, draws=1000)[["chosen_by", "metric", "data", "draws"]]
               chosen_by     metric  data  draws
    0             metric       same  same   1000
    1             metric  different  same   1000
    2                udr        any  same   1000
    3  unsupervised.elbo        any  same   1000
    4             chance        any  same   1000
    """
    grids = _grids(table)
    rng = np.random.default_rng(seed)
    rows = []
    for chosen_by, metric, data in _questions(grids):
        won, seeds = _trials(grids, chosen_by, metric == "different", data == "different", draws, rng)
        if len(won) == 0:
            continue
        p = float(won.mean())
        low, high = _interval(won, seeds, grids.metrics.shape[2], level, resamples, rng)
        error = np.sqrt(p * (1 - p) / len(won))
        rows.append((chosen_by, metric, data, p, error, low, high, len(won)))
    names = ["chosen_by", "metric", "data", "probability", "standard_error", "low", "high", "draws"]
    return pd.DataFrame(rows, columns=names)


def grid_scores(table: pd.DataFrame) -> tuple[FloatArray, dict[str, FloatArray]]:
    """The scores of a study by metric, data set, seed and setting, and those of unsupervised choices.

    Parameters
    ----------
    table
        a results table with at least two seeds and two settings.

    Returns
    -------
    (M, D, S, H), and by name (D, S, H); NaN where there is no run.

    Examples
    --------
    >>> from unweave.analyses import simulate_results
    >>> from unweave.analyses.selection import grid_scores
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae"], seeds=5)
    >>> metrics, choices = grid_scores(table)
    >>> metrics.shape, list(choices)
    ((6, 1, 5, 6), ['udr', 'unsupervised.elbo'])
    """
    grids = _grids(table)
    return grids.metrics, {name: values for name, values in grids.choices.items() if name != CHANCE}


@dataclass(frozen=True)
class _Grids:
    """Scores by data set, seed and setting, NaN where there is no run: (M, D, S, H), and (D, S, H) per choice."""

    metrics: FloatArray
    choices: dict[str, FloatArray]


def _grids(table: pd.DataFrame) -> _Grids:
    runs, metrics = disentanglement_scores(table)
    runs = with_setting(runs).set_index("run")
    positions = [pd.factorize(runs[name])[0] for name in ("data", "seed", "setting")]
    shape = tuple(int(position.max()) + 1 for position in positions)
    if shape[1] < 2 or shape[2] < 2:
        raise NotInStudyError("choosing a setting needs at least two seeds and two settings")

    def grid(values: pd.Series) -> FloatArray:
        filled = np.full(shape, np.nan)
        filled[tuple(positions)] = values.to_numpy(np.float64)
        return filled

    choices = {CHANCE: np.where(np.isnan(grid(runs[metrics[0]])), np.nan, 0.0)}  # all equal: one at random
    for name in available_metrics(table, UNSUPERVISED_CHOICES, at_least=0):
        values = select(independent_noise(table, [name]), name).set_index("run")["value"]
        choices[name] = grid(values.reindex(runs.index))
    return _Grids(np.stack([grid(runs[name]) for name in metrics]), choices)


def _questions(grids: _Grids) -> list[tuple[str, str, str]]:
    """Chosen by what, compared on which metric and data set."""
    metrics = ["same", "different"] if len(grids.metrics) > 1 else ["same"]
    data = ["same", "different"] if grids.metrics.shape[1] > 1 else ["same"]
    unsupervised = [name for name in (*UNSUPERVISED_CHOICES, CHANCE) if name in grids.choices]
    rows = [("metric", metric) for metric in metrics] + [(name, "any") for name in unsupervised]
    return [(*row, column) for row in rows for column in data]


def _trials(
    grids: _Grids, chosen_by: str, other_metric: bool, other_data: bool, draws: int, rng: np.random.Generator
) -> tuple[BoolArray, IntArray]:
    """Which trials were won (draws,), and their seeds s and s' (draws, 2); fewer if runs are too often missing."""
    n_metrics, n_data, n_seeds, _ = grids.metrics.shape
    won: list[BoolArray] = []
    seeds: list[IntArray] = []
    missing = draws
    for _ in range(_ROUNDS):
        m, d, s = (rng.integers(size, size=missing) for size in (n_metrics, n_data, n_seeds))
        from_scores = grids.metrics[m, d, s] if chosen_by == "metric" else grids.choices[chosen_by][d, s]
        to_m = _another(m, n_metrics, rng) if other_metric else m
        to_d = _another(d, n_data, rng) if other_data else d
        to_s = _another(s, n_seeds, rng)
        to_scores = grids.metrics[to_m, to_d, to_s]
        best = np.fmax.reduce(from_scores, axis=1, keepdims=True)
        chosen = _one_of(from_scores == best, rng)
        opponent = _one_of(~np.isnan(to_scores), rng)
        trial = np.arange(missing)
        achieved, other = to_scores[trial, chosen], to_scores[trial, opponent]
        complete = ~np.isnan(achieved) & ~np.isnan(best[:, 0])
        won.append((achieved >= other)[complete])
        seeds.append(np.stack([s, to_s], axis=1)[complete])
        missing -= int(complete.sum())
        if missing == 0:
            break
    return np.concatenate(won), np.concatenate(seeds)


def _another(drawn: IntArray, size: int, rng: np.random.Generator) -> IntArray:
    """For each number below ``size`` another one, uniformly."""
    other: IntArray = (drawn + rng.integers(1, size, size=len(drawn))) % size
    return other


def _one_of(allowed: BoolArray, rng: np.random.Generator) -> IntArray:
    """The index of a random True in each row (trials, settings); 0 where there is none."""
    index: IntArray = np.argmax(np.where(allowed, rng.random(allowed.shape), -1.0), axis=1)
    return index


def _interval(
    won: BoolArray,
    seeds: IntArray,
    n_seeds: int,
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """The bootstrap interval over seeds of the share of trials that were won."""
    if n_seeds < FEWEST:
        return np.nan, np.nan
    # Trials per pair of seeds, so that a resample is a quadratic form in the seeds' counts.
    total, wins = np.zeros((2, n_seeds, n_seeds))
    np.add.at(total, (seeds[:, 0], seeds[:, 1]), 1)
    np.add.at(wins, (seeds[:, 0], seeds[:, 1]), won)
    counts = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), size=resamples).astype(np.float64)
    totals, shares = (((counts @ pairs) * counts).sum(axis=1) for pairs in (total, wins))
    shares = shares[totals > 0] / totals[totals > 0]
    low, high = np.quantile(shares, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
