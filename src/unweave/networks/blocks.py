"""Convolutions joined with their activation, and dense layers, by torch's own operations and in a form fast on a CPU.

Parameters and state_dict keys are those of the torch classes, whichever form is chosen; :func:`accelerate` chooses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.networks.fast_conv import can_be_fast, conv_relu, conv_transpose, conv_transpose_relu
from unweave.networks.fast_dense import MANY_WEIGHTS, linear, onednn_is_faster

Module = TypeVar("Module", bound=nn.Module)


class ConvReLU(nn.Conv2d):
    """ReLU(convolution). Stride 2, padded as TensorFlow's "same" does for even sizes; ``kernel`` 4 or 2.

    Examples
    --------
    >>> import torch
    >>> ConvReLU(1, 32)(torch.zeros(2, 1, 64, 64)).shape
    torch.Size([2, 32, 32, 32])
    """

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
    """ReLU(transposed convolution), 4x4, stride 2.

    Examples
    --------
    >>> import torch
    >>> ConvTransposeReLU(32, 16)(torch.zeros(2, 32, 4, 4)).shape
    torch.Size([2, 16, 8, 8])
    """

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        """(n, in_channels, H, W) to (n, out_channels, 2H, 2W)."""
        if self.fast and output_size is None and can_be_fast(x):
            return conv_transpose_relu(x, self.weight, self.bias)
        return F.relu(super().forward(x, output_size))


class ConvTransposeOut(_DoublingConvTranspose):
    """Transposed convolution, 4x4, stride 2, without activation: the decoder's last layer.

    Examples
    --------
    >>> import torch
    >>> ConvTransposeOut(32, 1)(torch.zeros(2, 32, 4, 4)).shape
    torch.Size([2, 1, 8, 8])
    """

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        """(n, in_channels, H, W) to (n, out_channels, 2H, 2W)."""
        if self.fast and output_size is None and can_be_fast(x):
            return conv_transpose(x, self.weight, self.bias)
        return super().forward(x, output_size)


class Dense(nn.Linear):
    """A linear layer, as :class:`torch.nn.Linear`.

    Examples
    --------
    >>> import torch
    >>> Dense(1000, 1000)(torch.zeros(2, 1000)).shape
    torch.Size([2, 1000])
    """

    fast = False

    def forward(self, x: Tensor) -> Tensor:
        """(…, in_features) to (…, out_features)."""
        large = x.dim() == 2 and self.weight.numel() >= MANY_WEIGHTS
        if self.fast and large and x.dtype == torch.float32 and onednn_is_faster() and can_be_fast(x):
            return linear(x, self.weight, self.bias)
        return super().forward(x)


Block = ConvReLU | ConvTransposeReLU | ConvTransposeOut | Dense


def accelerate(module: Module) -> Module:
    """Let the blocks inside ``module`` use their CPU fast path: same parameters, values and gradients.

    In place; returns the module. Other layers are not changed, and a call with tensors elsewhere than on the
    CPU, or under autocast, takes torch's own operations.

    Examples
    --------
    >>> accelerate(ConvReLU(1, 32)).fast
    True
    """
    return _switch(module, True)


def decelerate(module: Module) -> Module:
    """The reverse of ``accelerate``: torch's own operations only, as exporters and tracers need them.

    Examples
    --------
    >>> decelerate(accelerate(ConvReLU(1, 32))).fast
    False
    """
    return _switch(module, False)


def is_accelerated(module: nn.Module) -> bool:
    """Whether ``module`` has blocks with a fast path, all of them switched on.

    Examples
    --------
    >>> is_accelerated(ConvReLU(1, 32))
    False
    """
    switches = [block.fast for block in _blocks(module)]
    return bool(switches) and all(switches)


def _switch(module: Module, fast: bool) -> Module:
    for block in _blocks(module):
        block.fast = fast
    return module


def _blocks(module: nn.Module) -> Iterator[Block]:
    return (part for part in module.modules() if isinstance(part, Block))
