"""The FactorVAE metric (Kim and Mnih, 2018)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge

from unweave.arrays import BoolArray, FloatArray, IntArray
from unweave.metrics.interventions.votes import (
    Interventions,
    RowInterventions,
    VoteSource,
    vote_blocks,
    vote_source,
)
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.parameters import Count, NonNegative, Seed

AtLeastTwo = Annotated[int, Ge(2)]
Prune = Literal["std", "variance"] | None


@register_metric(
    "factor_vae",
    label="FactorVAE",
    takes="interventions",
    factors="two",
    paper=True,
    protocols={"dlib": {"prune": "std"}},
    protocol_notes={
        "prune": "what leaves out a code if it is below 0.05: its variance; its standard deviation"
    },
    sizes=("num_train", "num_eval", "num_variance_estimate"),
    images=lambda params: params["batch_size"] * (params["num_train"] + params["num_eval"]),
)
def factor_vae(
    representation: Interventions | RowInterventions,
    *,
    seed: Seed = 0,
    batch_size: AtLeastTwo = 64,
    num_train: Count = 10_000,
    num_eval: Count = 5_000,
    num_variance_estimate: AtLeastTwo = 10_000,
    prune: Prune = "variance",
    threshold: NonNegative = 0.05,
) -> Score:
    """The FactorVAE metric: how well the code that varies least identifies the factor that is held.

    Per vote a factor k is drawn, and a batch of images that all have one value of k; the vote is (d, k) with d
    the code of least variance in the batch relative to its variance over ``num_variance_estimate`` images (both
    with divisor n - 1). Each code predicts the factor that it has most of ``num_train`` votes for; the value is
    the share of ``num_eval`` votes that agree.

    Collapsed codes do not vote. With no code left the score is 0. Without pruning a code that never varies has
    the relative variance 0 / 0 and, as in the library, wins every vote: the score falls to chance.

    The random stream is that of disentanglement_lib with ``RandomState(seed)``. Factors with one value are never
    drawn, as nothing could identify them (the library draws them too); two others are needed.

    Parameters
    ----------
    batch_size
        the number of images of a vote.
    num_train, num_eval
        the numbers of votes to learn from and to judge on.
    num_variance_estimate
        the number of images for the variance of each code.
    prune
        which codes are left out: "variance", those with a variance below ``threshold`` (the paper); "std", with a
        standard deviation below it (disentanglement_lib's study); None, none.
    threshold
        the limit of ``prune``.

    Returns
    -------
    Score
        ``details``: ``train_accuracy``; ``eval_accuracy`` (the value); ``matrix`` (D, K), the training votes;
        ``eval_matrix`` (D, K); ``variance`` (D,); ``num_active``, the number of codes that are not left out (the
        library gives the number of all codes under this name); ``excluded``, the factors with one value.

    References
    ----------
    Kim & Mnih, "Disentangling by factorising", 2018.

    Examples
    --------
    >>> factors = np.random.default_rng(0).integers(0, 4, (500, 2))
    >>> uw.metrics.factor_vae(factors, factors, num_train=100, num_eval=50)
    factor_vae = 1
    """
    rng = np.random.RandomState(seed)  # the stream of disentanglement_lib: part of the protocol
    source = vote_source(representation)
    variance = source.sample(num_variance_estimate, rng).var(axis=0, ddof=1)
    active = _active(variance, prune, threshold)
    train = eval_ = np.zeros((len(variance), source.num_factors), dtype=np.int64)
    train_accuracy = eval_accuracy = 0.0
    if active.any():
        train = count_votes(source, num_train, batch_size, variance, active, rng)
        eval_ = count_votes(source.judging, num_eval, batch_size, variance, active, rng)
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
    variance: FloatArray,
    active: BoolArray,
    rng: np.random.RandomState,
) -> IntArray:
    """How often each code varied least while each factor was held (D, K)."""
    latents = np.flatnonzero(active)
    counts = np.zeros((len(variance), source.num_factors), dtype=np.int64)
    for votes in vote_blocks(source, number, 1, batch_size, "batch", rng):
        local = votes.codes[:, 0].var(axis=1, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.argmin(local[:, active] / variance[active], axis=1)
        np.add.at(counts, (latents[least], votes.factor), 1)
    return counts


def _active(variance: FloatArray, prune: Prune, threshold: float) -> BoolArray:
    if prune is None:
        return np.ones(len(variance), dtype=bool)
    return (np.sqrt(variance) if prune == "std" else variance) >= threshold


def _agreement(votes: IntArray, factor_of: IntArray) -> float:
    return float(votes[np.arange(len(votes)), factor_of].sum() / votes.sum())
