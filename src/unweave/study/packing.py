"""How many processes with how many threads each train the most images per second on this machine: measured."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from unweave.files import write_text
from unweave.progress import progress
from unweave.study.executors import thread_variables

SECONDS = 4.0
_BATCH = 64


class Packing(NamedTuple):
    """Processes, threads of each, and how many times as fast all together are as one of one thread."""

    processes: int
    threads: int
    speedup: float


def best_packing(root: Path) -> Packing:
    """The best for this machine; measured once per folder and kept, as the bits of a run depend on its threads."""
    path = root / "packing.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    machine = f"{platform.node()}-{cores()}"
    if machine not in known:
        known[machine] = _measure()
        write_text(path, json.dumps(known, indent=1))
    rates: dict[str, float] = known[machine]
    best = max(rates, key=lambda packing: rates[packing])
    processes, threads = (int(number) for number in best.split("x"))
    return Packing(processes, threads, rates[best])


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def candidates(n: int) -> list[tuple[int, int]]:
    """Ways to fill ``n`` cores: one thread each, two each, …; at least one process."""
    threads = [2**power for power in range(n.bit_length()) if 2**power <= n]
    return [(n // t, t) for t in threads]


def _measure() -> dict[str, float]:
    """By packing ("2x1"), how many times as fast all processes together are as one with one thread."""
    import torch

    if torch.cuda.is_available():  # the device does the work: a process for each
        devices = torch.cuda.device_count()
        return {f"{devices}x{max(1, cores() // devices)}": float(devices)}
    tried = candidates(cores())
    if len(tried) == 1:
        return {"1x1": 1.0}
    rates = {}
    with progress("Measuring this machine", len(tried), "packings", transient=True) as advance:
        for processes, threads in tried:
            workers = [
                subprocess.Popen(
                    [sys.executable, "-m", "unweave.study.packing", str(threads)],
                    env={**os.environ, **thread_variables(threads)},
                    stdout=subprocess.PIPE,
                )
                for _ in range(processes)
            ]
            rates[f"{processes}x{threads}"] = sum(float(worker.communicate()[0]) for worker in workers)
            advance(1)
    alone = rates.get("1x1") or rates[f"{cores()}x1"] / cores()  # as fast as its share of all
    return {packing: rate / alone for packing, rate in rates.items()}


def training_rate(
    method: str, image_shape: tuple[int, ...], seconds: float = SECONDS, **settings: object
) -> tuple[float, int]:
    """Images per second of training a method on random images, in this process; and the bytes of its weights.

    The images have factors of two values, for methods that learn from labels or pairs; no more of them than latents.
    """
    import numpy as np
    import torch

    from unweave.data import from_arrays
    from unweave.methods import create
    from unweave.networks import accelerate, keep_freed_memory
    from unweave.training.devices import create_fabric
    from unweave.training.loop import plan
    from unweave.training.run import Run
    from unweave.training.session import Session

    images = np.random.default_rng(0).integers(0, 256, (256, *image_shape), np.uint8)
    count = min(4, int(settings.get("latent_size", 10)))  # type: ignore[call-overload]
    data = from_arrays(images, np.arange(len(images))[:, None] >> np.arange(count) & 1)
    model = create(method, data, **settings)  # type: ignore[arg-type]
    model.initialise(0)
    keep_freed_memory()
    accelerate(model)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    spec = plan(model, data, 10**9, _BATCH, 1e-4, 0, "32-true")
    session = Session(Run(spec, model), data, create_fabric("cpu", 1, "32-true", "auto"), (), False)
    for step in range(3):  # the first steps make room
        session._step(step, False)
    start, steps = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        session._step(3 + steps, False)
        steps += 1
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    return steps * _BATCH / (time.monotonic() - start), weights


if __name__ == "__main__":
    import torch

    torch.set_num_threads(int(sys.argv[1]))
    print(training_rate("beta_vae", (64, 64, 1))[0])
