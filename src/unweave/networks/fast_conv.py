"""The same convolutions, computed in the way that is fastest for training on a CPU.

Processors with AVX-512 compute 4x4 kernels by :mod:`unweave.networks.direct_conv`. Elsewhere three things cost a 4x4
convolution of stride 2 its speed: the channels-first layout, the gradient of a bias that is computed inside the
convolution, and kernels made for many channels when an image has one to four. So activations are kept channels last,
biases are added after the convolution, and next to the image

* a convolution becomes one of half the size: with 2x2 pixels stacked into one of 4C channels ("blocks"), a
  4x4 kernel of stride 2 is a 2x2 kernel of stride 1;
* a transposed convolution becomes one matrix product, which gives each pixel's 4x4 patches, and the sum of
  the patches where they overlap.

Values and gradients are those of torch's own functions, up to rounding.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function, forward_ad
from torch.nn import Parameter

FEW_CHANNELS = 4


def can_be_fast(x: Tensor) -> bool:
    """Whether a call may leave torch's own operations: tensors of torch on a CPU, nothing cast, traced or transformed.

    Examples
    --------
    >>> import torch
    >>> can_be_fast(torch.zeros(1))
    True
    """
    return (
        not torch.compiler.is_compiling()
        and type(x) in (Tensor, Parameter)
        and x.device.type == "cpu"
        and not torch._C._functorch.is_legacy_batchedtensor(x)
        and not torch.is_autocast_enabled("cpu")
        and not torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
        and not torch._C._are_functorch_transforms_active()
        and getattr(forward_ad, "_current_level", -1) < 0
        and torch._C._len_torch_dispatch_stack() == 0
    )


def conv_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """ReLU of a convolution of stride 2, kernel 4 (padding 1) or 2 (padding 0).

    Examples
    --------
    >>> import torch
    >>> conv_relu(torch.zeros(2, 1, 8, 8), torch.zeros(5, 1, 4, 4), torch.zeros(5)).shape
    torch.Size([2, 5, 4, 4])
    """
    kernel = weight.shape[-1]
    outputs, channels = weight.shape[:2]
    height, width = x.shape[-2:]
    few = channels <= FEW_CHANNELS
    # A gradient for the image would be a transposed convolution to few channels: torch has it.
    fits = channels % 32 == 0 or (few and not x.requires_grad)
    fits = fits and height % 4 == width % 4 == 0 and outputs % 32 == 0
    if kernel == 4 and fits and _agree(x, channels, bias, outputs) and _is_direct(x, weight, bias):
        y: Tensor = _ConvReLU.apply(_channels_last(x), weight, bias, False)  # type: ignore[no-untyped-call]
        return y
    if few and kernel == 4 and height % 2 == width % 2 == 0:
        y = F.conv2d(to_blocks(x), F.pixel_unshuffle(weight, 2))
    else:
        y = F.conv2d(_channels_last(x), weight, None, stride=2, padding=(kernel - 2) // 2)
    return _add_bias(y, bias).relu_()


def conv_transpose_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """ReLU of a transposed convolution, 4x4, stride 2, padding 1.

    Examples
    --------
    >>> import torch
    >>> conv_transpose_relu(torch.zeros(2, 5, 4, 4), torch.zeros(5, 3, 4, 4), torch.zeros(3)).shape
    torch.Size([2, 3, 8, 8])
    """
    x = _channels_last(x)
    inputs, outputs = weight.shape[:2]
    fits = inputs % 32 == 0 and _fits(x, outputs) and _agree(x, inputs, bias, outputs)
    if fits and _is_direct(x, weight, bias):
        y: Tensor = _ConvReLU.apply(x, weight, bias, True)  # type: ignore[no-untyped-call]
        return y
    return _add_bias(F.conv_transpose2d(x, weight, None, stride=2, padding=1), bias).relu_()


def conv_transpose(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Transposed convolution, 4x4, stride 2, padding 1. Meant for few output channels.

    Examples
    --------
    >>> import torch
    >>> conv_transpose(torch.zeros(2, 5, 4, 4), torch.zeros(5, 1, 4, 4), torch.zeros(1)).shape
    torch.Size([2, 1, 8, 8])
    """
    y: Tensor = _TransposeToImage.apply(_channels_last(x), weight)  # type: ignore[no-untyped-call]
    return _add_bias(y, bias)


