"""DCI-ES: explicitness by loss-capacity curves, and size (Eastwood et al., 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from unweave.arrays import FloatArray
from unweave.errors import ArgumentError
from unweave.metrics.predictors.dci import completeness, disentanglement
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.parameters import Count, Seed


@register_metric("dci_es", label="DCI-ES", takes="split")
def dci_es(
    train: Sample,
    test: Sample,
    *,
    depths: Sequence[Count] = (1, 2, 3, 4, 8, 10, 12, 14, 16, 18, 20, 32),
    trees: Count = 10,
    seed: Seed = 0,
) -> Score:
    """Explicitness (the value): how little capacity is enough to read each factor from the codes; and size.

    E_j = 1 - 2 A_j / (b_j (c_max - c_min)), A_j the area between the loss-capacity curve and its lowest loss, b_j
    the loss of guessing; E is the mean over factors. 1 if the weakest probe does as well as the strongest, 0 for
    a straight decline from guessing to no loss, -1 if only the strongest is of use. Codes without information
    have a flat curve too: read E together with the informativeness.

    As in the paper's code, probes of capacity c are random forests of depth c, the loss is 1 - accuracy on test
    points or, where lower, that of a weaker probe, and b_j = 1 - 1 / (number of values). Every factor is a
    category. A factor with one value has E_j = 1.

    Parameters
    ----------
    depths
        the capacities, rising.
    trees
        the number of trees of a forest; the paper has 100.

    Returns
    -------
    Score
        ``details``: ``explicitness``; ``disentanglement``, ``completeness`` and ``informativeness`` (mean
        accuracy) of the probe that is most informative; ``size`` = factors / codes; ``per_factor`` (E_j),
        ``losses`` (depths, K) before the running minimum, ``matrix`` (importances of that probe).

    References
    ----------
    Eastwood et al., "DCI-ES: an extended disentanglement framework with connections to identifiability", 2023.

    Examples
    --------
    >>> factors = np.random.default_rng(0).integers(0, 2, (60, 2))
    >>> uw.metrics.dci_es(factors, factors, depths=(1, 2), trees=2).details["size"]
    1.0
    """
    from unweave.metrics.solvers.boosted_trees import single_precision

    steps = list(depths)
    if len(steps) < 2 or any(a >= b for a, b in pairwise(steps)):
        raise ArgumentError("depths", tuple(depths), "needs two or more rising depths from 1")
    single_precision(np.concatenate([train.codes, test.codes]))  # refuses what trees cannot take
    latents, factors = train.codes.shape[1], train.factors.shape[1]
    losses = np.zeros((len(steps), factors))
    importances = np.zeros((len(steps), latents, factors))
    for row, depth in enumerate(steps):
        for j in range(factors):
            model = _forest(depth, trees, seed).fit(train.codes, train.factors[:, j])
            losses[row, j] = 1 - np.mean(model.predict(test.codes) == test.factors[:, j])
            importances[row, :, j] = model.feature_importances_
    guessing = np.array([1 - 1 / len(np.unique(column)) for column in train.factors.T])
    per_factor = explicitness_of_curves(np.array(steps, dtype=np.float64), losses, guessing)
    best = int(np.argmin(losses.mean(axis=1)))
    return Score(
        float(per_factor.mean()),
        {
            "explicitness": float(per_factor.mean()),
            "disentanglement": disentanglement(importances[best]),
            "completeness": completeness(importances[best]),
            "informativeness": float(1 - losses[best].mean()),
            "size": factors / latents,
            "per_factor": per_factor,
            "losses": losses,
            "matrix": importances[best],
        },
        {"depths": tuple(steps), "trees": trees, "seed": seed},
    )


def explicitness_of_curves(capacities: FloatArray, losses: FloatArray, guessing: FloatArray) -> FloatArray:
    """E_j of each column of ``losses`` (C, K) at rising ``capacities`` (C,); 1 where ``guessing`` (K,) has no loss."""
    reached = np.minimum.accumulate(losses, axis=0)
    excess = reached - reached[-1]
    area = ((excess[1:] + excess[:-1]) / 2 * np.diff(capacities)[:, None]).sum(axis=0)
    whole = guessing * (capacities[-1] - capacities[0])
    result: FloatArray = 1 - 2 * np.divide(area, whole, out=np.zeros_like(area), where=whole > 0)
    return result


def _forest(depth: int, trees: int, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(
        n_estimators=trees,
        criterion="gini",
        max_depth=depth,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features="sqrt",
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=True,
        oob_score=False,
        n_jobs=None,
        random_state=seed,
        verbose=0,
        warm_start=False,
        class_weight=None,
        ccp_alpha=0.0,
        max_samples=None,
    )
