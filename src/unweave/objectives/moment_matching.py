"""DIP-VAE's moments of the aggregate posterior q(z), estimated on a minibatch (Kumar et al., 2018).

q(z) is the mixture over the batch of N(mu, diag(sigma) R diag(sigma)), R = (1 - s) I + s 11^T; the
correlation s is 0 in the paper. Each moment below is exact for that mixture: nothing is sampled.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unweave.errors import ArgumentError
from unweave.objectives.gaussian import check_correlation


def dip_penalty(covariance: Tensor, lambda_od: float, lambda_d: float) -> Tensor:
    """lambda_od * sum_{i != j} C_ij^2 + lambda_d * sum_i (C_ii - 1)^2 (equations 6 and 7).

    ``covariance`` (D, D) is `dip_i_covariance` or `dip_ii_covariance`. Each pair i != j counts twice.

    Examples
    --------
    >>> import torch
    >>> dip_penalty(torch.tensor([[1.0, 0.5], [0.5, 3.0]]), lambda_od=2.0, lambda_d=1.0)
    tensor(5.)
    """
    diagonal = covariance.diagonal()
    off_diagonal = covariance - torch.diag(diagonal)
    return lambda_od * off_diagonal.square().sum() + lambda_d * (diagonal - 1).square().sum()


def dip_i_covariance(mean: Tensor) -> Tensor:
    """DIP-VAE-I: the covariance (D, D) of the mean codes ``mean`` (n, D). Noise plays no part in it.

    Examples
    --------
    >>> import torch
    >>> dip_i_covariance(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    tensor([[1., 0.], [0., 0.]])
    """
    return covariance(mean)


def dip_ii_covariance(mean: Tensor, log_variance: Tensor, correlation: float = 0.0) -> Tensor:
    """DIP-VAE-II: the covariance (D, D) of q(z) by the law of total covariance (equation 5).

    Cov(mu) + E[diag(sigma) R diag(sigma)] = Cov(mu) + (1 - s) diag(E[sigma^2]) + s E[sigma sigma^T], with
    expectations over the batch. For s = 0 only the diagonal changes, by the mean variance of each latent
    (some ports add one scalar to every entry instead). ``mean`` and ``log_variance`` are (n, D).

    Examples
    --------
    >>> import torch
    >>> dip_ii_covariance(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.zeros(2, 2))
    tensor([[2., 0.], [0., 1.]])
    """
    check_correlation(correlation)
    _check_pair(mean, log_variance)
    noise = (1 - correlation) * torch.diag(log_variance.exp().mean(0))
    if correlation > 0:
        sigma = torch.exp(0.5 * log_variance)
        noise = noise + (correlation / len(mean)) * (sigma.T @ sigma)
    return covariance(mean) + noise


def covariance(x: Tensor) -> Tensor:
    """The biased covariance (D, D) of the rows of ``x`` (n, D): sums are divided by n, not by n - 1.

    Examples
    --------
    >>> import torch
    >>> covariance(torch.tensor([[1.0], [-1.0]]))
    tensor([[1.]])
    """
    centred = _centred(x)
    return centred.T @ centred / len(x)


def third_moment_penalty(
    mean: Tensor, log_variance: Tensor | None = None, correlation: float = 0.0
) -> Tensor:
    """The squared l2 norm of `third_central_moments`, to be weighted by lambda_3 (section 2.2).

    A zero-mean Gaussian prior has no third moments. The norm is over all D^3 entries, so a moment of
    three different latents counts six times, as an off-diagonal covariance counts twice in `dip_penalty`.

    Examples
    --------
    >>> import torch
    >>> third_moment_penalty(torch.tensor([[2.0], [-1.0], [-1.0]]))
    tensor(4.)
    """
    return third_central_moments(mean, log_variance, correlation).square().sum()


def third_central_moments(
    mean: Tensor, log_variance: Tensor | None = None, correlation: float = 0.0
) -> Tensor:
    """All third central moments (D, D, D) of q(z), in closed form.

    With m = mu - E[mu] and S = diag(sigma) R diag(sigma), both of one sample, and expectations over the
    batch,

        T_ijk = E[m_i m_j m_k] + E[m_i S_jk] + E[m_j S_ik] + E[m_k S_ij],

    because the odd moments of Gaussian noise vanish. S_jk = (1 - s) sigma_j^2 [j = k] + s sigma_j sigma_k.
    The paper names the penalty without a formula; this is the moment itself.

    Parameters
    ----------
    mean
        (n, D): the posterior means.
    log_variance
        (n, D): the posterior log-variances; None for the moments of the mean codes alone, in which ``correlation``
        plays no part.
    correlation
        s in [0, 1).

    Examples
    --------
    >>> import torch
    >>> third_central_moments(torch.tensor([[2.0], [-1.0], [-1.0]]))
    tensor([[[2.]]])
    """
    check_correlation(correlation)
    centred = _centred(mean)
    moments = _third(centred, torch.einsum("nj,nk->njk", centred, centred))
    if log_variance is None:
        return moments
    _check_pair(mean, log_variance)
    cross = (1 - correlation) * torch.diag_embed(centred.T @ log_variance.exp() / len(mean))
    if correlation > 0:
        sigma = torch.exp(0.5 * log_variance)
        cross = cross + correlation * _third(centred, torch.einsum("nj,nk->njk", sigma, sigma))
    return moments + cross + cross.permute(1, 0, 2) + cross.permute(1, 2, 0)


def _third(first: Tensor, pairs: Tensor) -> Tensor:
    """E[first_i pairs_jk] over the batch, as one matrix product: (n, D), (n, D, D) -> (D, D, D)."""
    count, size = first.shape
    return (first.T @ pairs.reshape(count, size * size) / count).view(size, size, size)


def _centred(x: Tensor) -> Tensor:
    if x.ndim != 2:
        raise ArgumentError("codes", tuple(x.shape), "need shape (n, D)")
    if len(x) < 2:
        raise ArgumentError("batch size", len(x), "central moments need at least 2 samples")
    return x - x.mean(0)


def _check_pair(mean: Tensor, log_variance: Tensor) -> None:
    if mean.shape != log_variance.shape:
        raise ArgumentError(
            "log_variance", tuple(log_variance.shape), f"needs the shape of mean, {tuple(mean.shape)}"
        )
