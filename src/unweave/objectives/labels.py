"""Objectives on labels: the match of codes and labels, entropies, and samples of categories that pass gradients."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.errors import ArgumentError
from unweave.objectives.gaussian import LOG_2PI


def match_loss(codes: Tensor, labels: Tensor) -> Tensor:
    """sum_j BCE(sigmoid(z_j), u_j) over the known labels u in [0, 1], mean over images (FullVAE, R_s).

    ``codes`` (n, D) and ``labels`` (n, K), K <= D, NaN where unknown: label j is matched by code j, the further
    codes are free. As in disentanglement_lib the mean code is the logit; that library sums over the batch as well.

    Examples
    --------
    >>> import torch
    >>> match_loss(torch.zeros(1, 3), torch.tensor([[1.0, float("nan")]]))
    tensor(0.6931)
    """
    if codes.ndim != 2 or labels.ndim != 2 or len(codes) != len(labels) or labels.shape[1] > codes.shape[1]:
        raise ArgumentError(
            "labels", tuple(labels.shape), f"needs (n, K) with K <= D for codes {tuple(codes.shape)}"
        )
    known = ~labels.isnan()
    targets = torch.where(known, labels, 0.0).to(codes.dtype)
    losses = F.binary_cross_entropy_with_logits(codes[:, : labels.shape[1]], targets, reduction="none")
    return torch.where(known, losses, 0.0).sum() / len(codes)


def categorical_entropy(logits: Tensor) -> Tensor:
    """-sum_k p_k log p_k in nats of p = softmax(logits) over the last dimension.

    Examples
    --------
    >>> import torch
    >>> categorical_entropy(torch.zeros(4)).exp()
    tensor(4.)
    """
    log_probability = F.log_softmax(logits, dim=-1)
    return -(log_probability.exp() * log_probability).sum(-1)


def gaussian_entropy(log_variance: Tensor) -> Tensor:
    """1/2 (log sigma^2 + log 2 pi + 1), elementwise, in nats.

    Examples
    --------
    >>> import torch
    >>> gaussian_entropy(torch.zeros(1))
    tensor([1.4189])
    """
    return 0.5 * (log_variance + LOG_2PI + 1)


def gumbel_noise(like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Standard Gumbel numbers, shaped as ``like``: argmax(logits + noise) is a draw from softmax(logits).

    Examples
    --------
    >>> import torch
    >>> gumbel_noise(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    exponential = torch.empty_like(like, requires_grad=False).exponential_(generator=generator)
    return -exponential.log()


def straight_through(logits: Tensor, noise: Tensor, temperature: float) -> Tensor:
    """A one-hot draw from softmax(logits), with the gradient of softmax((logits + noise) / temperature).

    The straight-through Gumbel-softmax estimator (Jang et al. 2017): ``noise`` comes from `gumbel_noise`. Values are
    exact draws, so that expectations over them are estimated without bias; the gradient is biased, of low variance.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[0.0, 9.0]])
    >>> straight_through(logits, torch.zeros(1, 2), temperature=0.5)
    tensor([[0., 1.]])
    """
    if not temperature > 0:
        raise ArgumentError("temperature", temperature, "needs a number > 0")
    relaxed = torch.softmax((logits + noise) / temperature, dim=-1)
    drawn = F.one_hot(relaxed.argmax(-1), relaxed.shape[-1]).to(relaxed.dtype)
    return drawn + (relaxed - relaxed.detach())
