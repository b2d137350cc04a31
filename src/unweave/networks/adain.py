"""Adaptive instance normalisation, and the network that renders an image from a blurry one and a code.

G of the multi-stage paper (section 3.2): y, the output of an earlier stage, goes through an hourglass of convolutions;
z enters by shifting and scaling every normalised layer inside it (Huang & Belongie 2017).
"""

from __future__ import annotations

from math import prod
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from unweave.networks.dcgan import CHANNELS, SLOPE, conv_sizes, down_convolutions, up_convolutions
from unweave.networks.shapes import check_conv_shape, check_latent_size

Modulation = Literal["channel", "position"]


class AdaptiveInstanceNorm(nn.Module):
    r""":math:`\gamma(z) (h - \mu(h)) / \sigma(h) + \beta(z)`, with mean and deviation over each channel of each image.

    Parameters
    ----------
    shape
        (C, H, W) of the features h, or (C,) for features without positions, which are normalised over C.
    latent_size
        the size of z.
    modulation
        "channel": one scale and shift per channel, linear in z (the paper). "position": one per channel and
        position, each a ReLU layer of z (the authors' code).

    Examples
    --------
    >>> import torch
    >>> AdaptiveInstanceNorm((8, 4, 4), 3)(torch.randn(2, 8, 4, 4), torch.zeros(2, 3)).shape
    torch.Size([2, 8, 4, 4])
    """

    def __init__(self, shape: tuple[int, ...], latent_size: int, modulation: Modulation = "channel") -> None:
        super().__init__()
        check_latent_size(latent_size)
        self.modulation = modulation
        # Without positions there is nothing to average over within a channel: the features are one group.
        modulated = shape if modulation == "position" or len(shape) == 1 else (shape[0], 1, 1)
        self.modulated = modulated
        self.scale = nn.Linear(latent_size, prod(modulated))
        self.shift = nn.Linear(latent_size, prod(modulated))

    def forward(self, h: Tensor, z: Tensor) -> Tensor:
        """Features (n, C, H, W) or (n, C), normalised and modulated by z (n, latent_size)."""
        scale, shift = (layer(z).view(-1, *self.modulated) for layer in (self.scale, self.shift))
        if self.modulation == "position":
            scale, shift = scale.relu(), shift.relu()
        else:
            scale = 1 + scale  # at z = 0 the features pass unchanged
        normal = F.layer_norm(h, h.shape[1:]) if h.ndim == 2 else F.instance_norm(h)
        modulated: Tensor = scale * normal + shift
        return modulated


class AdaINDecoder(nn.Module):
    """(y, z) to x: convolutions 5x5 of stride 2 on y down to 4 x 4, a dense layer, transposed convolutions back up.

    Images of 64 pixels have convolutions of 64, 128, 256 and 512 channels, a dense layer of 8,192 and transposed
    convolutions of 256, 128, 64 and C; leaky ReLU 0.2. Every layer but the first and the last is normalised and
    modulated by z. Smaller images have one stage less, those of 128 pixels one more.

    Parameters
    ----------
    image_shape
        (H, W, C) of x and of y.
    latent_size
        the size of z.
    modulation
        see :class:`AdaptiveInstanceNorm`.

    Examples
    --------
    >>> import torch
    >>> AdaINDecoder((32, 32, 1), 5)(torch.rand(2, 1, 32, 32), torch.randn(2, 5)).shape
    torch.Size([2, 1, 32, 32])
    """

    def __init__(
        self, image_shape: tuple[int, ...], latent_size: int, modulation: Modulation = "channel"
    ) -> None:
        super().__init__()
        size, channels = check_conv_shape(image_shape)
        sizes = conv_sizes(size)
        down = [channels, *CHANNELS[: len(sizes) - 1]]
        up = [*reversed(down[1:]), channels]
        self.inner = (down[-1], sizes[-1], sizes[-1])
        width = down[-1] * sizes[-1] ** 2
        self.down = down_convolutions(down)
        self.dense = nn.Linear(width, width)
        self.up = up_convolutions(up, sizes)
        self.down_norms = nn.ModuleList(
            AdaptiveInstanceNorm((c, s, s), latent_size, modulation)
            for c, s in zip(down[2:], sizes[2:], strict=True)
        )
        self.dense_norm = AdaptiveInstanceNorm((width,), latent_size, modulation)
        self.up_norms = nn.ModuleList(
            AdaptiveInstanceNorm((c, s, s), latent_size, modulation)
            for c, s in zip(up[1:-1], reversed(sizes[1:-1]), strict=True)
        )

    def forward(self, y: Tensor, z: Tensor) -> Tensor:
        """Images y (n, C, H, W) in [0, 1] and codes z (n, latent_size) to logits of x (n, C, H, W)."""
        h = F.leaky_relu(self.down[0](y), SLOPE)
        for convolution, norm in zip(list(self.down)[1:], self.down_norms, strict=True):
            h = F.leaky_relu(norm(convolution(h), z), SLOPE)
        h = F.leaky_relu(self.dense_norm(self.dense(h.flatten(1)), z), SLOPE).view(-1, *self.inner)
        for convolution, norm in zip(list(self.up)[:-1], self.up_norms, strict=True):
            h = F.leaky_relu(norm(convolution(h), z), SLOPE)
        logits: Tensor = self.up[-1](h)
        return logits
