"""Adaptive instance normalisation, and the networks that render an image from a blurry one, or from a code.

G of the multi-stage paper (section 3.2): y, the output of an earlier stage, goes through an hourglass of convolutions;
z enters by shifting and scaling every normalised layer inside it (Huang & Belongie 2017). In the paper's ablations
(appendix L) a code c replaces y: then the upper half of the hourglass is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from unweave.errors import ArgumentError
from unweave.networks.dcgan import (
    CHANNELS,
    SLOPE,
    conv_channels,
    conv_sizes,
    down_convolutions,
    up_convolutions,
)
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
    width
        channels of the first convolution; the others have 2, 4 and 8 times as many.

    Examples
    --------
    >>> import torch
    >>> AdaINDecoder((32, 32, 1), 5, width=4)(torch.rand(2, 1, 32, 32), torch.randn(2, 5)).shape
    torch.Size([2, 1, 32, 32])
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        latent_size: int,
        modulation: Modulation = "channel",
        width: int = CHANNELS[0],
    ) -> None:
        super().__init__()
        size, channels = check_conv_shape(image_shape)
        sizes = conv_sizes(size)
        down = [channels, *conv_channels(sizes, width)]
        up = [*reversed(down[1:]), channels]
        self.inner = (down[-1], sizes[-1], sizes[-1])
        features = prod(self.inner)
        self.down = down_convolutions(down)
        self.dense = nn.Linear(features, features)
        self.up = up_convolutions(up, sizes)
        self.down_norms = nn.ModuleList(
            AdaptiveInstanceNorm((c, s, s), latent_size, modulation)
            for c, s in zip(down[2:], sizes[2:], strict=True)
        )
        self.dense_norm = AdaptiveInstanceNorm((features,), latent_size, modulation)
        self.up_norms = _up_norms(up, sizes, latent_size, modulation)

    def forward(self, y: Tensor, z: Tensor) -> Tensor:
        """Images y (n, C, H, W) in [0, 1] and codes z (n, latent_size) to logits of x (n, C, H, W)."""
        h = F.leaky_relu(self.down[0](y), SLOPE)
        for convolution, norm in zip(list(self.down)[1:], self.down_norms, strict=True):
            h = F.leaky_relu(norm(convolution(h), z), SLOPE)
        h = F.leaky_relu(self.dense_norm(self.dense(h.flatten(1)), z), SLOPE).view(-1, *self.inner)
        return _upwards(h, z, self.up, self.up_norms)


class AdaINGenerator(nn.Module):
    """(c, z) to x: the upper half of :class:`AdaINDecoder`, whose dense layer reads a code c.

    Parameters
    ----------
    code_size
        the size of c.
    latent_size
        the size of z.
    image_shape
        (H, W, C) of x.
    modulation, width
        as of :class:`AdaINDecoder`.

    Examples
    --------
    >>> import torch
    >>> AdaINGenerator(10, 5, (32, 32, 1), width=4)(torch.randn(2, 10), torch.randn(2, 5)).shape
    torch.Size([2, 1, 32, 32])
    """

    def __init__(
        self,
        code_size: int,
        latent_size: int,
        image_shape: tuple[int, ...],
        modulation: Modulation = "channel",
        width: int = CHANNELS[0],
    ) -> None:
        super().__init__()
        size, channels = check_conv_shape(image_shape)
        sizes = conv_sizes(size)
        up = [*reversed(conv_channels(sizes, width)), channels]
        self.inner = (up[0], sizes[-1], sizes[-1])
        self.dense = nn.Linear(code_size, prod(self.inner))
        self.up = up_convolutions(up, sizes)
        self.dense_norm = AdaptiveInstanceNorm((prod(self.inner),), latent_size, modulation)
        self.up_norms = _up_norms(up, sizes, latent_size, modulation)

    def forward(self, c: Tensor, z: Tensor) -> Tensor:
        """Codes c (n, code_size) and z (n, latent_size) to logits of x (n, C, H, W)."""
        h = F.leaky_relu(self.dense_norm(self.dense(c), z), SLOPE).view(-1, *self.inner)
        return _upwards(h, z, self.up, self.up_norms)


class SplitCodeDecoder(nn.Module):
    """A code to an image, as a VAE has it: its first latents are c, the others are z, which enters by AdaIN.

    Parameters
    ----------
    latent_size
        |C| + |Z|.
    image_shape
        (H, W, C).
    c_size
        |C|.
    modulation, width
        as of :class:`AdaINDecoder`.

    Examples
    --------
    >>> import torch
    >>> decoder = SplitCodeDecoder(10, (32, 32, 1), c_size=4, width=4)
    >>> decoder(torch.randn(2, 10)).shape, decoder.parts
    (torch.Size([2, 1, 32, 32]), {'c': slice(0, 4, None), 'z': slice(4, 10, None)})
    """

    def __init__(
        self,
        latent_size: int,
        image_shape: tuple[int, ...],
        c_size: int,
        modulation: Modulation = "channel",
        width: int = CHANNELS[0],
    ) -> None:
        super().__init__()
        if not 0 < c_size < latent_size:
            raise ArgumentError(
                "c_size", c_size, f"needs 1 to {latent_size - 1}: some latents are c, the others z"
            )
        self.c_size, self.latent_size = c_size, latent_size
        self.network = AdaINGenerator(c_size, latent_size - c_size, image_shape, modulation, width)

    @property
    def parts(self) -> dict[str, slice]:
        """Which latents are c, and which z."""
        return {"c": slice(0, self.c_size), "z": slice(self.c_size, self.latent_size)}

    def forward(self, codes: Tensor) -> Tensor:
        """Codes (n, latent_size) to logits (n, C, H, W)."""
        logits: Tensor = self.network(codes[:, : self.c_size], codes[:, self.c_size :])
        return logits


def _up_norms(
    channels: Sequence[int], sizes: Sequence[int], latent_size: int, modulation: Modulation
) -> nn.ModuleList:
    """A norm after each transposed convolution but the last."""
    return nn.ModuleList(
        AdaptiveInstanceNorm((c, s, s), latent_size, modulation)
        for c, s in zip(channels[1:-1], reversed(sizes[1:-1]), strict=True)
    )


def _upwards(h: Tensor, z: Tensor, convolutions: nn.ModuleList, norms: nn.ModuleList) -> Tensor:
    """Features (n, C, 4, 4) through transposed convolutions to logits of an image."""
    for convolution, norm in zip(list(convolutions)[:-1], norms, strict=True):
        h = F.leaky_relu(norm(convolution(h), z), SLOPE)
    logits: Tensor = convolutions[-1](h)
    return logits
