"""The FactorVAE metric (Kim and Mnih, 2018)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unweave.errors import ArgumentError
from unweave.metrics.interventions.votes import (
    Interventions,
    TableInterventions,
    VoteSource,
    check_choice,
    check_counts,
    seeded,
    vote_blocks,
    vote_source,
)
from unweave.metrics.score import Score

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def factor_vae(
    representation: Interventions | TableInterventions,
    *,
    seed: int = 0,
    batch_size: int = 64,
    num_train: int = 10_000,
    num_eval: int = 5_000,
    num_variance_estimate: int = 10_000,
    prune: str | None = "std",
    threshold: float = 0.05,
) -> Score:
    """How well the code that varies least tells which factor is held.

    Kim and Mnih, "Disentangling by factorising", 2018. Per vote a factor k is drawn, and a batch of images that
    all have one value of k; the vote is (d, k) with d the code of least variance in the batch relative to its
    variance over ``num_variance_estimate`` images (both with divisor n - 1). Each code stands for the factor
    that it has most of ``num_train`` votes for; the value is the share of ``num_eval`` votes that agree.

    Collapsed codes do not vote. ``prune``: "std" leaves out a standard deviation below ``threshold``
    (disentanglement_lib's study), "variance" a variance below it (the paper), None nothing. With no code left
    the score is 0. Without pruning a code that never varies has the relative variance 0 / 0 and, as in the
    library, wins every vote: the score falls to chance.

    The random stream is that of disentanglement_lib with ``RandomState(seed)``. Factors with one value are
    never drawn, as nothing could tell them (the library draws them too); two others are needed.

    ``details``: ``train_accuracy``; ``eval_accuracy`` (the value); ``matrix`` (D, K), the training votes;
    ``eval_matrix`` (D, K); ``variance`` (D,); ``num_active``, the number of codes that are not left out (the
    library gives the number of all codes under this name); ``excluded``, the factors with one value.
    """
    check_counts(1, num_train=num_train, num_eval=num_eval)
    check_counts(2, batch_size=batch_size, num_variance_estimate=num_variance_estimate)
    if prune is not None:
        check_choice("prune", prune, ("std", "variance"))
    if not threshold >= 0:
        raise ArgumentError("threshold", threshold, "needs a number of at least 0")
    rng = seeded(seed)
    source = vote_source(representation)
    variance = source.sample(num_variance_estimate, rng).var(axis=0, ddof=1)
    active = _active(variance, prune, threshold)
    train = eval_ = np.zeros((len(variance), source.num_factors), dtype=np.int64)
    train_accuracy = eval_accuracy = 0.0
    if active.any():
        train = count_votes(source, num_train, batch_size, variance, active, rng)
        eval_ = count_votes(source, num_eval, batch_size, variance, active, rng)
        factor_of = train.argmax(axis=1)
        train_accuracy, eval_accuracy = (_agreement(votes, factor_of) for votes in (train, eval_))
    details = {
        "train_accuracy": train_accuracy,
        "eval_accuracy": eval_accuracy,
        "matrix": train,
        "eval_matrix": eval_,
        "variance": variance,
        "num_active": int(active.sum()),
        "excluded": np.setdiff1d(np.arange(source.num_factors), source.varying),
    }
    params = {
        "seed": seed,
        "batch_size": batch_size,
        "num_train": num_train,
        "num_eval": num_eval,
        "num_variance_estimate": num_variance_estimate,
        "prune": prune,
        "threshold": threshold,
    }
    return Score(eval_accuracy, details, params)


def count_votes(
    source: VoteSource,
    number: int,
    batch_size: int,
    variance: Array,
    active: npt.NDArray[np.bool_],
    rng: np.random.RandomState,
) -> Counts:
    """How often each code varied least while each factor was held (D, K)."""
    latents = np.flatnonzero(active)
    counts = np.zeros((len(variance), source.num_factors), dtype=np.int64)
    for votes in vote_blocks(source, number, 1, batch_size, "batch", rng):
        local = votes.codes[:, 0].var(axis=1, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.argmin(local[:, active] / variance[active], axis=1)
        np.add.at(counts, (latents[least], votes.factor), 1)
    return counts


def _active(variance: Array, prune: str | None, threshold: float) -> npt.NDArray[np.bool_]:
    if prune is None:
        return np.ones(len(variance), dtype=bool)
    return (np.sqrt(variance) if prune == "std" else variance) >= threshold


def _agreement(votes: Counts, factor_of: Counts) -> float:
    return float(votes[np.arange(len(votes)), factor_of].sum() / votes.sum())
