"""InfoMEC: modularity, compactness and explicitness in terms of information."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from unweave.arrays import FloatArray, IntArray
from unweave.metrics.information.mutual_information import entropy, mutual_information_matrix, varying_factors
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.metrics.solvers.standardise import standardise_samples
from unweave.parameters import Count, Seed


@register_metric("infomec", label="InfoMEC", takes="split", in_sample=True)
def infomec(
    train: Sample,
    test: Sample | None = None,
    *,
    discrete_latents: bool = False,
    num_neighbors: Count = 10,
    seed: Seed = 0,
) -> Score:
    """InfoM (the value), InfoC and InfoE: modularity, compactness and explicitness in terms of information.

    With N_dk = I(z_d; v_k) / H(v_k) over active latents d, K factors and D active latents:
    InfoM = (mean over d of max_k N_dk / sum_k N_dk - 1/K) / (1 - 1/K),
    InfoC = (mean over k of max_d N_dk / sum_d N_dk - 1/D) / (1 - 1/D),
    InfoE = mean over k of 1 - (log loss of a logistic regression from all latents) / log(values of v_k).

    I is the estimate of Ross (2014), after standardising and with noise of 1e-10 to break ties, as scikit-learn's
    ``mutual_info_classif``. A latent is active if its range exceeds 1/20 of the largest range (0 if discrete), so
    the scores depend on the scale of each latent. The regression has no penalty, balanced classes and 100 steps
    of L-BFGS, as in the authors' program; where classes can be separated, the number of steps decides how near to
    1 InfoE comes. Its log loss is that of the points to judge on. The authors take those that it learned from, where D
    latents of noise reach 1 if there are few points; on other points it is below 0 where predictions are worse than
    guessing. InfoM and InfoC are of the points to learn from.

    A latent (factor) without information counts as undecided, 1/K (1/D). With one factor InfoM is 1. With one
    active latent InfoC is nan, as it is without any (all latents constant), when InfoM is 0. Factor values seen
    once are ignored by the estimate of I. Under 2 points, or if no factor varies: ArgumentError.

    Parameters
    ----------
    discrete_latents
        take latents for categories and count frequencies.
    num_neighbors
        the number of neighbours in the estimate of I.

    Returns
    -------
    Score
        ``details``: ``infom``, ``infoc``, ``infoe``; ``matrix`` (D, K) N of all latents, which the noise of the
        estimate may carry past 1; ``active`` (D,) bool; ``per_factor`` (K,) InfoE's terms, nan if excluded;
        ``excluded``, the factors with one value only, left out everywhere; ``converged`` (K,) bool.

    References
    ----------
    Hsu et al., "Disentanglement via latent quantization", 2023.

    Examples
    --------
    >>> factors = np.random.default_rng(0).integers(0, 3, (300, 2))
    >>> score = uw.metrics.infomec(factors, factors, discrete_latents=True)
    >>> {name: round(score.details[name], 1) for name in ("infom", "infoc", "infoe")}
    {'infom': 1.0, 'infoc': 1.0, 'infoe': 1.0}
    """
    test = train if test is None else test
    varying = varying_factors(train)
    codes = train.codes
    labels = np.stack([np.unique(v, return_inverse=True)[1] for v in train.factors[:, varying].T], axis=1)
    ranges = np.ptp(codes, axis=0)
    if discrete_latents:
        categories = np.stack([np.unique(z, return_inverse=True)[1] for z in codes.T], axis=1)
        information = mutual_information_matrix(categories, labels)
        encoder = _one_hot().fit(codes)
        active, inputs, judged = ranges > 0, encoder.transform(codes), encoder.transform(test.codes)
    else:
        inputs, judged = (part.codes for part in standardise_samples(train, test))
        information = _neighbour_information(inputs, labels, num_neighbors, seed)
        active = ranges > ranges.max() / 20
    matrix = np.zeros((codes.shape[1], len(varying)))
    matrix[:, varying] = information / entropy(labels)
    kept = matrix[active][:, varying]
    infom = _above_chance(_shares(kept), chance=1 / kept.shape[1]) if active.any() else 0.0
    infoc = _above_chance(_shares(kept.T), chance=1 / len(kept)) if len(kept) > 1 else float("nan")
    per_factor, converged = np.full(len(varying), np.nan), np.ones(len(varying), dtype=bool)
    for k, values in zip(np.flatnonzero(varying), labels.T, strict=True):
        known = np.unique(train.factors[:, k])
        loss, converged[k] = _prediction_loss(inputs, values, judged, _positions(test.factors[:, k], known))
        per_factor[k] = 1.0 - loss / np.log(values.max() + 1)
    details = {
        "infom": infom,
        "infoc": infoc,
        "infoe": float(per_factor[varying].mean()),
        "matrix": matrix,
        "active": active,
        "per_factor": per_factor,
        "excluded": np.flatnonzero(~varying),
        "converged": converged,
    }
    params = {"discrete_latents": discrete_latents, "num_neighbors": num_neighbors, "seed": seed}
    return Score(infom, details, params)


def ross_information(code: FloatArray, labels: IntArray, num_neighbors: int) -> float:
    """I(code; labels) in nats by nearest neighbours (Ross, 2014), for one continuous code (n,).

    psi(n) + mean psi(k) - mean psi(n_label) - mean psi(m), where m counts the points (itself included) nearer
    than the k-th neighbour of the same label. IntArray seen once are left out. Never below 0.
    """
    from scipy.special import digamma

    counts = np.bincount(labels)
    seen_twice = counts[labels] > 1
    code, labels = code[seen_twice], labels[seen_twice]
    if len(code) == 0:
        return 0.0
    order = np.lexsort((code, labels))
    code, labels = code[order], labels[order]
    sizes = counts[labels]
    neighbours = np.minimum(num_neighbors, sizes - 1)
    radius = np.nextafter(_kth_distance(code, labels, neighbours), 0)
    nearer = _count_within(code, radius)
    terms = digamma(neighbours) - digamma(sizes) - digamma(nearer)
    return float(max(0.0, digamma(len(code)) + terms.mean()))


def _kth_distance(code: FloatArray, labels: IntArray, neighbours: IntArray) -> FloatArray:
    """Distance to the k-th neighbour of the same label; points are sorted by label, then by code.

    The k nearest are k of the points around: a to the left and k - a to the right, for the best a.
    """
    position, last = np.arange(len(code)), len(code) - 1
    distance = np.full(len(code), np.inf)
    for a in range(int(neighbours.max()) + 1):
        left, right = position - a, position + neighbours - a
        inside = (left >= 0) & (right <= last) & (a <= neighbours)
        left, right = np.maximum(left, 0), np.clip(right, 0, last)
        inside &= (labels[left] == labels) & (labels[right] == labels)
        reach = np.maximum(code - code[left], code[right] - code)
        distance = np.where(inside, np.minimum(distance, reach), distance)
    return distance


def _count_within(code: FloatArray, radius: FloatArray) -> IntArray:
    """How many points lie within each point's radius, itself included; exact also next to the rim."""
    ordered = np.sort(code)
    padded = np.concatenate([[-np.inf], ordered, [np.inf]])
    first = np.searchsorted(ordered, code - radius, side="left")
    first = first - (code - padded[first] <= radius) + (code - padded[first + 1] > radius)
    end = np.searchsorted(ordered, code + radius, side="right")
    end = end + (padded[end + 1] - code <= radius) - (padded[end] - code > radius)
    within: IntArray = end - first
    return within


