"""Estimates of the total correlation TC = E_q(z)[log q(z) - sum_d log q(z_d)] of the aggregate posterior.

q(z) = 1/N sum_n q(z|x_n) runs over the whole data set of N samples. The minibatch estimators
(Chen et al., 2018, "Isolating sources of disentanglement in variational autoencoders") replace it by a
weighted sum over the n samples of a batch,

    q(z_i) ~ sum_j W_ij q(z_i|x_j),

and likewise for each latent's own density; they differ in W only. FactorVAE (Kim & Mnih, 2018) reads the
density ratio from a discriminator instead.

``z``, ``mean`` and ``log_variance`` are (n, D), and row i of z is drawn from the i-th posterior. A posterior
with correlated noise (see `unweave.objectives.gaussian`) has its own joint density, the same marginals.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.errors import ArgumentError
from unweave.objectives.gaussian import LOG_2PI, check_correlation, log_determinant, mahalanobis


def minibatch_logsumexp(z: Tensor, mean: Tensor, log_variance: Tensor, correlation: float = 0.0) -> Tensor:
    """W_ij = 1: the estimate that disentanglement_lib uses for beta-TCVAE.

    Its gradient is that of `minibatch_weighted`, its value is not an estimate of TC: the constants
    (D - 1) log(N n) are dropped, so it is usually negative. Adding (D - 1) log n instead gives the TC of the
    batch's own mixture.

    Examples
    --------
    >>> import torch
    >>> z = torch.tensor([[0.0, 0.0], [9.0, 9.0]])
    >>> minibatch_logsumexp(z, z, torch.zeros(2, 2))  # that of two far points, log 2, less log 2
    tensor(0.)
    """
    joint, marginals = aggregate_log_densities(z, mean, log_variance, None, correlation)
    return (joint - marginals.sum(1)).mean()


def minibatch_weighted(
    z: Tensor, mean: Tensor, log_variance: Tensor, dataset_size: int, correlation: float = 0.0
) -> Tensor:
    """W_ij = 1 / (N n): minibatch weighted sampling (Chen et al., equation 4 and appendix C.1).

    The sum estimates a lower bound of E log q(z), for the joint and for each latent. The bounds do not
    cancel in the difference: the weights of a row sum to 1/N, and when a batch covers the data well the
    value exceeds TC by (D - 1) log N. Only its gradient is meant for use; for a value use
    `minibatch_stratified`.

    Examples
    --------
    >>> import torch
    >>> z = torch.tensor([[0.0, 0.0], [9.0, 9.0]])
    >>> minibatch_weighted(z, z, torch.zeros(2, 2), dataset_size=2)  # log 2 + log 2
    tensor(1.3863)
    """
    _check_dataset_size(dataset_size, len(z))
    constant = (z.shape[-1] - 1) * math.log(dataset_size * len(z))
    return minibatch_logsumexp(z, mean, log_variance, correlation) + constant


def minibatch_stratified(
    z: Tensor, mean: Tensor, log_variance: Tensor, dataset_size: int, correlation: float = 0.0
) -> Tensor:
    """Minibatch stratified sampling (Chen et al., appendix C.2): unbiased densities, see the weights.

    The logarithm makes the estimate of TC biased for finite batches, by less as the batch grows.

    Examples
    --------
    >>> import torch
    >>> z = torch.tensor([[0.0, 0.0], [9.0, 9.0]])
    >>> minibatch_stratified(z, z, torch.zeros(2, 2), dataset_size=2)
    tensor(0.6931)
    """
    log_weights = stratified_log_weights(len(z), dataset_size).to(z)
    joint, marginals = aggregate_log_densities(z, mean, log_variance, log_weights, correlation)
    return (joint - marginals.sum(1)).mean()


def stratified_log_weights(batch_size: int, dataset_size: int) -> Tensor:
    """The logarithm of the weights W (n, n) of minibatch stratified sampling, float64.

    Row i estimates q(z_i), where z_i comes from sample i of the batch and the other M = n - 1 samples are
    drawn without replacement from the remaining N - 1. Sample i itself has probability 1/N in q(z), so
    W_ii = 1/N; the others share the rest. The paper gives M - 1 of them 1/M each and one of them
    (N - M) / (N M), and indeed (M - 1)/M + (N - M)/(N M) = (N - 1)/N: each of the others is a uniform
    draw from the remaining samples, so the sum has expectation q(z_i). Which of them has the odd
    weight is free; here it is the next sample in the batch, cyclically.

    Much public code fills a column with 1/N where the diagonal is meant; every row but one is then biased.
    If batches are drawn with replacement, the bias is of order 1/N.

    Examples
    --------
    >>> stratified_log_weights(2, dataset_size=10).exp()[0].tolist()
    [0.1, 0.9]
    """
    _check_batch(batch_size)
    _check_dataset_size(dataset_size, batch_size)
    others = batch_size - 1
    weights = torch.full((batch_size, batch_size), 1 / others, dtype=torch.float64)
    row = torch.arange(batch_size)
    weights[row, row] = 1 / dataset_size
    weights[row, (row + 1) % batch_size] = (dataset_size - others) / (dataset_size * others)
    return weights.log()


def aggregate_log_densities(
    z: Tensor,
    mean: Tensor,
    log_variance: Tensor,
    log_weights: Tensor | None = None,
    correlation: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """log sum_j W_ij q(z_i|x_j), shape (n,), and log sum_j W_ij q(z_id|x_j), shape (n, D).

    ``log_weights`` is log W (n, n); None means W_ij = 1. The n * n * D exponents are differences squared:
    expanding the square into matrix products would cancel badly for small posterior variances.

    Examples
    --------
    >>> import torch
    >>> z = torch.tensor([[0.0, 0.0], [9.0, 9.0]])
    >>> joint, marginals = aggregate_log_densities(z, z, torch.zeros(2, 2))
    >>> joint.shape, marginals.shape
    (torch.Size([2]), torch.Size([2, 2]))
    """
    check_correlation(correlation)
    if z.ndim != 2 or z.shape != mean.shape or z.shape != log_variance.shape:
        shapes = [tuple(tensor.shape) for tensor in (z, mean, log_variance)]
        raise ArgumentError("shapes of z, mean, log_variance", shapes, "need one shape (n, D)")
    _check_batch(len(z))
    # Laid out as (D, i, j): the sums over j then run over contiguous memory.
    z, mean, log_variance = (tensor.T.contiguous() for tensor in (z, mean, log_variance))
    scaled = (z[:, :, None] - mean[:, None]) * (math.sqrt(0.5) * torch.exp(-0.5 * log_variance))[:, None]
    pairs = (-0.5 * (log_variance + LOG_2PI))[:, None] - scaled.square()
    if correlation == 0:
        joint = pairs.sum(0)
    else:
        size = len(z)
        constant = 0.5 * (log_variance.sum(0) + size * LOG_2PI + log_determinant(correlation, size))
        joint = -mahalanobis(scaled, correlation, dim=0) - constant
    if log_weights is not None:
        joint, pairs = joint + log_weights, pairs + log_weights
    return joint.logsumexp(1), pairs.logsumexp(2).T


def density_ratio(logits: Tensor) -> Tensor:
    """FactorVAE's TC: the mean of logit_0 - logit_1 over samples z of q(z) (Kim & Mnih, equation 3).

    ``logits`` (n, 2) are a discriminator's; class 0 is "drawn from q(z)", class 1 "dimensions permuted".
    At the optimal discriminator the difference is log q(z) - sum_d log q(z_d).

    Examples
    --------
    >>> import torch
    >>> density_ratio(torch.tensor([[3.0, 1.0], [1.0, 1.0]]))
    tensor(1.)
    """
    return _log_odds(logits).mean()


def discriminator_loss(logits_real: Tensor, logits_permuted: Tensor) -> Tensor:
    """1/2 [cross entropy of real z with class 0 + of permuted z with class 1], logits (n, 2) each.

    The codes must be detached before the discriminator sees them: the loss trains the adversary only.

    Examples
    --------
    >>> import torch
    >>> discriminator_loss(torch.zeros(4, 2), torch.zeros(4, 2))  # by chance: log 2
    tensor(0.6931)
    """
    real, permuted = _log_odds(logits_real), _log_odds(logits_permuted)
    return -0.5 * (F.logsigmoid(real).mean() + F.logsigmoid(-permuted).mean())


def permute_dimensions(z: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Samples of prod_d q(z_d): each column of ``z`` (n, D) shuffled over the batch on its own.

    Examples
    --------
    >>> import torch
    >>> z = torch.arange(6.0).view(3, 2)
    >>> permute_dimensions(z).sum(0)
    tensor([6., 9.])
    """
    keys = torch.rand(z.shape, generator=generator, dtype=torch.float64, device=z.device)
    return z.gather(0, keys.argsort(0))


def _log_odds(logits: Tensor) -> Tensor:
    if logits.ndim != 2 or logits.shape[1] != 2:
        raise ArgumentError("logits", tuple(logits.shape), "need shape (n, 2)")
    return logits[:, 0] - logits[:, 1]


def _check_batch(batch_size: int) -> None:
    if batch_size < 2:
        raise ArgumentError("batch size", batch_size, "the estimators need at least 2 samples")


def _check_dataset_size(dataset_size: int, batch_size: int) -> None:
    if dataset_size < batch_size:
        raise ArgumentError("dataset_size", dataset_size, f"needs at least the batch size, {batch_size}")
