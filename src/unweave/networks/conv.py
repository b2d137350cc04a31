"""The convolutional encoder and decoder of the papers, for images of 28, 32, 64 and 128 pixels."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.errors import unknown_name
from unweave.networks.blocks import ConvReLU, ConvTransposeOut, ConvTransposeReLU
from unweave.networks.mlp import MLP, GaussianEncoder, GaussianHeads
from unweave.networks.shapes import check_conv_shape, check_latent_size

FEATURES = 256
# The third and fourth convolution; disentanglement_lib's code has smaller ones there than its paper.
LATE_KERNEL = {"paper": 4, "dlib": 2}


class ConvEncoder(GaussianEncoder):
    """Four convolutions (32, 32, 64, 64) of stride 2, a fully connected layer of 256, two heads; ReLU.

    Kernels are 4x4; ``variant`` "dlib" has 2x2 in the third and fourth. ``conditioning`` values u join the
    256 features (Mita et al., table 2; in their code, the input of that layer). Images of 28 pixels are padded
    to 32; those of 128 have one more 4x4 convolution (64). ``width`` multiplies all channels and features.

    Examples
    --------
    >>> import torch
    >>> mean, log_variance = ConvEncoder((64, 64, 1), latent_size=10)(torch.zeros(2, 1, 64, 64))
    >>> mean.shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        latent_size: int,
        conditioning: int = 0,
        variant: str = "paper",
        width: float = 1.0,
    ) -> None:
        super().__init__()
        size, channels = check_conv_shape(image_shape)
        if variant not in LATE_KERNEL:
            raise unknown_name("variant", variant, LATE_KERNEL)
        late = LATE_KERNEL[variant]
        self.margin = 2 if size == 28 else 0
        few, many, features = (_times(width, count) for count in (32, 64, FEATURES))
        layers = [
            ConvReLU(channels, few),
            ConvReLU(few, few),
            ConvReLU(few, many, late),
            ConvReLU(many, many, late),
        ]
        if size == 128:
            layers.append(ConvReLU(many, many))
        self.convolutions = nn.Sequential(*layers)
        self.features = MLP(many * inner_size(size) ** 2, (features,), None)
        self.heads = GaussianHeads(features, latent_size, conditioning)

    def extract(self, x: Tensor) -> Tensor:
        """The 256 features (n, 256) that the heads read next to u."""
        if self.margin:
            x = F.pad(x, (self.margin,) * 4)
        # flatten keeps (C, H, W) order whatever the memory format is, so that weights fit both paths.
        features: Tensor = self.features(self.convolutions(x).flatten(1))
        return features


class EarlyConvEncoder(ConvEncoder):
    """As :class:`ConvEncoder`, with u joined one layer earlier: to what the fully connected layer reads.

    That is the authors' code of Mita et al.; their table 2 has u next to the 256 features.

    Examples
    --------
    >>> import torch
    >>> encoder = EarlyConvEncoder((64, 64, 1), latent_size=10, conditioning=3)
    >>> encoder(torch.zeros(2, 1, 64, 64), torch.zeros(2, 3))[0].shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        image_shape: tuple[int, ...],
        latent_size: int,
        conditioning: int = 0,
        variant: str = "paper",
        width: float = 1.0,
    ) -> None:
        super().__init__(image_shape, latent_size, 0, variant, width)
        self.conditioning = conditioning
        size, features = check_conv_shape(image_shape)[0], _times(width, FEATURES)
        self.features = MLP(_times(width, 64) * inner_size(size) ** 2 + conditioning, (features,), None)

    def forward(self, x: Tensor, u: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Images (n, C, H, W) and labels (n, d) to mean and log-variance (n, latent_size)."""
        if (u is None) != (self.conditioning == 0):
            raise TypeError(f"this encoder takes u with {self.conditioning} values")
        if self.margin:
            x = F.pad(x, (self.margin,) * 4)
        read = self.convolutions(x).flatten(1)
        mean, log_variance = self.heads(self.features(read if u is None else torch.cat([read, u], dim=1)))
        return mean, log_variance


class ConvDecoder(nn.Module):
    """FC 256, FC 1024 (256 for small images), four transposed convolutions 4x4 (64, 32, 32, C); ReLU; logits.

    Images of 28 pixels are cropped from 32; those of 128 have one more transposed convolution (64). ``width``
    multiplies all channels and features.

    Examples
    --------
    >>> import torch
    >>> ConvDecoder(10, (64, 64, 3))(torch.zeros(2, 10)).shape
    torch.Size([2, 3, 64, 64])
    """

    def __init__(self, latent_size: int, image_shape: tuple[int, ...], width: float = 1.0) -> None:
        super().__init__()
        size, channels = check_conv_shape(image_shape)
        check_latent_size(latent_size)
        few, many, features = (_times(width, count) for count in (32, 64, FEATURES))
        self.margin = 2 if size == 28 else 0
        self.inner = (many, inner_size(size), inner_size(size))
        self.features = MLP(latent_size, (features, many * inner_size(size) ** 2), None)
        layers: list[nn.Module] = [ConvTransposeReLU(many, many)] if size == 128 else []
        layers += [ConvTransposeReLU(many, many), ConvTransposeReLU(many, few), ConvTransposeReLU(few, few)]
        self.convolutions = nn.Sequential(*layers, ConvTransposeOut(few, channels))

    def forward(self, z: Tensor) -> Tensor:
        """Codes (n, latent_size) to logits (n, C, H, W)."""
        grid = self.features(z).unflatten(1, self.inner)
        logits: Tensor = self.convolutions(grid)
        if self.margin:
            logits = logits[:, :, self.margin : -self.margin, self.margin : -self.margin]
        return logits


def inner_size(size: int) -> int:
    """Height and width between the convolutions and the fully connected layers.

    Examples
    --------
    >>> inner_size(64)
    4
    """
    return 4 if size >= 64 else 2


def _times(width: float, count: int) -> int:
    """A number of channels or features, at least one."""
    return max(1, round(width * count))
