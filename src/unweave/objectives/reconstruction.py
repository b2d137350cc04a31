"""Reconstruction losses: negative log-likelihoods of images, summed over pixels.

Images and predictions have any equal shape (n, …) and any memory layout. With ``reduction="none"`` a
loss is one number per sample (n,); with "mean", the default, it is their mean over the batch.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unweave.errors import ArgumentError
from unweave.objectives.gaussian import LOG_2PI

Reduction = Literal["mean", "none"]


def bernoulli(logits: Tensor, images: Tensor, reduction: Reduction = "mean") -> Tensor:
    """Cross entropy sum_p [softplus(l_p) - l_p x_p] of real-valued pixels x in [0, 1] (Locatello et al.).

    With l the logit of a pixel this equals -x log sigmoid(l) - (1 - x) log(1 - sigmoid(l)); it is the
    likelihood of a Bernoulli variable when x is 0 or 1, and stable for any l.

    The mean keeps no intermediate image for its gradient, (sigmoid(l) - x) / n, which it writes down at
    once: less memory than ``binary_cross_entropy_with_logits`` and, for large batches, less time.

    Examples
    --------
    >>> import torch
    >>> bernoulli(torch.zeros(1, 1), torch.ones(1, 1))
    tensor(0.6931)
    """
    logits, images = _checked(logits, images, reduction)
    if reduction == "none":
        losses = F.binary_cross_entropy_with_logits(logits, images, reduction="none")
        return _reduced(losses, "none")
    loss: Tensor = _MeanBernoulli.apply(logits, images)  # type: ignore[no-untyped-call]
    return loss


def gaussian(
    mean: Tensor, images: Tensor, log_variance: Tensor | float = 0.0, reduction: Reduction = "mean"
) -> Tensor:
    """-log N(x; mean, v) = 1/2 sum_p [(x_p - mean_p)^2 / v + log v + log 2 pi], constants included.

    ``log_variance`` = log v is a number, fixed or learned, or a tensor that broadcasts to the images.

    Examples
    --------
    >>> import torch
    >>> gaussian(torch.zeros(1, 1), torch.ones(1, 1))
    tensor(1.4189)
    """
    mean, images = _checked(mean, images, reduction)
    log_variance = _parameter("log_variance", log_variance, images)
    losses = (images - mean).square() * torch.exp(-log_variance) + log_variance + LOG_2PI
    return 0.5 * _reduced(losses, reduction)


def laplace(
    location: Tensor, images: Tensor, log_scale: Tensor | float = 0.0, reduction: Reduction = "mean"
) -> Tensor:
    """-log Laplace(x; location, b) = sum_p [|x_p - location_p| / b + log 2 b], constants included.

    ``log_scale`` = log b is a number, fixed or learned, or a tensor that broadcasts to the images.

    Examples
    --------
    >>> import torch
    >>> laplace(torch.zeros(1, 1), torch.ones(1, 1))
    tensor(1.6931)
    """
    location, images = _checked(location, images, reduction)
    log_scale = _parameter("log_scale", log_scale, images)
    losses = (images - location).abs() * torch.exp(-log_scale) + log_scale + math.log(2)
    return _reduced(losses, reduction)


def squared_error(prediction: Tensor, images: Tensor, reduction: Reduction = "mean") -> Tensor:
    """sum_p (x_p - prediction_p)^2, without the 1/2 of a Gaussian likelihood.

    Examples
    --------
    >>> import torch
    >>> squared_error(torch.zeros(2, 3), torch.ones(2, 3), reduction="none")
    tensor([3., 3.])
    """
    prediction, images = _checked(prediction, images, reduction)
    return _reduced((images - prediction).square(), reduction)


class _MeanBernoulli(torch.autograd.Function):
    """Batch mean of the cross entropy. Elementwise work only, so both layouts of images are read as is."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, images: Tensor) -> Tensor:
        ctx.save_for_backward(logits, images)
        # Above the threshold softplus(l) is taken to be l: at torch's default of 20 that is off by 2e-9.
        # Each difference is taken before the sum, since the two sums would nearly cancel.
        losses = F.softplus(logits, threshold=40).addcmul_(logits, images, value=-1)
        return losses.sum() / len(logits)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        logits, images = ctx.saved_tensors
        scale = gradient / len(logits)
        to_logits = to_images = None
        if ctx.needs_input_grad[0]:
            probability = torch.sigmoid(logits)
            if torch.is_grad_enabled():  # a second derivative may be asked for: nothing in place
                to_logits = (probability - images) * scale
            else:
                to_logits = probability.sub_(images).mul_(scale)
        if ctx.needs_input_grad[1]:
            to_images = -logits * scale
        return to_logits, to_images


def _reduced(losses: Tensor, reduction: Reduction) -> Tensor:
    """Sum over everything but the first dimension, then the mean over it unless "none"."""
    if reduction == "mean":
        return losses.sum() / len(losses)
    return losses.sum(tuple(range(1, losses.ndim))) if losses.ndim > 1 else losses


def _checked(prediction: Tensor, images: Tensor, reduction: str) -> tuple[Tensor, Tensor]:
    """Equal shapes, at least one sample, floating point; both in the wider of the two types."""
    if reduction not in ("mean", "none"):
        raise ArgumentError("reduction", reduction, 'needs "mean" or "none"')
    if prediction.shape != images.shape or prediction.ndim == 0 or len(images) == 0:
        raise ArgumentError(
            "images", tuple(images.shape), f"needs the prediction's shape (n, …), {tuple(prediction.shape)}"
        )
    if not images.is_floating_point():
        raise ArgumentError("images", images.dtype, "needs floating-point pixels")
    dtype = torch.promote_types(prediction.dtype, images.dtype)
    return prediction.to(dtype), images.to(dtype)


def _parameter(name: str, value: Tensor | float, images: Tensor) -> Tensor:
    """A number or tensor as a tensor of the images' type that broadcasts to them, and not they to it."""
    tensor = torch.as_tensor(value, dtype=images.dtype, device=images.device)
    aligned = zip(reversed(tensor.shape), reversed(images.shape), strict=False)
    if tensor.ndim > images.ndim or any(size not in (1, whole) for size, whole in aligned):
        raise ArgumentError(name, tuple(tensor.shape), f"needs to broadcast to {tuple(images.shape)}")
    return tensor
