"""How the latents of a model depend on the factors of the data, and on the latents of another model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from unweave.arrays import BoolArray, FloatArray, IntArray, SingleArray
from unweave.errors import UnweaveError
from unweave.metrics import dci
from unweave.metrics.information.discretise import discretise
from unweave.metrics.information.mutual_information import entropy, mutual_information_matrix

_FEWEST = 40  # observations from which anything can be estimated
_PERMUTATIONS = 30
_UNUSED = 1e-3  # the weight of a correlation with a latent that is not in use
_LEARN = 0.75  # of the observations teach the predictors of DCI


def factor_matrices(codes: SingleArray, factors: IntArray) -> dict[str, FloatArray]:
    """How much each latent tells about each factor, (D, K) each, by the name of the measure.

    "mutual_information" is the share of H(factor) in I(latent; factor), with codes in 20 bins as in MIG, less what
    chance gives: of 50 observations, 20 bins and 10 values share more than half of the entropy whatever they are.
    "importance" are those of DCI's boosted trees, which add up to 1 for each factor. Measures that cannot be computed
    are left out, and a factor with one value has zeros.

    Parameters
    ----------
    codes
        (n, D).
    factors
        (n, K) whole numbers.

    Examples
    --------
    >>> factors = np.stack([np.arange(100) % 2, np.arange(100) // 2 % 2], axis=1)
    >>> codes = factors[:, ::-1].astype(np.float32)
    >>> factor_matrices(codes, factors)["mutual_information"]
    array([[0., 1.], [1., 0.]])
    """
    if factors.shape[1] == 0 or len(codes) < _FEWEST:
        return {}
    result = {"mutual_information": _shares_beyond_chance(discretise(codes), factors)}
    learn = int(_LEARN * len(codes))
    try:
        score = dci(
            codes[:learn],
            factors[:learn],
            test=(codes[learn:], factors[learn:]),
            learner="gbt",
            standardised=False,
        )
    except UnweaveError:  # of some samples nothing can be learned
        return result
    matrix = np.asarray(score.details["matrix"], np.float64)
    return result | {"importance": matrix / np.maximum(matrix.sum(axis=0), 1e-12)}


def _shares_beyond_chance(codes: IntArray, factors: IntArray) -> FloatArray:
    """(I - C) / (H - C) of all pairs of columns, at least 0: C is the mean of I over permutations of the rows."""
    rng = np.random.default_rng(0)
    shuffled = [mutual_information_matrix(codes, rng.permutation(factors)) for _ in range(_PERMUTATIONS)]
    chance = np.mean(shuffled, axis=0)
    left = entropy(factors) - chance
    gained = np.maximum(mutual_information_matrix(codes, factors) - chance, 0.0)
    return np.asarray(np.divide(gained, left, out=np.zeros_like(gained), where=left > 1e-9))


def match_latents(
    one: SingleArray, other: SingleArray, used: BoolArray | None = None, other_used: BoolArray | None = None
) -> list[dict[str, Any]]:
    """Pairs of latents of two models: the assignment with the largest sum of absolute correlations.

    The mean codes of latents that are not in use hardly vary, but they may correlate: pairs with such a latent are
    made of what is left when those in use are matched.

    Parameters
    ----------
    one, other
        mean codes (n, D) and (n, E) of the same observations.
    used, other_used
        which latents are in use, (D,) and (E,); by default all.

    Returns
    -------
    list
        {"one", "other", "correlation"}, by falling absolute correlation; min(D, E) of them.

    Examples
    --------
    >>> codes = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    >>> pairs = match_latents(codes, -codes[:, ::-1])
    >>> sorted((pair["one"], pair["other"], round(pair["correlation"])) for pair in pairs)
    [(0, 1, -1), (1, 0, -1)]
    """
    correlation = _correlations(one, other)
    both = np.ones(correlation.shape, bool)
    if used is not None and other_used is not None:
        both = used[:, None] & other_used[None, :]
    rows, columns = linear_sum_assignment(-np.abs(correlation) * np.where(both, 1.0, _UNUSED))
    pairs = [
        {"one": int(row), "other": int(column), "correlation": float(correlation[row, column])}
        for row, column in zip(rows, columns, strict=True)
    ]
    return sorted(pairs, key=lambda pair: -abs(pair["correlation"]))


def _correlations(one: SingleArray, other: SingleArray) -> FloatArray:
    """Pearson's correlation of all pairs of columns; 0 where a column is constant."""
    standard = []
    for codes in (one, other):
        centred = codes.astype(np.float64) - codes.mean(axis=0, dtype=np.float64)
        norms = np.sqrt((centred**2).sum(axis=0))
        standard.append(np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 1e-12))
    return np.asarray(standard[0].T @ standard[1], np.float64)
