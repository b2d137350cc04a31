"""Speed of the networks room: a full beta-VAE step of the papers' network, batch 64, plain and accelerated.

Each competitor has a process of its own, since kept memory is a property of a process. They take turns, and
the figures are medians, so that a slow moment of the machine hits all of them. The share of peak compares the
multiply-adds that the step needs with those of a large matrix product, timed in the same turns.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unweave.networks import accelerate, create_networks, initialise, keep_freed_memory
from unweave.objectives.reconstruction import bernoulli

BATCH, SIZE, LATENTS = 64, 64, 10
TURNS, STEPS_A_TURN = 9, 2
PLAIN = "plain eager, BCE, Adam"
COMPETITORS = {
    PLAIN: (),
    "accelerated, kept memory": ("accelerate", "memory"),
    "+ bernoulli, fused Adam": ("accelerate", "memory", "objective"),
}


def main() -> None:
    context = multiprocessing.get_context("spawn")
    workers: dict[str, Connection] = {}
    processes = []
    for name, switches in COMPETITORS.items():
        workers[name], theirs = context.Pipe()
        processes.append(context.Process(target=work, args=(theirs, switches), daemon=True))
        processes[-1].start()
    for threads in (1, 2) if (os.cpu_count() or 1) > 1 else (1,):
        for channels in (1, 3):
            compare(workers, threads, channels)
    for connection in workers.values():
        connection.send(None)
    for process in processes:
        process.join()


def compare(workers: dict[str, Connection], threads: int, channels: int) -> None:
    """One table: threads and channels fixed, competitors in turns."""
    for connection in workers.values():
        connection.send((threads, channels))
        connection.recv()
    peaks: list[float] = []
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(TURNS):
        for name, connection in workers.items():
            connection.send("step")
            seconds[name].append(connection.recv())
        connection.send("peak")
        peaks.append(connection.recv())
    peak = statistics.median(peaks)
    needed = floating_point_operations(channels)
    print(f"\n{threads} thread(s), {channels} channel(s); matrix product {peak / 1e9:.0f} GFLOP/s")
    for name, times in seconds.items():
        ratios = [plain / own for plain, own in zip(seconds[PLAIN], times, strict=True)]
        median = statistics.median(times)
        print(
            f"  {name:<28}{BATCH / median:>8,.0f} images/s{statistics.median(ratios):>7.2f}x"
            f"{needed / median / peak:>7.0%} of peak (fastest turn {1e3 * min(times):.0f} ms a step)",
            flush=True,
        )


def work(connection: Connection, switches: tuple[str, ...]) -> None:
    """A competitor: takes (threads, channels), then answers "step" and "peak" until told None."""
    if "memory" in switches:
        keep_freed_memory()
    a, b = torch.rand(2, 1024, 1024)
    step = make_step(1, switches)
    while (order := connection.recv()) is not None:
        if order == "step":
            connection.send(timed(step) / STEPS_A_TURN)
        elif order == "peak":
            connection.send(2 * 1024**3 / timed(lambda: a @ b))
        else:
            threads, channels = order
            torch.set_num_threads(threads)
            step = make_step(channels, switches)
            step()
            connection.send("ready")


def make_step(channels: int, switches: tuple[str, ...]) -> Callable[[], None]:
    """Forward, reconstruction, KL, backward, Adam: a few times over."""
    encoder, decoder = create_networks("conv", (SIZE, SIZE, channels), LATENTS)
    networks = nn.ModuleList([encoder, decoder])
    generator = torch.Generator().manual_seed(0)
    initialise(networks, generator)
    if "accelerate" in switches:
        accelerate(networks)
    ours = "objective" in switches
    optimiser = torch.optim.Adam(networks.parameters(), 1e-4, fused=True if ours else None)
    images = torch.rand(BATCH, SIZE, SIZE, channels, generator=generator).permute(0, 3, 1, 2)
    if not switches:
        images = images.contiguous()

    def reconstruction(logits: Tensor) -> Tensor:
        if ours:
            return bernoulli(logits, images)
        return F.binary_cross_entropy_with_logits(logits, images, reduction="sum") / BATCH

    def step() -> None:
        for _ in range(STEPS_A_TURN):
            mean, log_variance = encoder(images)
            z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
            kl = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum() / BATCH
            loss = reconstruction(decoder(z)) + 4 * kl
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return step


def floating_point_operations(channels: int) -> float:
    """Those of one step: two per multiply-add, forward and both gradients; none for the images' gradient."""
    encoder, decoder = create_networks("conv", (SIZE, SIZE, channels), LATENTS)
    counts: list[int] = []

    def count(layer: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        grid = inputs[0] if isinstance(layer, nn.ConvTranspose2d) else output
        counts.append(layer.weight.numel() * grid[0, 0].numel() if grid.ndim == 4 else layer.weight.numel())

    for layer in nn.ModuleList([encoder, decoder]).modules():
        if hasattr(layer, "weight"):
            layer.register_forward_hook(count)
    with torch.no_grad():
        decoder(encoder(torch.zeros(1, channels, SIZE, SIZE))[0])
    return 2.0 * BATCH * (3 * sum(counts) - counts[0])


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
