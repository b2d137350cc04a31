"""Do models that were trained anew agree on their axes, more than axes turned at random would?

Seeds that find the same space but each turn it differently agree on no factor. With two latents, axes turned at random
still correlate by 0.9 on average with the nearest axis of another seed, so a correlation alone says nothing. Nor does
it help that all latents together agree better than chance: two of them may be turned while the others are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from unweave.arrays import BoolArray, FloatArray, IntArray
from unweave.errors import ArgumentError
from unweave.metrics.predictors.mcc import correlation_matrix

EXPECTED_PURITY = 0.5 + 1 / np.pi  # the mean of cos² of an angle between -45 and 45 degrees
_DRAWS = 100_000  # of angles; p is at least one of so many
_PERMUTATIONS = 999


@dataclass(frozen=True)
class AxisStability:
    """How the latents (D,) of one model agree with those of others.

    Parameters
    ----------
    agreement
        mean over the other models of the |correlation| with the latent that it is matched to; 0 for an unused one.
    purity
        mean over the other models of the part of what their latents together tell about this one that the matched
        latent tells alone: 1 if it is the same axis, 0.82 on average for two latents that are turned at random.
    p
        the probability of such a purity for any latent, if every latent that is not the same axis in all models is
        turned at random together with at least one other; corrected for the number of latents, and for the choice of
        the reference among the models.
    partners
        (M - 1, D) the matched latent in each other model; -1 for none.
    """

    agreement: FloatArray
    purity: FloatArray
    p: FloatArray
    partners: IntArray

    @property
    def beyond_chance(self) -> FloatArray:
        """1 where agreement is perfect, 0 on average for two latents turned at random, below it for more (D,).

        A single latent cannot be turned: that it came back says nothing of axes, and it has 0.
        """
        return _beyond_chance(self.agreement, self.purity)


def axis_stability(
    codes: Sequence[FloatArray], used: Sequence[BoolArray], reference: int = 0, *, seed: int = 0
) -> AxisStability:
    r"""Compare the axes of one model with those of others on the same images, against axes turned at random.

    The used latents of each other model are whitened symmetrically, which keeps its axes, and each latent of the
    reference is matched to one of them (Hungarian, by |correlation|). As whitened latents are uncorrelated, the squares
    of their correlations with a latent sum to the :math:`R^2` of all; the matched one's part of it is
    :math:`\cos^2` of the angle between the two axes, whatever noise there is besides. The mean over the other models
    is compared with that of a pair of latents which every model turns by an angle of its own, uniformly distributed:
    of all subspaces without axes of their own those of two dimensions come nearest to agreement by chance. The best of
    all choices of a reference counts, as the reference may be chosen by its agreement. Latents without axes come in
    sets of two or more, so Holm's correction is by half the number of latents. A single latent cannot be turned; its
    images are permuted instead.

    Parameters
    ----------
    codes
        (n, D) of each model.
    used
        (D,) for each model: which latents are used.
    reference
        the index of the model whose latents are judged.
    seed
        of permutations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sources = rng.uniform(size=(400, 3))
    >>> orders = [0, 1, 2], [2, 0, 1], [1, 0, 2], [0, 2, 1], [2, 1, 0]
    >>> noisy = [sources[:, order] + 0.02 * rng.normal(size=(400, 3)) for order in orders]
    >>> used = [np.ones(3, bool)] * 5
    >>> bool((axis_stability(noisy, used).p < 0.05).all())
    True
    >>> turned = [sources @ np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(5)]
    >>> bool((axis_stability(turned, used).p < 0.05).any())
    False
    """
    if len(codes) < 2 or len(codes) != len(used):
        raise ArgumentError("codes", f"{len(codes)} models", "needs two or more, each with its used latents")
    size = codes[reference].shape[1]
    mine = np.flatnonzero(used[reference])
    others = [index for index in range(len(codes)) if index != reference]
    agreement, purity, p = np.zeros(size), np.zeros(size), np.ones(size)
    partners = np.full((len(others), size), -1, dtype=np.int64)
    if len(mine) == 0 or len(codes[reference]) < 3:
        return AxisStability(agreement, purity, p, partners)
    target = codes[reference][:, mine]
    for row, index in enumerate(others):
        values, shares, columns = _compare(target, _whiten(codes[index][:, used[index]]))
        agreement[mine] += values / len(others)
        purity[mine] += shares / len(others)
        has_partner = columns >= 0
        partners[row, mine[has_partner]] = np.flatnonzero(used[index])[columns[has_partner]]
    if len(mine) == 1:
        p[mine] = _p_of_single(
            target, [codes[index][:, used[index]] for index in others], agreement[mine[0]], seed
        )
    else:
        p[mine] = _holm(_p_of_purity(purity[mine], len(codes)))
    return AxisStability(agreement, purity, p, partners)


def error_of_reproduced(codes: Sequence[FloatArray], used: Sequence[BoolArray]) -> float:
    """The standard error of how many axes came back, the mean over models of the sum of ``beyond_chance``.

    By the jackknife: each model is left out once. It is infinite for fewer than three models, or three images.

    Examples
    --------
    >>> sources = np.random.default_rng(0).uniform(size=(400, 3))
    >>> float(np.round(error_of_reproduced([sources] * 4, [np.ones(3, bool)] * 4), 6))
    0.0
    """
    models = len(codes)
    if models < 3 or len(codes[0]) < 3:
        return float("inf")
    pairs = np.zeros(
        (2, models, models, codes[0].shape[1])
    )  # agreement and purity of a reference and another
    for other in range(models):
        whitened = _whiten(codes[other][:, used[other]])
        for reference in range(models):
            mine = np.flatnonzero(used[reference])
            if reference != other and len(mine):
                values, shares, _ = _compare(codes[reference][:, mine], whitened)
                pairs[:, reference, other, mine] = values, shares
    without = []
    for out in range(models):
        kept = np.delete(np.arange(models), out)
        agreement, purity = pairs[:, kept][:, :, kept].sum(axis=2) / (models - 2)  # none with itself
        without.append(_beyond_chance(agreement, purity).sum(axis=1).mean())
    return float(np.sqrt((models - 1) * np.var(without)))


def _beyond_chance(agreement: FloatArray, purity: FloatArray) -> FloatArray:
    sharpness: FloatArray = (purity - EXPECTED_PURITY) / (1 - EXPECTED_PURITY)
    matched = agreement > 0
    can_be_turned = matched.sum(axis=-1, keepdims=True) > 1
    return np.where(matched & can_be_turned, np.maximum(sharpness, -1.0) * agreement, 0.0)


def _compare(target: FloatArray, whitened: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """For each latent (n, d) |correlation| with the other model's that it is matched to, its purity, and that one."""
    correlations = correlation_matrix(target, whitened, "pearson")
    values, columns = _match(correlations)
    return values, values**2 / np.maximum((correlations**2).sum(axis=1), 1e-12), columns


