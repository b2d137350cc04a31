"""Losses of two players: a discriminator that tells real images from generated ones, and the generator."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor


def real_fake_loss(real: Tensor, fake: Tensor) -> Tensor:
    """The discriminator's cross entropy (Goodfellow et al. 2014), mean of real and generated images.

        -1/2 (E[log D(x)] + E[log(1 - D(G(z)))]),    D = sigmoid(logit)

    Parameters
    ----------
    real, fake
        logits (n,) of real and of generated images.

    Examples
    --------
    >>> real_fake_loss(torch.zeros(4), torch.zeros(4))   # log 2: it cannot tell
    tensor(0.6931)
    """
    return 0.5 * (F.softplus(-real).mean() + F.softplus(fake).mean())


def generator_loss(fake: Tensor) -> Tensor:
    """The generator's non-saturating loss, -E[log D(G(z))], from logits (n,) of generated images.

    Examples
    --------
    >>> generator_loss(torch.zeros(4))
    tensor(0.6931)
    """
    return F.softplus(-fake).mean()


def critic_loss(real: Tensor, fake: Tensor) -> Tensor:
    """E[f(G(z))] - E[f(x)] from a critic's values (n,) (Wasserstein GAN, Arjovsky et al. 2017).

    Examples
    --------
    >>> critic_loss(torch.tensor([2.0]), torch.tensor([0.5]))
    tensor(-1.5000)
    """
    return fake.mean() - real.mean()


def gradient_penalty(
    critic: Callable[[Tensor], Tensor],
    real: Tensor,
    fake: Tensor,
    generator: torch.Generator | None = None,
) -> Tensor:
    """E[(|grad_x f(x)| - 1)^2] at random points between real and generated images (Gulrajani et al. 2017).

    Parameters
    ----------
    critic
        images (n, …) to values (n,).
    real, fake
        images (n, …); no gradient flows back into them.

    Examples
    --------
    >>> images = torch.rand(4, 1, 2, 2)
    >>> gradient_penalty(lambda x: x.flatten(1).sum(1), images, images)   # |grad| = 2 everywhere
    tensor(1.)
    """
    share = torch.rand(
        (len(real), *[1] * (real.ndim - 1)), generator=generator, dtype=real.dtype, device=real.device
    )
    between = torch.lerp(fake.detach(), real.detach(), share).requires_grad_(True)
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    penalty: Tensor = (gradient.flatten(1).norm(dim=1) - 1).square().mean()
    return penalty
