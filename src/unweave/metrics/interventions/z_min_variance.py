"""The Z-min variance metric: the FactorVAE metric on a scale from chance to certainty."""

from __future__ import annotations

from unweave.metrics.interventions.factor_vae import AtLeastTwo, Prune, factor_vae
from unweave.metrics.interventions.votes import Interventions, RowInterventions
from unweave.metrics.registry import register_metric
from unweave.metrics.result import Score
from unweave.parameters import Count, NonNegative, Seed


@register_metric(
    "z_min_variance",
    label="Z-min variance",
    takes="interventions",
    factors="two",
    sizes=("num_train", "num_eval", "num_variance_estimate"),
    images=lambda params: params["batch_size"] * (params["num_train"] + params["num_eval"]),
)
def z_min_variance(
    representation: Interventions | RowInterventions,
    *,
    seed: Seed = 0,
    batch_size: AtLeastTwo = 200,
    num_train: Count = 800,
    num_eval: Count = 800,
    num_variance_estimate: AtLeastTwo = 10_000,
    prune: Prune = "std",
    threshold: NonNegative = 0.05,
) -> Score:
    """The FactorVAE metric on a scale from chance, 0, to certainty, 1.

    (a - 1/K) / (1 - 1/K) with a the accuracy of :func:`~unweave.metrics.factor_vae` for the K factors with more
    than one value, under the name, the scale and the sizes of Carbonneau et al. Guessing scores about 0 (a little
    below is possible). No active code: 0.

    Their code fixes each value of a factor equally often and empties the rows that have it before any comes
    again; here a held value is as frequent as in the data and rows are drawn with replacement.

    Parameters
    ----------
    batch_size
        the number of images of a vote.
    num_train, num_eval
        the numbers of votes to learn from and to judge on.
    num_variance_estimate
        the number of images for the variance of each code.
    prune, threshold
        which codes are left out, as in :func:`~unweave.metrics.factor_vae`.

    Returns
    -------
    Score
        ``details`` are those of the FactorVAE metric, with both accuracies as they are before scaling.

    References
    ----------
    Kim & Mnih, "Disentangling by factorising", 2018; Carbonneau et al., "Measuring disentanglement: a review of
    metrics", 2022.

    Examples
    --------
    >>> factors = np.random.default_rng(0).integers(0, 4, (500, 2))
    >>> uw.metrics.z_min_variance(factors, factors, num_train=100, num_eval=50)
    z_min_variance = 1
    """
    score = factor_vae.compute(
        representation,
        seed=seed,
        batch_size=batch_size,
        num_train=num_train,
        num_eval=num_eval,
        num_variance_estimate=num_variance_estimate,
        prune=prune,
        threshold=threshold,
    )
    if score.details["num_active"] == 0:
        return score
    chance = 1 / (score.details["matrix"].shape[1] - len(score.details["excluded"]))
    return Score((score.value - chance) / (1 - chance), score.details, score.params)
