"""Initial weights."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Glorot-uniform weights and zero biases for every linear and (transposed) convolution inside ``module``.

    Weights are uniform in +-sqrt(6 / (fan_in + fan_out)), with TensorFlow's fans: channels times kernel area,
    for transposed convolutions too. Layers draw from ``generator`` in the order in which they were added, in
    float32, so that a seed gives the same weights in any precision.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear | _ConvNd):
            _initialise_layer(layer, generator)


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
