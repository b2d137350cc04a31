"""Speed of the data room: training batches next to a per-item DataLoader, random next to contiguous rows.

Each figure is the median of interleaved repetitions on one thread; ratios are within one run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch.utils.data import DataLoader, RandomSampler
from torch.utils.data import Dataset as TorchDataset

import unweave as uw
from unweave.data.batches import to_tensor
from unweave.data.render import render_rooms, render_solids

REPETITIONS = 15


class PerItem(TorchDataset):
    """The usual way: one Python call per image."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, row: int) -> torch.Tensor:
        return torch.from_numpy(self.array[row].transpose(2, 0, 1).astype(np.float32) / 255)


def images_per_second(work: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """Median rates; the competitors take turns, so that a slow moment hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for function, _ in work.values():
        function()
    for _ in range(REPETITIONS):
        for name, (function, _) in work.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return {name: count / statistics.median(seconds[name]) for name, (_, count) in work.items()}


def table(title: str, rates: dict[str, float], baseline: str) -> None:
    print(f"\n{title}")
    for name, rate in rates.items():
        print(f"  {name:<44}{rate:>12,.0f} images/s{rate / rates[baseline]:>10.2f}x")


def main() -> None:
    torch.set_num_threads(1)
    data = uw.data.load("dsprites")
    loader = DataLoader(PerItem(data.array), 64, sampler=RandomSampler(PerItem(data.array), replacement=True))
    steps = iter(range(10**9))

    def loader_batches() -> None:
        for batch, _ in zip(loader, range(20), strict=False):
            assert len(batch) == 64

    def our_batches(source: uw.data.Dataset, size: int, count: int) -> Callable[[], None]:
        def run() -> None:
            for _ in range(count):
                source.batch(next(steps), size)

        return run

    rates = images_per_second(
        {
            "DataLoader, one item at a time": (loader_batches, 20 * 64),
            "unweave": (our_batches(data, 64, 100), 100 * 64),
        }
    )
    table("Training batches of 64, dSprites", rates, "DataLoader, one item at a time")

    starts = iter(np.random.default_rng(0).integers(0, len(data) - 4096, 10**4))

    def contiguous() -> None:
        start = next(starts)
        to_tensor(data.images(np.arange(start, start + 4096)))

    rates = images_per_second(
        {"contiguous rows": (contiguous, 4096), "random rows": (our_batches(data, 4096, 1), 4096)}
    )
    table("Batches of 4096, dSprites", rates, "contiguous rows")

    noisy = {name: uw.data.load(name) for name in ("color_dsprites", "noisy_dsprites", "scream_dsprites")}
    work = {"dsprites": (our_batches(data, 64, 100), 100 * 64)}
    work |= {name: (our_batches(source, 64, 20), 20 * 64) for name, source in noisy.items()}
    table("Training batches of 64 with fresh noise", images_per_second(work), "dsprites")

    rng = np.random.default_rng(0)
    rooms, solids = uw.data.load("rooms3d").space, uw.data.load("solids3d").space
    rates = images_per_second(
        {
            "rooms3d, composed": (lambda: render_rooms(rooms.sample(1024, rng)), 1024),
            "solids3d, ray-cast": (lambda: render_solids(solids.sample(64, rng)), 64),
        }
    )
    table("Rendering", rates, "rooms3d, composed")


if __name__ == "__main__":
    main()