@cache
def _best_purities(models: int) -> FloatArray:
    """Sorted purities of the best reference among models that each turn the same two latents at random."""
    rng = np.random.default_rng(0)
    best = np.empty(_DRAWS)
    for start in range(0, _DRAWS, 10_000):
        angles = rng.uniform(0, np.pi / 2, (10_000, models))
        # The nearest axis is at most 45 degrees off: cos² = (1 + |cos 2a|) / 2.
        squares = 0.5 * (1 + np.abs(np.cos(2 * (angles[:, :, None] - angles[:, None, :]))))
        best[start : start + 10_000] = ((squares.sum(axis=2) - 1) / (models - 1)).max(axis=1)
    return np.sort(best)


def _p_of_purity(purity: FloatArray, models: int) -> FloatArray:
    """The probability of a purity as high by chance."""
    null = _best_purities(models)
    above = len(null) - np.searchsorted(null, purity - 1e-12)
    probability: FloatArray = (1 + above) / (len(null) + 1)
    return probability


def _holm(p: FloatArray) -> FloatArray:
    """Holm's correction for latents of which those without axes of their own come in sets of two or more."""
    order = np.argsort(p, kind="stable")
    sets = np.maximum(1, (len(p) - np.arange(len(p))) // 2)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * sets))
    return corrected


def _p_of_single(target: FloatArray, others: Sequence[FloatArray], observed: float, seed: int) -> float:
    """The probability of a mean |correlation| as high if the other models' images were in random order."""
    rng = np.random.default_rng(seed)
    by_chance = np.zeros(_PERMUTATIONS)
    for other in (_whiten(one) for one in others):
        for number in range(_PERMUTATIONS):
            shuffled = correlation_matrix(target, other[rng.permutation(len(other))], "pearson")
            by_chance[number] += _match(shuffled)[0][0] / len(others)
    return float((1 + (by_chance >= observed - 1e-12).sum()) / (_PERMUTATIONS + 1))


def _whiten(codes: FloatArray) -> FloatArray:
    """Codes (n, d) without correlations, as near to the given ones as that allows (ZCA of standardised codes)."""
    centred = codes - codes.mean(axis=0)
    deviation = centred.std(axis=0)
    standard = np.where(deviation > 0, centred / np.where(deviation > 0, deviation, 1.0), 0.0)
    values, vectors = np.linalg.eigh(standard.T @ standard / len(standard))
    scale = np.where(values > 1e-9, 1.0 / np.sqrt(np.maximum(values, 1e-9)), 0.0)
    whitened: FloatArray = standard @ (vectors * scale) @ vectors.T
    return whitened


def _match(correlations: FloatArray) -> tuple[FloatArray, IntArray]:
    """For each row |correlation| with the column that it is matched to, and that column; 0 and -1 for none."""
    from scipy.optimize import linear_sum_assignment

    strength = np.abs(correlations)
    values = np.zeros(len(strength))
    columns = np.full(len(strength), -1, dtype=np.int64)
    row, column = linear_sum_assignment(strength, maximize=True)
    values[row], columns[row] = strength[row, column], column
    return values, columns
