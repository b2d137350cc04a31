"""How long the runs of a study will take and how much disk they need, from a short measurement.

Training: each method is trained for a second on random images of each image shape of the study, and this machine's
best packing of processes is measured once. Measuring: each metric is timed on random codes of a tenth of the points,
and the time is scaled up; images are counted at the rate of the encoder. Both are estimates: where runs are finished
in the same folder, what measuring them took is used instead.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from unweave.data import FactorSpace
from unweave.data.registry import RECIPES
from unweave.errors import DamagedFileError, UnweaveError
from unweave.evaluation.model_metrics import find_metric
from unweave.files import read_json, write_text
from unweave.methods.registry import describe
from unweave.metrics import METRICS, score
from unweave.progress import progress
from unweave.study.executors import thread_variables
from unweave.study.folder import StudyFolder
from unweave.study.perform import load_data, stand_in
from unweave.study.planning import Job
from unweave.study.scores import Unit, read_scores

_SECONDS = 1.0
_POINTS = 1_000  # points that a metric is timed on at most
_ENCODING = 3.0  # images are encoded about three times as fast as they are trained on: no backward pass
_SCORES_BYTES = 200_000
_ENDLESS = 10**9  # images of a simulator
_PACKING_SECONDS = 4.0  # each packing of processes is tried for so long
_BATCH = 64


class DataFacts(NamedTuple):
    """What the time of a run depends on of its data: image shape, number of images, factor sizes."""

    shape: tuple[int, ...]
    images: int
    factors: tuple[int, ...]


def estimate(folder: StudyFolder, left: Sequence[Job]) -> list[tuple[str, str]]:
    """Facts on what is left to do, as names and values for people."""
    processes, threads, speedup = best_packing(folder.root)
    facts = {job.data: data_facts(job.data, job.training["image_size"]) for job in reversed(left)}
    kinds = dict.fromkeys((_methods(job), facts[job.data].shape) for job in left)
    example = {(_methods(job), facts[job.data].shape): job for job in reversed(left)}
    rates, sizes = {}, {}
    with progress("Measuring", len(kinds) + len(facts), "pieces", transient=True) as advance:
        for kind in kinds:
            rates[kind], sizes[kind] = _train_shortly(example[kind], kind[1])
            advance(1)
        evaluation = {}
        for data, fact in facts.items():
            encoding = _ENCODING * max(rate for (_, shape), rate in rates.items() if shape == fact.shape)
            evaluation[data] = sum(_seconds(unit, fact, encoding) for unit in folder.units)
            advance(1)
    known = _measured_seconds(folder)
    training = measuring = disk = 0.0
    for job in left:
        kind = (_methods(job), facts[job.data].shape)
        training += job.training["steps"] * job.training["batch_size"] / rates[kind]
        measuring += known.get(job.data, evaluation[job.data])
        disk += sizes[kind] + _SCORES_BYTES
    total = training + measuring
    basis = "finished runs" if known else "random codes"
    return [
        ("runs left", f"{len(left):,}"),
        ("training", f"{_duration(training)} of one core"),
        ("measuring", f"{_duration(measuring)} of one core, estimated from {basis}"),
        ("here", f"about {_duration(total / speedup)}: {processes} processes of {threads} threads"),
        ("disk", f"{disk / 1e9:,.1f} GB when finished"),
    ]


def _methods(job: Job) -> str:
    """The method of a run and those of its earlier stages, which take part in every step."""
    return json.dumps([job.method, [_methods(stage) for stage in job.stages.values()]])


def data_facts(data: str, image_size: int | None = None) -> DataFacts:
    """The facts of a data set by its recipe, where that has them: it need not be on this machine."""
    recipe = RECIPES.get(data)
    if recipe is None or recipe.image_shape is None:
        opened = load_data(data, image_size)
        return _facts(opened.image_shape, len(opened) if opened.finite else None, opened.space)
    shape = recipe.image_shape if image_size is None else (image_size, image_size, *recipe.image_shape[2:])
    return _facts(shape, recipe.num_images, recipe.space)


def _facts(shape: tuple[int, ...], images: int | None, space: FactorSpace | None) -> DataFacts:
    sizes = space.grid_shape if space and space.discrete else ()
    return DataFacts(shape, _ENDLESS if images is None else images, sizes)


def _train_shortly(job: Job, shape: tuple[int, ...]) -> tuple[float, float]:
    """Images per second of training like a job, in this process on one thread; and the bytes of its weights."""
    import torch

    taken = [name for name in describe(job.method).settings if name not in (*job.hyperparameters, "labels")]
    own = {name: value for name, value in job.hyperparameters.items() if name not in job.stages}
    settings = {name: job.training[name] for name in taken}
    labels = job.training.get("labels")
    if isinstance(labels, Mapping) and labels.get("labelled") is not None:
        settings["labels"] = {"labelled": 0.5}  # both kinds of rows, whatever the share
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return training_rate(job.method, shape, _SECONDS, job.stages, **settings, **own)
    finally:
        torch.set_num_threads(before)


def _seconds(unit: Unit, facts: DataFacts, encoding: float) -> float:
    """What a unit takes, encoding included."""
    metric = find_metric(unit.metric)
    params = metric.parameters | unit.params
    asked = metric.images(params) if metric.images else 0
    if metric.takes == "method":  # passes through networks: the same image may need several
        return asked / encoding + (metric.seconds(params) if metric.seconds else 0.0)
    images = min(max(asked, unit.num_train + unit.num_test), facts.images)
    seconds = images / encoding
    if metric.takes in ("arrays", "sample", "split") and facts.factors and metric.name in METRICS:
        seconds += _time_metric(unit, facts.factors)
    return seconds


def _time_metric(unit: Unit, factors: tuple[int, ...]) -> float:
    """A metric's time on random codes, scaled up to all points."""
    rng = np.random.default_rng(0)
    train, test = min(unit.num_train, _POINTS), min(unit.num_test, _POINTS // 2)
    codes = rng.normal(size=(train + test, 10))
    labels = np.stack([rng.integers(0, size, train + test) for size in factors], axis=1)
    params: dict[str, Any] = METRICS[unit.metric].settings(unit.protocol) | unit.params
    if unit.metric == "downstream":
        params["sizes"] = (train // 10,)
    start = time.process_time()
    try:
        score(unit.metric, codes[:train], labels[:train], (codes[train:], labels[train:]), **params)
    except UnweaveError:
        return 0.0  # it does not apply to such factors
    scale = unit.num_train / train
    if unit.metric == "downstream":
        scale = sum(min(size, unit.num_train) for size in unit.params.get("sizes", (11_110,))) / (train // 10)
    return (time.process_time() - start) * scale


def _measured_seconds(folder: StudyFolder) -> dict[str, float]:
    """Per data set the median time that measuring took, of runs that are done."""
    seconds: dict[str, list[float]] = {}
    for job in folder.jobs:
        path = folder.run(job.identity) / folder.done_file
        if path.exists():
            once = {
                (row["metric"].partition(".")[0], row["representation"], row["labels"]): row["seconds"]
                for row in read_scores(path)
            }
            seconds.setdefault(job.data, []).append(sum(once.values()))
    return {data: median(values) for data, values in seconds.items()}


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


# --- how many processes with how many threads each ----------------------------------------------------


class Packing(NamedTuple):
    """Processes, threads of each, and how many times as fast all together are as one of one thread."""

    processes: int
    threads: int
    speedup: float


def _are_rates(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            re.fullmatch(r"\d{1,4}x\d{1,4}", name) and isinstance(rate, float) for name, rate in value.items()
        )
    )


def best_packing(root: Path) -> Packing:
    """The best for this machine; measured once per folder and kept, as the bits of a run depend on its threads."""
    path = root / "packing.json"
    try:
        known = read_json(path)
    except (FileNotFoundError, DamagedFileError):
        known = {}
    machine = f"{platform.node()}-{cores()}"
    if not _are_rates(known.get(machine)):
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
                    [sys.executable, "-m", "unweave.study.estimate", str(threads)],
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
    method: str,
    image_shape: tuple[int, ...],
    seconds: float = _PACKING_SECONDS,
    stages: Mapping[str, Job] | None = None,
    **settings: object,
) -> tuple[float, int]:
    """Images per second of training a method on random images, in this process; and the bytes of its weights.

    The images have factors of two values, for methods that learn from labels or pairs; no more of them than latents.
    Earlier ``stages`` are untrained.
    """
    import torch

    from unweave.data import from_arrays
    from unweave.methods import create
    from unweave.networks import accelerate, keep_freed_memory
    from unweave.training.devices import create_fabric
    from unweave.training.loop import Session
    from unweave.training.planning import plan
    from unweave.training.run import Run

    images = np.random.default_rng(0).integers(0, 256, (256, *image_shape), np.uint8)
    count = min(4, int(settings.get("latent_size", 10)))  # type: ignore[call-overload]
    data = from_arrays(images, np.arange(len(images))[:, None] >> np.arange(count) & 1)
    earlier = {name: stand_in(job, lambda _: data) for name, job in (stages or {}).items()}
    model = create(method, data, **settings, **earlier)  # type: ignore[arg-type]
    model.initialise(0)
    keep_freed_memory()
    accelerate(model)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    spec = plan(model, data, 10**9, _BATCH, 1e-4, 0, "32-true")
    session = Session(Run(spec, model), data, create_fabric("cpu", 1, "32-true", "auto"), (), False)
    for step in range(3):  # the first steps make room
        session.step(step)
    start, steps = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        session.step(3 + steps)
        steps += 1
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    return steps * _BATCH / (time.monotonic() - start), weights


if __name__ == "__main__":
    import torch

    torch.set_num_threads(int(sys.argv[1]))
    print(training_rate("beta_vae", (64, 64, 1))[0])
