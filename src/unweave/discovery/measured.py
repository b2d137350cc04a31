"""What a trained run does with the photographs: their codes, which latents it uses, and how well it draws new ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import BoolArray, ByteArray, FloatArray, IntArray
from unweave.training.run import Run

USED_KL = 0.05  # nats per photograph, below which a latent is noise
REAL = 3.0  # standard errors by which drawings must beat the mean photograph
LEAST_EXPLAINED = 0.02
LEAST_SHARE = 0.003  # of the variation that a latent must draw to matter
_AT_A_TIME = 256
_COMPARED = 600  # photographs in the test of free combination
_COMPONENTS = 15


@dataclass(frozen=True)
class Measured:
    """The codes of all photographs by one run, and what the run is worth on photographs that it never saw.

    Parameters
    ----------
    mean, deviation
        of q(z|x), (n, D) each.
    kl
        (D,) mean KL of each latent on unseen photographs, in nats.
    used
        (D,) which latents are used: those with a KL above 0.05 nats, without which the drawings lose at least 0.3 % of
        the variation.
    errors
        (n,) the sum of squared errors of each photograph's drawing, pixels in [0, 1].
    explained
        the part of the variation of unseen photographs that the drawings have: 1 - errors / errors of the mean one.
    standard_error
        of ``explained``, over photographs.
    shares
        (D,) how much of it is lost without each latent.
    """

    mean: FloatArray
    deviation: FloatArray
    kl: FloatArray
    used: BoolArray
    errors: FloatArray
    explained: float
    standard_error: float
    shares: FloatArray

    @property
    def draws_new_photographs(self) -> bool:
        """Whether unseen photographs are drawn better than by the mean one, beyond doubt."""
        return self.explained > max(REAL * self.standard_error, LEAST_EXPLAINED)


def measure(run: Run, images: ByteArray, seen: IntArray, unseen: IntArray) -> Measured:
    """Encode all photographs (n, H, W, C) with a run that learned from the rows ``seen``; judge it on ``unseen``."""
    mean, log_variance = (np.asarray(array, np.float64) for array in run.posterior(images))
    kl = 0.5 * (mean[unseen] ** 2 + np.exp(log_variance[unseen]) - log_variance[unseen] - 1).mean(axis=0)
    errors = _errors(run, images, mean)
    average = np.mean(images[seen], axis=0, dtype=np.float64) / 255
    baseline = ((images[unseen] / 255 - average) ** 2).reshape(len(unseen), -1).sum(axis=1)
    total = max(float(baseline.sum()), 1e-12)
    gains = baseline - errors[unseen]
    shares = np.zeros(mean.shape[1])
    for latent in np.flatnonzero(kl > USED_KL):
        without = mean[unseen].copy()
        without[:, latent] = mean[seen, latent].mean()
        shares[latent] = (_errors(run, images[unseen], without) - errors[unseen]).sum() / total
    spread = float(gains.std(ddof=1)) * np.sqrt(len(gains)) / total if len(gains) > 1 else np.inf
    return Measured(
        mean,
        np.exp(0.5 * log_variance),
        kl,
        (kl > USED_KL) & (shares >= LEAST_SHARE),
        errors,
        float(gains.sum() / total),
        float(spread),
        shares,
    )


def free_combination(run: Run, measured: Measured, rows: IntArray, seed: int = 0) -> float:
    """How often drawings of shuffled codes are distinguished from drawings of real ones: 0.5 never, 1 always.

    Each latent is permuted over photographs by itself and the result is drawn. If the latents vary independently, these
    drawings are like those of real photographs. The idea is that of PIPE (Estermann & Wattenhofer 2023); here the
    judge is a logistic regression on principal components and their squares, cross-validated, instead of a network.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(seed)
    rows = rows if len(rows) <= _COMPARED else rng.choice(rows, _COMPARED, replace=False)
    if len(rows) < 10 or measured.used.sum() < 2:
        return 0.5
    # Real and shuffled codes are of different photographs: a judge cannot remember marginals pair by pair.
    half = len(rows) // 2
    real, other = measured.mean[rows[:half]], measured.mean[rows[half:]]
    drawings = run.decode(np.concatenate([real, rng.permuted(other, axis=0)]))
    points = drawings.reshape(len(drawings), -1).astype(np.float64)
    points -= points.mean(axis=0)
    left, values, _ = np.linalg.svd(points, full_matrices=False)
    kept = min(_COMPONENTS, half // 4 + 1)
    scores = left[:, :kept] * values[:kept]
    features = np.concatenate([scores, scores**2], axis=1)
    answers = np.arange(len(features)) >= half
    judge = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2_000))
    return float(max(0.5, cross_val_score(judge, features, answers, cv=4).mean()))


def noise_in_unused(run: Run, measured: Measured, rows: IntArray, seed: int = 0) -> float:
    """The part of the variation of drawings that noise in the unused latents causes: 0 where they are truly unused."""
    rows = rows[:_COMPARED]
    if measured.used.all() or len(rows) < 2:
        return 0.0
    codes = measured.mean[rows]
    noisy = codes.copy()
    rng = np.random.default_rng(seed)
    noisy[:, ~measured.used] = rng.standard_normal((len(rows), int((~measured.used).sum())))
    drawn, disturbed = (run.decode(each).reshape(len(rows), -1) for each in (codes, noisy))
    variation = float(drawn.var(axis=0).sum())
    return float(((drawn - disturbed) ** 2).sum(axis=1).mean()) / max(variation, 1e-12)


def _errors(run: Run, images: ByteArray, codes: FloatArray) -> FloatArray:
    """The sum of squared errors of each image drawn from its code."""
    errors = np.empty(len(codes))
    for start in range(0, len(codes), _AT_A_TIME):
        block = slice(start, start + _AT_A_TIME)
        difference = run.decode(codes[block]) - images[block] / 255
        errors[block] = (difference**2).reshape(len(difference), -1).sum(axis=1)
    return errors
