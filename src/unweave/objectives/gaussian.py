"""The encoder's Gaussian: its noise, its samples and its densities.

The posterior is q(z|x) = N(mu, diag(sigma) R diag(sigma)) with R = (1 - s) I + s 11^T. The correlation
s = 0 gives the usual factorised posterior; s > 0 breaks the conditional independence of the latents on
purpose (Yang et al., equation 11 and appendix B). R has a unit diagonal, so s leaves each latent's own
density as it is. Its eigenvalues are 1 - s + s D along 1 and 1 - s across it: inverse (Sherman-Morrison)
and determinant are closed forms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from unweave.errors import ArgumentError

LOG_2PI = math.log(2 * math.pi)


def reparameterise(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
    """A sample z = mu + sigma * noise, differentiable in mu and log sigma^2 (Kingma & Welling, 2014).

    Parameters
    ----------
    mean, log_variance
        (…, D): of the posteriors.
    noise
        (…, D): from :func:`standard_noise`.

    Examples
    --------
    >>> import torch
    >>> reparameterise(torch.ones(1, 2), torch.zeros(1, 2), torch.tensor([[0.5, -1.0]]))
    tensor([[1.5000, 0.0000]])
    """
    return torch.addcmul(mean, torch.exp(0.5 * log_variance), noise)


def standard_noise(
    like: Tensor | Sequence[int],
    correlation: float = 0.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Noise (…, D) with mean 0 and covariance (1 - s) I + s 11^T (Yang et al., equation 11).

    It is drawn as sqrt(1 - s) e + sqrt(s) e0, where e has D independent entries and e0 is one number
    shared by the whole row. s = 0 draws e alone and so consumes the generator as ``torch.randn`` does.

    Parameters
    ----------
    like
        a tensor whose shape, type and device the noise takes, or a shape.
    correlation
        s in [0, 1).
    generator
        the random source; torch's global one if None.

    Examples
    --------
    >>> standard_noise((5, 3), correlation=0.5).shape
    torch.Size([5, 3])
    """
    check_correlation(correlation)
    shape = tuple(like.shape) if isinstance(like, Tensor) else tuple(like)
    dtype, device = (like.dtype, like.device) if isinstance(like, Tensor) else (None, None)
    independent = torch.randn(shape, generator=generator, dtype=dtype, device=device)
    if correlation == 0:
        return independent
    shared = torch.randn((*shape[:-1], 1), generator=generator, dtype=dtype, device=device)
    return math.sqrt(1 - correlation) * independent + math.sqrt(correlation) * shared


def log_density(z: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """Each latent's own log N(z_d; mu_d, sigma_d^2), shape (…, D); arguments broadcast.

    Examples
    --------
    >>> import torch
    >>> log_density(torch.zeros(1), torch.zeros(1), torch.zeros(1))
    tensor([-0.9189])
    """
    scaled = (z - mean) * torch.exp(-0.5 * log_variance)
    return -0.5 * (scaled.square() + log_variance + LOG_2PI)


def correlated_log_density(z: Tensor, mean: Tensor, log_variance: Tensor, correlation: float) -> Tensor:
    """The joint log N(z; mu, diag(sigma) R diag(sigma)), R = (1 - s) I + s 11^T, shape (…).

    The arguments have shape (…, D) and broadcast. s = 0 is the sum of `log_density` over the latents.

    Examples
    --------
    >>> import torch
    >>> correlated_log_density(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2), 0.6)
    tensor([-1.6147])
    """
    check_correlation(correlation)
    if correlation == 0:
        return log_density(z, mean, log_variance).sum(-1)
    scaled = (z - mean) * torch.exp(-0.5 * log_variance)
    latent_size = scaled.shape[-1]
    distance = mahalanobis(scaled, correlation, dim=-1)
    constant = latent_size * LOG_2PI + log_determinant(correlation, latent_size)
    return -0.5 * (distance + log_variance.expand_as(scaled).sum(-1) + constant)


def mahalanobis(scaled: Tensor, correlation: float, dim: int) -> Tensor:
    """The quadratic form e^T R^-1 e over dimension ``dim`` of ``scaled``.

    By Sherman-Morrison it is (e.e - s (sum e)^2 / (1 - s + s D)) / (1 - s). The same number is written
    here as a sum of two squares, across and along 1, so that nothing cancels when s is near 1.

    Examples
    --------
    >>> import torch
    >>> mahalanobis(torch.ones(1, 2), correlation=0.5, dim=1)
    tensor([1.3333])
    """
    latent_size = scaled.shape[dim]
    along = scaled.mean(dim, keepdim=True)
    across = (scaled - along).square().sum(dim)
    return across / (1 - correlation) + along.squeeze(dim).square() * (
        latent_size / (1 + correlation * (latent_size - 1))
    )


def log_determinant(correlation: float, latent_size: int) -> float:
    """log det((1 - s) I + s 11^T) = (D - 1) log(1 - s) + log(1 - s + s D).

    Examples
    --------
    >>> log_determinant(0.5, latent_size=2)
    -0.2877
    """
    return (latent_size - 1) * math.log1p(-correlation) + math.log1p(correlation * (latent_size - 1))


def check_correlation(correlation: float) -> None:
    """Raise unless s is in [0, 1): at s = 1 the noise has no density.

    Examples
    --------
    >>> check_correlation(0.5)
    """
    if not 0 <= correlation < 1:
        raise ArgumentError("correlation", correlation, "needs 0 <= correlation < 1")
