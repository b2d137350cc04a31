"""Switch the CPU fast path of the blocks in a module tree on and off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from torch import nn

from unweave.networks.blocks import ConvReLU, ConvTransposeOut, ConvTransposeReLU

Module = TypeVar("Module", bound=nn.Module)
Block = ConvReLU | ConvTransposeReLU | ConvTransposeOut


def accelerate(module: Module) -> Module:
    """Let the blocks inside ``module`` use their CPU fast path: same parameters, values and gradients.

    In place; returns the module. Other layers are not changed, and a call with tensors elsewhere than on the
    CPU, or under autocast, takes the plain path.
    """
    return _switch(module, True)


def decelerate(module: Module) -> Module:
    """The reverse of ``accelerate``: plain torch operations only, as exporters and tracers need them."""
    return _switch(module, False)


def is_accelerated(module: nn.Module) -> bool:
    """Whether ``module`` has blocks with a fast path, all of them switched on."""
    switches = [block.fast for block in _blocks(module)]
    return bool(switches) and all(switches)


def _switch(module: Module, fast: bool) -> Module:
    for block in _blocks(module):
        block.fast = fast
    return module


def _blocks(module: nn.Module) -> Iterator[Block]:
    return (part for part in module.modules() if isinstance(part, Block))