def to_blocks(x: Tensor) -> Tensor:
    """Images (n, C, H, W) of even size to blocks of 2x2 pixels, (n, 4C, H/2 + 1, W/2 + 1), channels last.

    The same as ``pixel_unshuffle(pad(x, (1, 1, 1, 1)), 2)``, in one pass.

    Examples
    --------
    >>> import torch
    >>> to_blocks(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 4, 5, 5])
    """
    n, channels, height, width = x.shape
    rows, columns = height // 2, width // 2
    blocks = x.new_zeros(n, rows + 1, columns + 1, channels, 2, 2)
    # With the border, pixel 2i is the second one (p = 1) of block i, and 2i + 1 the first of block i + 1.
    for p in (0, 1):
        for q in (0, 1):
            pixels = x[:, :, 1 - p :: 2, 1 - q :: 2].permute(0, 2, 3, 1)
            blocks[:, 1 - p : rows + 1 - p, 1 - q : columns + 1 - q, :, p, q] = pixels
    return blocks.flatten(3).permute(0, 3, 1, 2)


def _is_direct(*tensors: Tensor) -> bool:
    """Whether direct convolutions are for these tensors: float32, and a processor with the registers for it.

    The numbers have to lie in memory as they are: no fake or lazily negated tensors. Threads are those of direct
    convolutions: where torch's spin while they wait, the two would keep each other from the cores.
    """
    asleep = os.environ.get("OMP_WAIT_POLICY", "").upper() == "PASSIVE"  # see unweave/__init__.py
    return has_registers() and (asleep or torch.get_num_threads() == 1) and all(map(_has_numbers, tensors))


def _has_numbers(tensor: Tensor) -> bool:
    own = (
        type(tensor) in (Tensor, Parameter) and tensor.device.type == "cpu" and tensor.layout == torch.strided
    )
    return own and tensor.dtype == torch.float32 and not tensor.is_neg()


def _agree(x: Tensor, channels: int, bias: Tensor, outputs: int) -> bool:
    """Whether x and the bias have as many channels as the weight. If not, torch has the error for it."""
    return x.dim() == 4 and x.shape[1] == channels and bias.shape == (outputs,)


def _fits(x: Tensor, outputs: int) -> bool:
    """Whether a map that is doubled, and this many channels of what is computed, can be cut into tiles."""
    height, width = x.shape[-2:]
    return height % 2 == width % 2 == 0 and outputs % 32 == 0


@cache
def has_registers() -> bool:
    """Whether this processor has AVX-512, and torch uses it: see :mod:`unweave.networks.direct_conv`.

    Examples
    --------
    >>> has_registers() in (True, False)
    True
    """
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    from numba import config

    return not config.DISABLE_JIT  # type: ignore[attr-defined]  # addresses mean nothing to Python


class _ConvReLU(Function):
    """ReLU of a convolution 4x4, stride 2, padding 1, or of its transpose. ``x`` is channels last."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, transposed: bool) -> Tensor:
        from unweave.networks import direct_conv

        y = (direct_conv.conv_transpose if transposed else direct_conv.conv)(x, weight, bias)
        ctx.save_for_backward(x, weight, y)
        ctx.transposed = transposed
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        from unweave.networks import direct_conv

        x, weight, y = ctx.saved_tensors
        wanted = ctx.needs_input_grad[:3]
        if not _back_is_direct(gradient, x, weight, y):
            return *_torch_gradients(gradient, x, weight, y, ctx.transposed, wanted), None
        x, y, gradient = (_channels_last(map) for map in (x, y, gradient))
        gradients = direct_conv.conv_transpose_gradients if ctx.transposed else direct_conv.conv_gradients
        return *gradients(x, weight, y, gradient, wanted), None


def _back_is_direct(gradient: Tensor, *saved: Tensor) -> bool:
    """Whether the way back may be direct: not where a second derivative may be asked for, or many gradients at once.

    What was saved may come back in another form: see :class:`torch.autograd.graph.saved_tensors_hooks`.
    """
    return not torch.is_grad_enabled() and can_be_fast(gradient) and _is_direct(gradient, *saved)


def _torch_gradients(
    gradient: Tensor, x: Tensor, weight: Tensor, y: Tensor, transposed: bool, wanted: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of a layer with ReLU by torch's operations, which have gradients themselves."""
    gradient = torch.ops.aten.threshold_backward(gradient, y, 0)
    biases = [weight.shape[1 if transposed else 0]]
    layer = [2, 2], [1, 1], [1, 1], transposed, [0, 0], 1
    return torch.ops.aten.convolution_backward(gradient, x, weight, biases, *layer, wanted)  # type: ignore[no-any-return]


