"""The same matrix products, computed by the library that is fastest for them on this CPU.

torch gives float32 matrix products to MKL, which uses AVX-512 on Intel's processors alone. On AMD's that have it,
oneDNN, which torch has for convolutions, is about twice as fast. Values and gradients are the same up to rounding.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

# Below this many weights calling costs more than is gained.
MANY_WEIGHTS = 50_000


@cache
def onednn_is_faster() -> bool:
    """Whether products of matrices should go to oneDNN: an AMD processor with AVX-512.

    Examples
    --------
    >>> onednn_is_faster() in (True, False)
    True
    """
    return (
        torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and _is_amd()
    )


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``torch.nn.functional.linear`` of float32 matrices x (n, inputs) and weight (outputs, inputs), by oneDNN.

    Examples
    --------
    >>> import torch
    >>> linear(torch.ones(2, 3), torch.ones(4, 3), torch.zeros(4))[0, 0]
    tensor(3.)
    """
    return _product(x, weight, bias)


def _product(first: Tensor, second: Tensor, bias: Tensor | None = None) -> Tensor:
    """first (n, k) times the transpose of second (m, k), plus bias (m,)."""
    product: Tensor = _Product.apply(first, second, bias)  # type: ignore[no-untyped-call]
    return product


class _Product(Function):
    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(first, second)
        product = torch.ops.mkldnn._linear_pointwise(first, second, bias, "none", [], "")
        return product  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        # Products of the same kind, so that gradients have gradients.
        first, second = ctx.saved_tensors
        for_first, for_second, for_bias = ctx.needs_input_grad
        return (
            _product(gradient, second.t()) if for_first else None,
            _product(gradient.t(), first.t()) if for_second else None,
            gradient.sum(dim=0) if for_bias else None,
        )


def _is_amd() -> bool:
    try:
        return "AuthenticAMD" in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
