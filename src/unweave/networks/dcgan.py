"""Generator and discriminator of DCGAN (Radford et al. 2015), as in the multi-stage paper's code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.networks.shapes import check_conv_shape, check_latent_size

CHANNELS = (64, 128, 256, 512, 512)
KERNEL, SLOPE = 5, 0.2


class ImageGenerator(nn.Module):
    """Codes to images: a dense layer of 4 x 4 x 512, transposed convolutions 5x5 of stride 2 (256, 128, 64, C).

    Batch normalisation and ReLU after every layer but the last, which gives logits. (Images of 64 pixels; smaller ones
    have one stage less, those of 128 one more.)

    Parameters
    ----------
    latent_size
        how many values the generator reads: noise, codes, labels together.
    image_shape
        (H, W, C).
    normalise
        whether to use batch normalisation.
    width
        channels next to the image; the other layers have 2, 4 and 8 times as many.

    Examples
    --------
    >>> ImageGenerator(10, (28, 28, 1))(torch.randn(4, 10)).shape
    torch.Size([4, 1, 28, 28])
    """

    def __init__(
        self,
        latent_size: int,
        image_shape: tuple[int, ...],
        normalise: bool = True,
        width: int = CHANNELS[0],
    ) -> None:
        super().__init__()
        size, channels = check_conv_shape(image_shape)
        check_latent_size(latent_size)
        sizes = conv_sizes(size)
        widths = [*reversed(conv_channels(sizes, width)), channels]
        self.inner = (widths[0], sizes[-1], sizes[-1])
        self.dense = nn.Linear(latent_size, widths[0] * sizes[-1] ** 2)
        self.convolutions = up_convolutions(widths, sizes)
        self.norms = nn.ModuleList(
            nn.BatchNorm2d(channels) if normalise else nn.Identity() for channels in widths[:-1]
        )

    def forward(self, z: Tensor) -> Tensor:
        """Codes (n, latent_size) to logits (n, C, H, W)."""
        h = self.dense(z).unflatten(1, self.inner)
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            h = convolution(F.relu(norm(h)))
        logits: Tensor = h
        return logits


class ImageDiscriminator(nn.Module):
    """Images to one logit: convolutions 5x5 of stride 2 (64, 128, 256, 512), leaky ReLU 0.2, a dense layer.

    Batch normalisation from the second convolution on, unless ``normalise`` is off (as a critic with gradient penalty
    needs it). ``features`` are what the dense layer reads; InfoGAN's Q reads them too. ``width`` is that of
    :class:`ImageGenerator`.

    Examples
    --------
    >>> ImageDiscriminator((32, 32, 3))(torch.rand(4, 3, 32, 32)).shape
    torch.Size([4])
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        condition_channels: int = 0,
        normalise: bool = True,
        width: int = CHANNELS[0],
    ) -> None:
        super().__init__()
        size, channels = check_conv_shape(image_shape)
        sizes = conv_sizes(size)
        widths = [channels + condition_channels, *conv_channels(sizes, width)]
        self.convolutions = down_convolutions(widths)
        self.norms = nn.ModuleList(
            nn.BatchNorm2d(after) if normalise and index else nn.Identity()
            for index, after in enumerate(widths[1:])
        )
        self.num_features = widths[-1] * sizes[-1] ** 2
        self.output = nn.Linear(self.num_features, 1)

    def features(self, images: Tensor, condition: Tensor | None = None) -> Tensor:
        """(n, num_features) of images (n, C, H, W), with condition images joined by channel."""
        h = images if condition is None else torch.cat([images, condition], dim=1)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            h = F.leaky_relu(norm(convolution(h)), SLOPE)
        return h.flatten(1)

    def logits(self, features: Tensor) -> Tensor:
        """Logits (n,) of features (n, num_features): positive for images that seem real."""
        logits: Tensor = self.output(features).squeeze(1)
        return logits

    def forward(self, images: Tensor, condition: Tensor | None = None) -> Tensor:
        """Logits (n,): positive for images that seem real."""
        return self.logits(self.features(images, condition))


def conv_sizes(size: int) -> list[int]:
    """Heights between convolutions of stride 2, from the image down to 4 pixels.

    >>> conv_sizes(28)
    [28, 14, 7, 4]
    """
    sizes = [size]
    while sizes[-1] > 4:
        sizes.append((sizes[-1] + 1) // 2)
    return sizes


def conv_channels(sizes: Sequence[int], width: int = CHANNELS[0]) -> list[int]:
    """Channels after each convolution between ``sizes``, the first of which gives ``width``.

    >>> conv_channels([28, 14, 7, 4], width=16)
    [16, 32, 64]
    """
    return [channels * width // CHANNELS[0] for channels in CHANNELS[: len(sizes) - 1]]


def down_convolutions(widths: Sequence[int]) -> nn.ModuleList:
    """Convolutions 5x5 of stride 2 between the given numbers of channels: each halves the size, rounded up."""
    return nn.ModuleList(nn.Conv2d(a, b, KERNEL, stride=2, padding=2) for a, b in pairwise(widths))


def up_convolutions(widths: Sequence[int], sizes: Sequence[int]) -> nn.ModuleList:
    """Transposed convolutions 5x5 of stride 2 between the given numbers of channels, back through ``sizes``.

    Stride 2 maps both 2k - 1 and 2k pixels to k: the way back has to know which it was.
    """
    return nn.ModuleList(
        nn.ConvTranspose2d(a, b, KERNEL, stride=2, padding=2, output_padding=1 - after % 2)
        for (a, b), after in zip(pairwise(widths), reversed(sizes[:-1]), strict=True)
    )
