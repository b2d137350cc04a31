"""Speed of training: our engine next to plain PyTorch, what each method's terms cost, and what the loop costs.

Competitors take turns in one process each (kept memory is a property of a process); figures are medians. Ratios
are within one run. Image sizes are compared by processor time, which other work on the machine disturbs less than the
clock: with one thread the two are the same on a machine that does nothing else.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, RandomSampler
from torch.utils.data import Dataset as TorchDataset

import unweave as uw
from unweave.methods import VAE
from unweave.networks.fast_dense import linear
from unweave.training import Callback

BATCH, TURNS, STEPS = 64, 7, 4
KEPT = 640  # images whose y is kept: a third of the steps sees most of them for the first time
LOADER, INDEXED, OURS = "plain eager, DataLoader", "plain eager, indexed tensors", "unweave"
DATA = {1: "dsprites", 3: "color_dsprites"}


class PerItem(TorchDataset):
    """One Python call per image, as most scripts have it."""

    def __init__(self, data: uw.data.Dataset) -> None:
        self.data, self.rng = data, np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, row: int) -> torch.Tensor:
        image = self.data.images([row], self.rng)[0]
        return torch.from_numpy(image.transpose(2, 0, 1).astype(np.float32) / 255)


def plain_steps(data: uw.data.Dataset, use_loader: bool) -> Iterator[None]:
    """A beta-VAE in plain eager PyTorch: the same networks, BCE, Adam."""
    method = uw.methods.create("beta_vae", data, seed=0)
    optimiser = torch.optim.Adam(method.parameters(), 1e-4)
    items = PerItem(data)
    loader = iter(DataLoader(items, BATCH, sampler=RandomSampler(items, replacement=True)))
    for step in range(10**9):
        images = next(loader) if use_loader else data.batch(step, BATCH).images.contiguous()
        mean, log_variance = method.encoder(images)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        bce = F.binary_cross_entropy_with_logits(method.decoder(z), images, reduction="sum") / BATCH
        kl = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum() / BATCH
        optimiser.zero_grad()
        (bce + 4 * kl).backward()
        optimiser.step()
        yield


class Turns(Callback):
    """Hands control back after each record, every STEPS steps, so that a run can be timed in turns."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.start = 0.0, 0.0

    def on_log(self, step: int, values: Any) -> None:
        self.connection.send(since(self.start) if step > STEPS else (0.0, 0.0))
        if self.connection.recv() is None:
            raise KeyboardInterrupt
        self.start = clocks()


def clocks() -> tuple[float, float]:
    """Seconds by the clock, and of this process's work."""
    return time.perf_counter(), time.process_time()


def since(start: tuple[float, float]) -> tuple[float, float]:
    now = clocks()
    return now[0] - start[0], now[1] - start[1]


def work(connection: Connection, threads: int, name: str, options: dict[str, Any], channels: int) -> None:
    """One competitor: makes some steps whenever it is asked to."""
    torch.set_num_threads(threads)
    data = uw.data.load(DATA[channels], image_size=options.pop("image_size", 64))
    if name == OURS:
        method = uw.methods.create(options.pop("method", "beta_vae"), data, **options)
        try:
            uw.train(method, data, 10**6, callbacks=[Turns(connection)], log_every=STEPS, keep_memory=True)
        except KeyboardInterrupt:
            return
    steps = plain_steps(data, name == LOADER)
    for _ in range(STEPS):
        next(steps)
    connection.send((0.0, 0.0))
    while connection.recv() is not None:
        start = clocks()
        for _ in range(STEPS):
            next(steps)
        connection.send(since(start))


