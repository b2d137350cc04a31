"""AnnealedVAE's capacity: how many nats the code may carry at each step (Burgess et al., 2017)."""

from __future__ import annotations

from torch import Tensor

from unweave.errors import ArgumentError


def linear_capacity(step: int, c_max: float, steps: int) -> float:
    """C(step) = c_max * min(step / steps, 1): from 0 nats to ``c_max`` over the first ``steps`` steps.

    Parameters
    ----------
    step
        the number of the training step.
    c_max
        the capacity at the end, in nats.
    steps
        over which it grows.

    Examples
    --------
    >>> linear_capacity(500, c_max=25.0, steps=1000)
    12.5
    """
    if step < 0:
        raise ArgumentError("step", step, "needs 0 or more")
    if steps < 1:
        raise ArgumentError("steps", steps, "needs at least 1")
    if not c_max >= 0:
        raise ArgumentError("c_max", c_max, "needs 0 or more nats")
    return c_max * min(step / steps, 1.0)


def capacity_penalty(mean_kl: Tensor, capacity: float) -> Tensor:
    """|mean_kl - C|, to be weighted by gamma (Locatello et al., AnnealedVAE).

    ``mean_kl`` is the batch mean of the samples' divergences, a scalar. The absolute value is taken of
    the mean, never per sample: samples may differ in how many nats they use. A tensor with one entry
    per sample is refused, because its penalty would be another one (never smaller, by Jensen).

    Examples
    --------
    >>> import torch
    >>> capacity_penalty(torch.tensor(10.0), 12.5)
    tensor(2.5000)
    """
    if mean_kl.ndim != 0:
        raise ArgumentError("mean_kl", tuple(mean_kl.shape), "needs the batch mean, a tensor of shape ()")
    return (mean_kl - capacity).abs()
