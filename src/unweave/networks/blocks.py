"""Convolutions joined with their activation, each with a plain and a fast implementation.

Parameters and state_dict keys are those of the torch classes, whichever implementation is chosen.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from unweave.networks.fast_conv import can_be_fast, conv_relu, conv_transpose, conv_transpose_relu


class ConvReLU(nn.Conv2d):
    """ReLU(convolution). Stride 2, padded as TensorFlow's "same" does for even sizes; ``kernel`` 4 or 2."""

    fast = False
    bias: nn.Parameter

    def __init__(self, in_channels: int, out_channels: int, kernel: int = 4) -> None:
        super().__init__(in_channels, out_channels, kernel, stride=2, padding=(kernel - 2) // 2)

    def forward(self, x: Tensor) -> Tensor:
        """(n, in_channels, H, W) to (n, out_channels, H/2, W/2), for even H and W."""
        if self.fast and can_be_fast(x):
            return conv_relu(x, self.weight, self.bias)
        return F.relu(super().forward(x))


class _DoublingConvTranspose(nn.ConvTranspose2d):
    """Transposed convolution, 4x4, stride 2: doubles height and width."""

    fast = False
    bias: nn.Parameter

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, 4, stride=2, padding=1)


class ConvTransposeReLU(_DoublingConvTranspose):
    """ReLU(transposed convolution), 4x4, stride 2."""

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        """(n, in_channels, H, W) to (n, out_channels, 2H, 2W)."""
        if self.fast and output_size is None and can_be_fast(x):
            return conv_transpose_relu(x, self.weight, self.bias)
        return F.relu(super().forward(x, output_size))


class ConvTransposeOut(_DoublingConvTranspose):
    """Transposed convolution, 4x4, stride 2, without activation: the decoder's last layer."""

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        """(n, in_channels, H, W) to (n, out_channels, 2H, 2W)."""
        if self.fast and output_size is None and can_be_fast(x):
            return conv_transpose(x, self.weight, self.bias)
        return super().forward(x, output_size)
