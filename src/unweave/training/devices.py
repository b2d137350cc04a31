"""Devices, precision and several GPUs, by Lightning Fabric."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from unweave.errors import ArgumentError
from unweave.parameters import Count, check_value

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def create_fabric(device: str, devices: Count, precision: str, strategy: str) -> Fabric:
    """The engine for a device: "auto", "cpu", "cuda", "cuda:1" or "mps"; checked before any work."""
    devices = check_value("devices", devices, Count)
    kind, _, index = device.partition(":")
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if kind == "auto":
        kind = next(name for name in ("cuda", "mps", "cpu") if available[name])
    if not available.get(kind, False) or (index and not index.isdigit()):
        present = ", ".join(name for name, is_present in available.items() if is_present)
        raise ArgumentError("device", device, f"needs 'auto' or a device of this machine: {present}")
    from lightning_fabric import Fabric

    chosen: Any = [int(index)] if index else devices
    if devices > 1 and strategy == "auto":
        # Players take turns, so each backward pass leaves the others' weights without a gradient.
        strategy = "ddp_find_unused_parameters_true"
    try:
        fabric = Fabric(accelerator=kind, devices=chosen, precision=precision, strategy=strategy)  # type: ignore[arg-type]
    except (ValueError, TypeError) as error:
        raise ArgumentError("precision", precision, str(error)) from error
    fabric.launch()
    return fabric


def is_plain(fabric: Fabric) -> bool:
    """Whether one process on the CPU computes in 32 bits: models and optimisers then need none of Fabric's wrappers."""
    from lightning_fabric.plugins import Precision

    one = fabric.device.type == "cpu" and fabric.world_size == 1
    return one and type(fabric.strategy.precision) is Precision  # others are its subclasses


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold torch to one thread on the CPU, and restore what it had.

    Examples
    --------
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
