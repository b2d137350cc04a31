"""Training for its speed alone: steps without end, and nothing is kept or shown."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from unweave.data import Dataset
from unweave.methods.method import Method
from unweave.networks import accelerate, keep_freed_memory
from unweave.training.devices import create_fabric
from unweave.training.loop import Session
from unweave.training.planning import plan
from unweave.training.run import Run

_ENDLESS = 10**9


def trial_steps(
    method: Method, data: Dataset, batch_size: int, device: str = "cpu", keep_memory: bool = True
) -> Iterator[int]:
    """Train a method as :func:`~unweave.training.train` does, one step at each ``next``; yields how many there were.

    Parameters
    ----------
    method
        which is trained from its beginning.
    data
        what to train on.
    batch_size
        images per step.
    device, keep_memory
        as in training.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    >>> method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    >>> steps = trial_steps(method, data, 4, keep_memory=False)
    >>> next(steps), next(steps)
    (1, 2)
    """
    fabric = create_fabric(device, 1, "32-true", "auto")
    method.initialise(0)
    if keep_memory:
        keep_freed_memory()
    if fabric.device.type == "cpu":
        accelerate(method)
    method.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    spec = plan(method, data, _ENDLESS, batch_size, 1e-4, 0, "32-true")
    session = Session(Run(spec, method), data, fabric, (), False)
    for step in range(_ENDLESS):
        session.step(step)
        yield step + 1
