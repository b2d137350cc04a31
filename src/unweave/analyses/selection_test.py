"""Does a chosen setting do better than chance? Table 1 of Locatello et al. without random draws, and with a test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from unweave.analyses.runs import disentanglement_scores
from unweave.analyses.selection import grid_scores
from unweave.arrays import FloatArray
from unweave.parameters import Count, Seed

Question = tuple[str, str, str]


@dataclass(frozen=True)
class Selection:
    """How often the chosen setting is at least as good as a random one.

    Parameters
    ----------
    probability
        over all trials of Table 1: every data set, seed, metric, other seed and random setting once.
    chance
        its mean if the choice says nothing about other seeds: settings are permuted within each seed.
    p
        two-sided: the share of these permutations that are as far from ``chance``.
    smallest
        the smallest p that so few runs can give.
    """

    probability: float
    chance: float
    p: float
    smallest: float


def selection_tests(
    table: pd.DataFrame, questions: Sequence[Question], draws: Count = 1_000, seed: Seed = 0
) -> tuple[list[Selection | str], int, pd.DataFrame]:
    """Table 1's probabilities, each with a permutation test of whether the choice is better than chance.

    Parameters
    ----------
    table
        a results table with at least two seeds and two settings.
    questions
        chosen_by, metric, data as in :func:`unweave.analyses.outperforming_random`.
    draws, seed
        how many permutations, and from which random numbers.

    Returns
    -------
    for each question its :class:`Selection`, or why the study has no answer; the number of settings; the runs.

    Examples
    --------
    >>> from unweave.analyses import simulate_results
    >>> from unweave.analyses.selection_test import selection_tests
    >>> table = simulate_results(data=["dsprites"], methods=["beta_vae", "factor_vae"], seeds=5)
    >>> cells, settings, _ = selection_tests(table, [("metric", "same", "same"), ("metric", "same", "different")])
    >>> settings, 0.5 < cells[0].probability < 1, cells[1]
    (12, True, 'the study has one data set')
    """
    metrics, choices = grid_scores(table)
    runs, _ = disentanglement_scores(table)
    known = np.asarray(~np.isnan(metrics).all(axis=(0, 1)))  # seeds and settings with a run
    rng = np.random.default_rng(seed)
    orders, beaten = _permutations(known, draws, rng), _beaten(metrics)
    counts = known.sum(axis=1).tolist()
    smallest = 2.0 / math.exp(min(50.0, sum(math.lgamma(count + 1) for count in counts[1:])))
    cells: list[Selection | str] = []
    for question in questions:
        why = _lacking(question, metrics, choices)
        if why:
            cells.append(why)
            continue
        choose = metrics if question[0] == "metric" else choices[question[0]][None]
        observed = _probability(choose, beaten, question)
        drawn = np.array([_probability(choose, _permuted(beaten, order), question) for order in orders])
        if math.isnan(observed) or np.isnan(drawn).all():
            cells.append("no setting that can be chosen has a run of another seed to compare")
            continue
        chance = float(np.nanmean(drawn))
        far = np.abs(drawn - chance) >= abs(observed - chance) - 1e-12
        p = float((1 + far.sum()) / (1 + draws))
        cells.append(Selection(observed, chance, p, min(smallest, 1.0)))
    return cells, metrics.shape[3], runs


def _lacking(question: Question, metrics: FloatArray, choices: dict[str, FloatArray]) -> str:
    chosen_by, metric, data = question
    if chosen_by != "metric" and chosen_by not in choices:
        return f"the study has no {chosen_by}"
    if data == "different" and metrics.shape[1] < 2:
        return "the study has one data set"
    if metric == "different" and len(metrics) < 2:
        return "the study has one metric"
    return ""


def _beaten(metrics: FloatArray) -> FloatArray:
    """The share of settings that each run does at least as well as, (M, D, S, H); NaN without a run."""
    known = ~np.isnan(metrics)
    at_least = (metrics[..., :, None] >= metrics[..., None, :]) & known[..., None, :]
    with np.errstate(invalid="ignore"):
        share = at_least.sum(axis=-1) / known.sum(axis=-1, keepdims=True)
    return np.where(known, share, np.nan)


def _probability(choose: FloatArray, beaten: FloatArray, question: Question) -> float:
    """The mean of ``beaten`` where the best of ``choose`` (M or 1, D, S, H) is compared."""
    _, metric, data = question
    with np.errstate(invalid="ignore"):
        best = choose == np.fmax.reduce(choose, axis=3, keepdims=True)
        weights = best / np.maximum(best.sum(axis=3, keepdims=True), 1)  # of equals, one at random
    count_m, count_d, count_s, settings = beaten.shape
    # Trials by chosen-by metric m, data d, seed s and compared-by metric n, data e, seed t.
    chosen, shape = weights.reshape(-1, settings), (*choose.shape[:3], count_m, count_d, count_s)
    won, total = (
        (chosen @ part.reshape(-1, settings).T).reshape(shape)
        for part in (np.nan_to_num(beaten), (~np.isnan(beaten)).astype(float))
    )
    allowed = (1 - np.eye(count_s))[None, None, :, None, None, :]
    same_data = np.eye(count_d)[None, :, None, None, :, None]
    allowed = allowed * (same_data if data == "same" else 1 - same_data)
    if metric != "any":
        same_metric = np.eye(count_m)[:, None, None, :, None, None]
        allowed = allowed * (same_metric if metric == "same" else 1 - same_metric)
    trials = float((allowed * total).sum())
    return float((allowed * won).sum()) / trials if trials else math.nan


def _permutations(known: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Permutations of the settings of each seed (draws, S, H) that leave those without a run where they are."""
    orders = np.tile(np.arange(known.shape[1]), (draws, known.shape[0], 1))
    for seed, there in enumerate(known):
        members = np.flatnonzero(there)
        orders[:, seed, members] = members[np.argsort(rng.random((draws, len(members))), axis=1)]
    return orders


def _permuted(beaten: FloatArray, order: np.ndarray) -> FloatArray:
    """The runs of each seed given to other settings, the same on all data sets and metrics."""
    return np.take_along_axis(beaten, np.broadcast_to(order, beaten.shape), axis=3)
