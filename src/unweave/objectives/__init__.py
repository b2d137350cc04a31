"""Objectives: pure functions on tensors, the terms from which methods compose their losses.

A function here knows no network and no data set. Shapes: n samples, D latents, images (n, …).
The likelihoods of images are called through their module, as in ``reconstruction.bernoulli``:
the name ``gaussian`` belongs to the module of the encoder's Gaussian.
"""

from unweave.objectives import (
    capacity,
    gaussian,
    kl,
    labels,
    moment_matching,
    reconstruction,
    total_correlation,
)
from unweave.objectives.capacity import capacity_penalty, linear_capacity
from unweave.objectives.gaussian import (
    correlated_log_density,
    log_density,
    reparameterise,
    standard_noise,
)
from unweave.objectives.kl import correlation_constant, kl_between, kl_to_standard_normal
from unweave.objectives.labels import (
    categorical_entropy,
    gaussian_entropy,
    gumbel_noise,
    match_loss,
    straight_through,
)
from unweave.objectives.moment_matching import (
    covariance,
    dip_i_covariance,
    dip_ii_covariance,
    dip_penalty,
    third_central_moments,
    third_moment_penalty,
)
from unweave.objectives.total_correlation import (
    aggregate_log_densities,
    density_ratio,
    discriminator_loss,
    minibatch_logsumexp,
    minibatch_stratified,
    minibatch_weighted,
    permute_dimensions,
    stratified_log_weights,
)

__all__ = [
    "aggregate_log_densities",
    "capacity",
    "capacity_penalty",
    "categorical_entropy",
    "correlated_log_density",
    "correlation_constant",
    "covariance",
    "density_ratio",
    "dip_i_covariance",
    "dip_ii_covariance",
    "dip_penalty",
    "discriminator_loss",
    "gaussian",
    "gaussian_entropy",
    "gumbel_noise",
    "kl",
    "kl_between",
    "kl_to_standard_normal",
    "labels",
    "linear_capacity",
    "log_density",
    "match_loss",
    "minibatch_logsumexp",
    "minibatch_stratified",
    "minibatch_weighted",
    "moment_matching",
    "permute_dimensions",
    "reconstruction",
    "reparameterise",
    "standard_noise",
    "straight_through",
    "stratified_log_weights",
    "third_central_moments",
    "third_moment_penalty",
    "total_correlation",
]