class _TransposeToImage(Function):
    """Transposed convolution 4x4, stride 2, padding 1, without bias. ``x`` is channels last."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        if _to_image_fits(x, weight) and _is_direct(x, weight):
            from unweave.networks import direct_conv

            return direct_conv.conv_transpose_to_image(x, weight)
        n, inputs, height, width = x.shape
        pixels = x.permute(0, 2, 3, 1).reshape(n, height * width, inputs)
        # bmm, since matmul would make one product of it whose result has to be transposed.
        patches = torch.bmm(weight.flatten(1).t().expand(n, -1, -1), pixels.transpose(1, 2))
        return _overlap_add(patches.view(n, weight.shape[1], 4, 4, height, width))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        if _to_image_fits(x, weight) and _back_is_direct(gradient, x, weight):
            from unweave.networks import direct_conv

            wanted = *ctx.needs_input_grad, False
            x, gradient = _channels_last(x), _channels_last(gradient)
            return direct_conv.conv_transpose_gradients(x, weight, None, gradient, wanted)[:2]
        blocks = to_blocks(gradient)
        small = F.pixel_unshuffle(weight, 2)
        for_x = F.conv2d(blocks, small) if ctx.needs_input_grad[0] else None
        for_weight = None
        if ctx.needs_input_grad[1]:
            # The roles of input and output are swapped: x is what a convolution would have made of the image.
            for_weight = F.pixel_shuffle(_weight_gradient(blocks, small, x), 2)
        return for_x, for_weight


def _to_image_fits(x: Tensor, weight: Tensor) -> bool:
    inputs, outputs = weight.shape[:2]
    return outputs <= FEW_CHANNELS and x.shape[1] == inputs and _fits(x, inputs)


def _weight_gradient(x: Tensor, weight: Tensor, gradient: Tensor) -> Tensor:
    """The gradient for the weight of conv2d(x, weight)."""
    backward = torch.ops.aten.convolution_backward
    wanted = [False, True, False]
    _, result, _ = backward(gradient, x, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, wanted)
    return result  # type: ignore[no-any-return]


def _overlap_add(patches: Tensor) -> Tensor:
    """Sum patches (n, C, 4, 4, H, W), which start at pixel (2i - 1, 2j - 1), into an image (n, C, 2H, 2W).

    An even row 2i is row 1 of patch i and row 3 of patch i - 1; an odd row 2i + 1 is row 2 of patch i and
    row 0 of patch i + 1. The same holds for columns. ``patches`` is overwritten.
    """
    n, channels, _, _, height, width = patches.shape
    rows = patches[:, :, 1:3]
    rows[:, :, 0, :, 1:] += patches[:, :, 3, :, :-1]
    rows[:, :, 1, :, :-1] += patches[:, :, 0, :, 1:]
    even, odd = rows[:, :, :, 1], rows[:, :, :, 2]
    even[..., 1:] += rows[:, :, :, 3, :, :-1]
    odd[..., :-1] += rows[:, :, :, 0, :, 1:]
    image = patches.new_empty(n, channels, 2 * height, 2 * width)
    blocks = image.view(n, channels, height, 2, width, 2)
    blocks[..., 0] = even.transpose(2, 3)
    blocks[..., 1] = odd.transpose(2, 3)
    return image


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _add_bias(y: Tensor, bias: Tensor) -> Tensor:
    """In place; apart from the convolution, so that the bias's gradient is one sum over pixels."""
    return y.add_(bias.view(-1, 1, 1))