def take_turns(
    competitors: dict[str, tuple[str, dict[str, Any]]], threads: int, channels: int, together: int = 1
) -> dict[str, list[tuple[float, float]]]:
    """Seconds of each turn of each competitor, by the clock and of the processor; ``together`` turns at a time."""
    context = multiprocessing.get_context("spawn")
    connections, processes = {}, []
    for label, (name, options) in competitors.items():
        connections[label], theirs = context.Pipe()
        arguments = (theirs, threads, name, dict(options), channels)
        processes.append(context.Process(target=work, args=arguments, daemon=True))
        processes[-1].start()
        connections[label].recv()
    seconds: dict[str, list[tuple[float, float]]] = {label: [] for label in competitors}
    labels = list(connections)
    for _ in range(TURNS):
        for first in range(0, len(labels), together):
            at_once = labels[first : first + together]
            for label in at_once:
                connections[label].send(1)
            for label in at_once:
                seconds[label].append(connections[label].recv())
    for connection in connections.values():
        connection.send(None)
    for process in processes:
        process.join(timeout=10)
        process.kill()
    return seconds


def compare(
    title: str, competitors: dict[str, tuple[str, dict[str, Any]]], threads: int, channels: int
) -> None:
    """Print images/s and the ratio to the first competitor."""
    turns = take_turns(competitors, threads, channels)
    seconds = {label: [clock for clock, _ in pairs] for label, pairs in turns.items()}
    first = next(iter(competitors))
    print(f"\n{title} ({threads} thread{'s' * (threads > 1)}, {channels} channel{'s' * (channels > 1)})")
    for label in competitors:
        rate = STEPS * BATCH / statistics.median(seconds[label])
        ratio = statistics.median(a / b for a, b in zip(seconds[first], seconds[label], strict=True))
        print(f"  {label:<44}{rate:>10,.0f} images/s{ratio:>8.2f}x", flush=True)


def image_sizes(sides: tuple[int, ...] = (32, 64)) -> None:
    """A step at some image sizes, in one process and in two at once: images per second of work, share of sgemm."""
    torch.set_num_threads(1)
    peak = sgemm_peak()
    print(
        f"\nA beta-VAE step by image size, processor time (1 thread; sgemm reaches {peak / 1e9:.0f} GFLOP/s)"
    )
    for side in sides:
        operations = operations_per_image(side)
        for together in (1, 2):
            competitors = {
                f"{name} {number}": (name, {"image_size": side})
                for name in (INDEXED, OURS)
                for number in range(together)
            }
            turns = take_turns(competitors, 1, 1, together)
            medians = {}
            for name in (INDEXED, OURS):
                spent = [
                    work for label, pairs in turns.items() if label.startswith(name) for _, work in pairs
                ]
                medians[name] = statistics.median(spent)
                rate = STEPS * BATCH / medians[name]
                share = 100 * rate * operations / peak
                ratio = medians[INDEXED] / medians[name]
                many = "2 processes" if together > 1 else "1 process"
                line = f"  {side} pixels, {many:<12}{name:<31}{rate:>8,.0f} images/s{ratio:>7.2f}x"
                print(f"{line}{share:>5.0f} % of sgemm", flush=True)


def operations_per_image(side: int) -> float:
    """Additions and multiplications of a step's matrix products and convolutions, as defined, per image."""
    from torch.utils.flop_counter import FlopCounterMode

    data = uw.data.load("dsprites", image_size=side)
    method = uw.methods.create("beta_vae", data, seed=0)
    images = data.batch(0, BATCH).images.contiguous()
    with FlopCounterMode(display=False) as counter:
        mean, _ = method.encoder(images)
        method.decoder(mean).sum().backward()
    return counter.get_total_flops() / BATCH


def sgemm_peak() -> float:
    """Operations per second of the best of many products of matrices that fit into the cache, by either library."""
    size, best = 512, 0.0
    first, second = torch.randn(size, size), torch.randn(size, size)
    products: list[Callable[[], torch.Tensor]] = [lambda: torch.mm(first, second)]
    if torch.backends.mkldnn.is_available():
        products.append(lambda: linear(first, second, torch.zeros(size)))  # by oneDNN
    for multiply in products * 50:
        start = time.process_time()
        multiply()
        best = max(best, 2 * size**3 / max(time.process_time() - start, 1e-9))
    return best


