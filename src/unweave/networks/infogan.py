"""Generator and discriminator of InfoGAN (Chen et al. 2016) on MNIST: two convolutions and dense layers."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from unweave.networks.shapes import check_conv_shape, check_latent_size

WIDTH = 64
KERNEL, SLOPE = 4, 0.1


class DenseGenerator(nn.Module):
    """Codes to images: dense layers of 1,024 and of 7 x 7 x 128, transposed convolutions 4x4 of stride 2 (64, C).

    Batch normalisation and ReLU after every layer but the last, which gives logits. (Images of 28 pixels; of others the
    second dense layer has a fourth of their height and width.)

    Parameters
    ----------
    latent_size
        how many values the generator reads: codes and noise together.
    image_shape
        (H, W, C).
    width
        channels next to the image; the layers before have 2 and 16 times as many.

    Examples
    --------
    >>> import torch
    >>> DenseGenerator(10, (28, 28, 1), width=8)(torch.randn(4, 10)).shape
    torch.Size([4, 1, 28, 28])
    """

    def __init__(self, latent_size: int, image_shape: tuple[int, ...], width: int = WIDTH) -> None:
        super().__init__()
        size, channels = check_conv_shape(image_shape)
        check_latent_size(latent_size)
        self.inner = (2 * width, size // 4, size // 4)
        features = 2 * width * (size // 4) ** 2
        self.dense = nn.ModuleList([nn.Linear(latent_size, 16 * width), nn.Linear(16 * width, features)])
        self.dense_norms = nn.ModuleList([nn.BatchNorm1d(16 * width), nn.BatchNorm1d(features)])
        self.up = nn.ConvTranspose2d(2 * width, width, KERNEL, stride=2, padding=1)
        self.up_norm = nn.BatchNorm2d(width)
        self.output = nn.ConvTranspose2d(width, channels, KERNEL, stride=2, padding=1)

    def forward(self, z: Tensor) -> Tensor:
        """Codes (n, latent_size) to logits (n, C, H, W)."""
        h = z
        for layer, norm in zip(self.dense, self.dense_norms, strict=True):
            h = F.relu(norm(layer(h)))
        logits: Tensor = self.output(F.relu(self.up_norm(self.up(h.view(-1, *self.inner)))))
        return logits


class DenseDiscriminator(nn.Module):
    """Images to one logit: convolutions 4x4 of stride 2 (64, 128), a dense layer of 1,024, leaky ReLU 0.1, one logit.

    Batch normalisation from the second layer on, unless ``normalise`` is off. ``features``, the dense layer's, are what
    the logit and InfoGAN's Q are read off. ``width`` is that of :class:`DenseGenerator`.

    Examples
    --------
    >>> import torch
    >>> DenseDiscriminator((28, 28, 1), width=8)(torch.rand(4, 1, 28, 28)).shape
    torch.Size([4])
    """

    def __init__(self, image_shape: tuple[int, ...], normalise: bool = True, width: int = WIDTH) -> None:
        super().__init__()
        size, channels = check_conv_shape(image_shape)
        self.num_features = 16 * width
        self.first = nn.Conv2d(channels, width, KERNEL, stride=2, padding=1)
        self.second = nn.Conv2d(width, 2 * width, KERNEL, stride=2, padding=1)
        self.dense = nn.Linear(2 * width * (size // 4) ** 2, self.num_features)
        self.second_norm = nn.BatchNorm2d(2 * width) if normalise else nn.Identity()
        self.dense_norm = nn.BatchNorm1d(self.num_features) if normalise else nn.Identity()
        self.output = nn.Linear(self.num_features, 1)

    def features(self, images: Tensor) -> Tensor:
        """(n, num_features) of images (n, C, H, W)."""
        h = F.leaky_relu(self.first(images), SLOPE)
        h = F.leaky_relu(self.second_norm(self.second(h)), SLOPE)
        return F.leaky_relu(self.dense_norm(self.dense(h.flatten(1))), SLOPE)

    def logits(self, features: Tensor) -> Tensor:
        """Logits (n,) of features (n, num_features): positive for images that seem real."""
        logits: Tensor = self.output(features).squeeze(1)
        return logits

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n,): positive for images that seem real."""
        return self.logits(self.features(images))
