"""Attribute classification (Kumar et al., 2018, section 4 and table 2)."""

from __future__ import annotations

import numpy as np

from unweave.arrays import BoolArray, FloatArray
from unweave.errors import ArgumentError
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.metrics.sample import Sample
from unweave.parameters import Seed


@register_metric(
    "attribute_classification",
    label="Attribute classification",
    takes="split",
    factors="binary",
    rows=lambda score, factors: dict(zip(factors, map(float, score.details["per_factor"]), strict=True)),
)
def attribute_classification(train: Sample, test: Sample, *, seed: Seed = 0) -> Score:
    """Mean accuracy on test points of one linear classifier per binary factor (attribute).

    Its weights are the attribute vector, w_k = mean of the codes with y_k = 1 - mean of the codes with y_k = 0.
    Only the bias is learned: b_k minimises the hinge loss sum_i max(0, 1 - s_i (w_k z_i + b_k)), s_i = 1 or -1,
    with no penalty; where an interval of biases does, its middle. y_k = 1 is predicted where w_k z + b_k > 0.

    Of two values the larger is y = 1. An attribute with one value among the points to learn from is always
    predicted to have it (its vector and bias are 0). Factors with more values raise an error. Nothing is drawn:
    ``seed`` only splits the points.

    Returns
    -------
    Score
        ``details``: ``per_factor`` (K,), ``per_factor_train`` (K,), ``vectors`` (D, K), ``biases`` (K,).

    References
    ----------
    Kumar et al., "Variational inference of disentangled latent concepts from unlabeled observations", 2018, section 4
    and table 2.

    Examples
    --------
    >>> attributes = np.random.default_rng(0).integers(0, 2, (300, 2))
    >>> uw.metrics.attribute_classification(10 * attributes, attributes)
    attribute_classification = 1
    """
    latents, attributes = train.codes.shape[1], train.factors.shape[1]
    vectors, biases, accuracy = (
        np.zeros((latents, attributes)),
        np.zeros(attributes),
        np.zeros((2, attributes)),
    )
    for k in range(attributes):
        values, labels = np.unique(train.factors[:, k], return_inverse=True)
        if len(values) > 2:
            raise ArgumentError("factors", f"{len(values)} values in column {k}", "attributes need at most 2")
        positive = labels == 1
        if len(values) == 2:
            vectors[:, k] = train.codes[positive].mean(axis=0) - train.codes[~positive].mean(axis=0)
            biases[k] = hinge_bias(train.codes @ vectors[:, k], positive)
        for side, sample in enumerate((train, test)):
            above = sample.codes @ vectors[:, k] + biases[k] > 0
            predicted = values[above.astype(np.int64)] if len(values) == 2 else values[0]
            accuracy[side, k] = np.mean(predicted == sample.factors[:, k])
    return Score(
        float(accuracy[1].mean()),
        {"per_factor": accuracy[1], "per_factor_train": accuracy[0], "vectors": vectors, "biases": biases},
        {"seed": seed},
    )


def hinge_bias(x: FloatArray, positive: BoolArray) -> float:
    """The b that minimises the sum of max(0, 1 - x - b) over positive and max(0, 1 + x + b) over other points.

    The loss falls with slope -P, P the number of positive points, until b passes 1 - x of a positive or -1 - x of
    another point; each adds 1 to the slope. So it is lowest between the P-th and the next of these values.
    """
    bends = np.sort(np.where(positive, 1.0 - x, -1.0 - x))
    count = int(positive.sum())
    return float((bends[count - 1] + bends[count]) / 2)