def loop_share() -> None:
    """What of a step is not the method's arithmetic: batches, logging, progress, wrappers."""
    torch.set_num_threads(1)
    data = uw.data.load("dsprites")
    inside = [0.0]

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                inside[0] += time.perf_counter() - start

        return call

    method: VAE = uw.methods.create("beta_vae", data)
    method.begin = timed(method.begin)  # type: ignore[method-assign]
    method.loss = timed(method.loss)  # type: ignore[method-assign]
    backward, step = torch.Tensor.backward, torch.optim.Adam.step
    torch.Tensor.backward, torch.optim.Adam.step = timed(backward), timed(step)  # type: ignore[method-assign]
    try:
        uw.train(method, data, 60, keep_memory=True)  # the same batches: the disk is not part of the loop
        inside[0] = 0.0
        clock = _Clock()
        uw.train(method, data, 60, callbacks=[clock])
        total = clock.end - clock.start
    finally:
        torch.Tensor.backward, torch.optim.Adam.step = backward, step  # type: ignore[method-assign]
    print(f"\nThe loop itself: {100 * (1 - inside[0] / total):.1f} % of a step of {1000 * total / 60:.1f} ms")


def kept_y() -> None:
    """What a step of MS-VAE costs with y of each row kept, and with y computed at every step."""
    torch.set_num_threads(1)
    source = uw.data.load("dsprites")
    rows = np.random.default_rng(0).choice(len(source), KEPT, replace=False)
    data = uw.data.from_arrays(source.images(rows), name="some sprites")
    first = uw.train(uw.methods.create("beta_tcvae", data), data, 1, keep_memory=True)
    print("\nA step of MS-VAE, batches of 32 (1 thread, 1 channel, 64 pixels)")
    for width in (64, 16):
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(3):
            for keep in (True, False):
                method = uw.methods.create("ms_vae", data, first=first, width=width, keep_y=keep)
                clock = _Clock()
                uw.train(method, data, 3 * KEPT // 32, 32, callbacks=[clock], log_every=KEPT // 32)
                seconds[keep].append((clock.end - clock.first) / (2 * KEPT // 32))
        kept, computed = (1000 * statistics.median(seconds[keep]) for keep in (True, False))
        saved = 100 * (1 - kept / computed)
        print(
            f"  width {width}: kept y {kept:.1f} ms, computed {computed:.1f} ms, {saved:.0f} % saved",
            flush=True,
        )


class _Clock(Callback):
    start = first = end = 0.0

    def on_start(self, run: Any) -> None:
        self.start = time.perf_counter()

    def on_log(self, step: int, values: Any) -> None:
        self.end = time.perf_counter()
        self.first = self.first or self.end


def main() -> None:
    plain = {LOADER: (LOADER, {}), INDEXED: (INDEXED, {}), OURS: (OURS, {})}
    image_sizes()
    for threads in (1, 2):
        for channels in (1, 3):
            compare("A beta-VAE step", plain, threads, channels)
    methods = {
        "beta_vae": {"method": "beta_vae"},
        "annealed_vae": {"method": "annealed_vae"},
        "beta_tcvae": {"method": "beta_tcvae"},
        "dip_vae_i": {"method": "dip_vae_i"},
        "dip_vae_ii": {"method": "dip_vae_ii"},
        "dip_vae_ii, third moments": {"method": "dip_vae_ii", "lambda_3": 200},
        "beta_vae, correlated posterior": {"method": "beta_vae", "correlation": 0.9},
        "factor_vae": {"method": "factor_vae"},
    }
    compare("What the terms cost", {label: (OURS, options) for label, options in methods.items()}, 1, 1)
    given = {
        name: (OURS, {"method": name, "latent_size": 5}) for name in ("beta_vae", "full_vae", "ivae", "idvae")
    }
    inferred = {
        name: (OURS, {"method": name, "latent_size": 5, "labels": {"labelled": 0.1}})
        for name in ("ss_ivae", "ss_idvae")
    }
    compare("What labels cost (the goal for full_vae, ivae and idvae: 0.80x)", given | inferred, 1, 1)
    loop_share()
    kept_y()


if __name__ == "__main__":
    main()
