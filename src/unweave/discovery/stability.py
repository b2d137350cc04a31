"""Do models that were trained anew agree on their axes, more than axes turned at random would?

Seeds that find the same space but each turn it differently agree on no factor. With two latents, axes turned at random
still correlate by 0.9 on average with the nearest axis of another seed, so a correlation alone says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unweave.arrays import BoolArray, FloatArray, IntArray
from unweave.errors import ArgumentError
from unweave.metrics.predictors.mcc import correlation_matrix

ROTATIONS = 500


@dataclass(frozen=True)
class AxisStability:
    """How the latents (D,) of one model agree with those of others.

    Parameters
    ----------
    agreement
        mean over the other models of the |correlation| with the latent that it is matched to; 0 for an unused one.
    expected
        the mean of that if the other models' axes were turned at random.
    p
        the probability that the best agreement of all latents is as high by a random turn: corrected for their number.
    partners
        (M - 1, D) the matched latent in each other model; -1 for none.
    """

    agreement: FloatArray
    expected: FloatArray
    p: FloatArray
    partners: IntArray

    @property
    def beyond_chance(self) -> FloatArray:
        """0 where axes turned at random agree as well, 1 where agreement is perfect (D,)."""
        room = np.maximum(1.0 - self.expected, 1e-9)
        return np.clip((self.agreement - self.expected) / room, 0.0, 1.0) * (self.agreement > 0)


def axis_stability(
    codes: Sequence[FloatArray],
    used: Sequence[BoolArray],
    reference: int = 0,
    *,
    rotations: int = ROTATIONS,
    seed: int = 0,
) -> AxisStability:
    """Compare the axes of one model with those of others on the same images, against random rotations.

    The used latents of each other model are whitened symmetrically, which keeps its axes, and each latent of the
    reference is matched to one of them (Hungarian, by |correlation|). The same is repeated with a random orthogonal
    matrix applied to each other model's whitened latents: the same space with other axes. A model with a single used
    latent has no other axes; its images are permuted instead.

    Parameters
    ----------
    codes
        (n, D) of each model.
    used
        (D,) for each model: which latents are used.
    reference
        the index of the model whose latents are judged.
    rotations
        how many random turns; p is at least 1 / (rotations + 1).
    seed
        of these.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sources = rng.uniform(size=(400, 3))
    >>> noisy = [sources[:, order] + 0.02 * rng.normal(size=(400, 3)) for order in ([0, 1, 2], [2, 0, 1], [1, 0, 2])]
    >>> used = [np.ones(3, bool)] * 3
    >>> bool((axis_stability(noisy, used).p < 0.05).all())
    True
    >>> turned = [sources @ np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(3)]
    >>> bool((axis_stability(turned, used).p < 0.05).any())
    False
    """
    if len(codes) < 2 or len(codes) != len(used):
        raise ArgumentError("codes", f"{len(codes)} models", "needs two or more, each with its used latents")
    rng = np.random.default_rng(seed)
    size = codes[reference].shape[1]
    mine = np.flatnonzero(used[reference])
    others = [index for index in range(len(codes)) if index != reference]
    agreement, expected, p = np.zeros(size), np.zeros(size), np.ones(size)
    partners = np.full((len(others), size), -1, dtype=np.int64)
    if len(mine) == 0 or len(codes[reference]) < 3:
        return AxisStability(agreement, expected, p, partners)
    target = codes[reference][:, mine]
    whitened = [_whiten(codes[index][:, used[index]]) for index in others]
    observed = np.zeros(len(mine))
    for row, (index, white) in enumerate(zip(others, whitened, strict=True)):
        values, columns = _match(_correlations(target, white))
        observed += values / len(others)
        has_partner = columns >= 0
        partners[row, mine[has_partner]] = np.flatnonzero(used[index])[columns[has_partner]]
    by_chance = np.zeros((rotations, len(mine)))
    for white in whitened:
        baseline = _correlations(target, white)
        for turn in range(rotations):
            if white.shape[1] != 1:
                matrix = baseline @ _random_rotation(white.shape[1], rng)
            else:
                matrix = _correlations(target, white[rng.permutation(len(white))])
            by_chance[turn] += _match(matrix)[0] / len(others)
    agreement[mine], expected[mine] = observed, by_chance.mean(axis=0)
    best = by_chance.max(axis=1)
    p[mine] = (1 + (best[:, None] >= observed[None, :] - 1e-12).sum(axis=0)) / (rotations + 1)
    return AxisStability(agreement, expected, p, partners)


def _correlations(first: FloatArray, second: FloatArray) -> FloatArray:
    return correlation_matrix(first, second, "pearson")


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


def _random_rotation(size: int, rng: np.random.Generator) -> FloatArray:
    """An orthogonal matrix, uniformly distributed: QR with the signs of R's diagonal (Mezzadri 2007)."""
    q, r = np.linalg.qr(rng.standard_normal((size, size)))
    rotation: FloatArray = q * np.sign(np.diag(r))
    return rotation
