"""Weights of networks: how they are drawn, and how they are held."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Draw Glorot-uniform weights and zero biases for every linear and (transposed) convolution in a module.

    Weights are uniform in +-sqrt(6 / (fan_in + fan_out)), with TensorFlow's fans: channels times kernel area,
    for transposed convolutions too. Layers draw from ``generator`` in the order in which they were added, in
    float32, so that a seed gives the same weights in any precision.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Linear(3, 3)
    >>> initialise(layer, torch.Generator().manual_seed(0))
    >>> bool(layer.weight.abs().max() <= 1), layer.bias.tolist()
    (True, [0.0, 0.0, 0.0])
    """
    for layer in module.modules():
        if (
            isinstance(layer, nn.Linear | _ConvNd) and not layer.weight.is_meta
        ):  # of those there are shapes only
            _initialise_layer(layer, generator)


@torch.no_grad()
def initialise_normal(module: nn.Module, generator: torch.Generator, deviation: float = 0.02) -> None:
    """Draw normal weights and zero biases for every linear and (transposed) convolution in a module, as DCGAN does.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Linear(100, 100)
    >>> initialise_normal(layer, torch.Generator().manual_seed(0))
    >>> round(layer.weight.std().item(), 3), layer.bias.abs().max().item()
    (0.02, 0.0)
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear | _ConvNd) and not layer.weight.is_meta:
            shape = layer.weight.shape
            normal = torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float32)
            layer.weight.copy_(deviation * normal)
            if layer.bias is not None:
                layer.bias.zero_()


@contextmanager
def frozen(module: nn.Module) -> Iterator[nn.Module]:
    """Let gradients flow through a module to its input, and none to its parameters.

    Examples
    --------
    >>> import torch
    >>> layer, x = torch.nn.Linear(3, 2), torch.ones(1, 3, requires_grad=True)
    >>> with frozen(layer):
    ...     layer(x).sum().backward()
    >>> x.grad is None, layer.weight.grad is None
    (False, True)
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield module
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


@torch.no_grad()
def _initialise_layer(layer: nn.Linear | _ConvNd, generator: torch.Generator) -> None:
    weight = layer.weight
    # (out, in, k, k), and (in, out, k, k) for transposed convolutions: the sum of the fans is the same.
    fans = (weight.shape[0] + weight.shape[1]) * math.prod(weight.shape[2:])
    limit = math.sqrt(6 / fans)
    uniform = torch.rand(weight.shape, generator=generator, device=generator.device, dtype=torch.float32)
    weight.copy_(uniform * (2 * limit) - limit)
    if layer.bias is not None:
        layer.bias.zero_()
