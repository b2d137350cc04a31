"""Does choosing a setting by a score beat choosing at random? (Locatello et al., section 5.5, Table 1)"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from unweave.analyses.agreement import scores
from unweave.analyses.settings import available, independent_noise, with_setting
from unweave.study.results import NotInStudyError, select

Array = npt.NDArray[np.float64]
# Choices that need no labels; of both more is better.
UNSUPERVISED_CHOICES = ("udr", "unsupervised.elbo")
CHANCE = "chance"
_ROUNDS = 100  # of redrawing trials that hit a missing run


def outperforming_random(
    table: pd.DataFrame, draws: int = 10_000, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """How often a chosen hyperparameter setting does at least as well as a random one, on another seed.

    A setting is a method and its strength. One trial of the paper:

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

    Returns
    -------
    chosen_by ("metric", "udr", "unsupervised.elbo", "chance"), metric ("same", "different", "any"), data ("same",
    "different"), probability, standard_error (of the simulation: sqrt(p (1 - p) / draws)), low and high (the bootstrap
    interval over seeds: each trial counts as often as s times as often as s' was drawn; NaN for fewer than three
    seeds), draws. Combinations that the study does not allow (a single data set or metric) are left out.
    """
    grids = _grids(table)
    rng = np.random.default_rng(seed)
    found = []
    for chosen_by, metric, data in _questions(grids):
        won, seeds = _trials(grids, chosen_by, metric == "different", data == "different", draws, rng)
        if len(won) == 0:
            continue
        p = float(won.mean())
        low, high = _interval(won, seeds, grids.metrics.shape[2], level, resamples, rng)
        error = np.sqrt(p * (1 - p) / len(won))
        found.append((chosen_by, metric, data, p, error, low, high, len(won)))
    names = ["chosen_by", "metric", "data", "probability", "standard_error", "low", "high", "draws"]
    return pd.DataFrame(found, columns=names)


@dataclass(frozen=True)
class _Grids:
    """Scores by data set, seed and setting, NaN where there is no run: (M, D, S, H), and (D, S, H) per choice."""

    metrics: Array
    choices: dict[str, Array]


def _grids(table: pd.DataFrame) -> _Grids:
    runs, metrics = scores(table)
    runs = with_setting(runs).set_index("run")
    places = [pd.factorize(runs[name])[0] for name in ("data", "seed", "setting")]
    shape = tuple(int(place.max()) + 1 for place in places)
    if shape[1] < 2 or shape[2] < 2:
        raise NotInStudyError("choosing a setting needs at least two seeds and two settings")

    def grid(values: pd.Series) -> Array:
        filled = np.full(shape, np.nan)
        filled[tuple(places)] = values.to_numpy(np.float64)
        return filled

    choices = {CHANCE: np.where(np.isnan(grid(runs[metrics[0]])), np.nan, 0.0)}  # all equal: one at random
    for name in available(table, UNSUPERVISED_CHOICES, least=0):
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
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Which trials were won (draws,), and their seeds s and s' (draws, 2); fewer if runs are too often missing."""
    n_metrics, n_data, n_seeds, _ = grids.metrics.shape
    won: list[npt.NDArray[np.bool_]] = []
    seeds: list[npt.NDArray[np.int64]] = []
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
        own, other = to_scores[trial, chosen], to_scores[trial, opponent]
        complete = ~np.isnan(own) & ~np.isnan(best[:, 0])
        won.append((own >= other)[complete])
        seeds.append(np.stack([s, to_s], axis=1)[complete])
        missing -= int(complete.sum())
        if missing == 0:
            break
    return np.concatenate(won), np.concatenate(seeds)


def _another(drawn: npt.NDArray[np.int64], size: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """For each number below ``size`` another one, uniformly."""
    other: npt.NDArray[np.int64] = (drawn + rng.integers(1, size, size=len(drawn))) % size
    return other


def _one_of(allowed: npt.NDArray[np.bool_], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """The place of a random True in each row (trials, settings); 0 where there is none."""
    place: npt.NDArray[np.intp] = np.argmax(np.where(allowed, rng.random(allowed.shape), -1.0), axis=1)
    return place


def _interval(
    won: npt.NDArray[np.bool_],
    seeds: npt.NDArray[np.int64],
    n_seeds: int,
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    if n_seeds < 3:
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