def _neighbour_information(codes: FloatArray, labels: IntArray, num_neighbors: int, seed: int) -> FloatArray:
    # The authors' order of draws: factors outside, latents inside, so that a seed gives their numbers.
    random = np.random.RandomState(seed)
    information = np.empty((codes.shape[1], labels.shape[1]))
    for k in range(labels.shape[1]):
        for d in range(codes.shape[1]):
            noisy = codes[:, d] + 1e-10 * random.standard_normal(len(codes))
            information[d, k] = ross_information(noisy, labels[:, k], num_neighbors)
    return information


def _one_hot() -> Any:
    from sklearn.preprocessing import OneHotEncoder

    return OneHotEncoder(
        categories="auto",
        drop=None,
        sparse_output=True,
        dtype=np.float64,
        handle_unknown="ignore",
        min_frequency=None,
        max_categories=None,
    )


def _positions(values: IntArray, known: IntArray) -> IntArray:
    """Where each of the values stands among the known ones, which are sorted; -1 where it does not."""
    position = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[position] == values, position, -1)


def _prediction_loss(inputs: Any, labels: IntArray, judged: Any, truth: IntArray) -> tuple[float, bool]:
    """The log loss of ``truth`` given ``judged``, of what was learned from the others, and whether that converged.

    A value that there was nothing to learn of, -1, has the probability 0, which counts as rounding.
    """
    from sklearn.exceptions import ConvergenceWarning

    from unweave.metrics.solvers.logistic_regression import logistic_regression, one_thread

    model = logistic_regression("lbfgs", C=np.inf, max_iter=100, class_weight="balanced")
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(inputs, labels)
        probabilities = model.predict_proba(judged)
    rounding = np.finfo(probabilities.dtype).eps
    chosen = np.where(truth < 0, 0.0, probabilities[np.arange(len(truth)), truth])
    loss = -np.log(np.clip(chosen, rounding, 1 - rounding)).mean()
    return float(loss), bool(model.n_iter_.max() < 100)


def _shares(matrix: FloatArray) -> FloatArray:
    """The part of each row's sum that lies in its largest entry; 1/K for a row of zeros."""
    total, largest = matrix.sum(axis=1), matrix.max(axis=1)
    shares: FloatArray = np.where(total > 0, largest / np.where(total > 0, total, 1.0), 1 / matrix.shape[1])
    return shares


def _above_chance(shares: FloatArray, chance: float) -> float:
    return 1.0 if chance == 1 else float((shares.mean() - chance) / (1 - chance))
