"""How long the runs of a study will take and how much disk they need, from a short measurement.

Training: each method is trained for a second on random images of each image shape of the study, and this machine's
best packing of processes is measured once. Measuring: each metric is timed on random codes of a tenth of the points,
and the time is scaled up; images are counted at the rate of the encoder. Both are processor time: that of another
program on a busy machine does not count. They are estimates: where runs are finished in the same folder, what measuring
them took is used instead. How far they can be trusted is said by a range: of training by the slowest and the fastest
piece of that second, of measuring by the quartiles of finished runs, or else half and twice the estimate.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from unweave.data import FactorSpace
from unweave.data.registry import RECIPES
from unweave.data.storage.prepared import ENVIRONMENT_VARIABLE
from unweave.errors import DamagedFileError, UnweaveError
from unweave.evaluation.model_metrics import find_metric
from unweave.files import read_json, write_text
from unweave.metrics import METRICS, score
from unweave.processes import cores, thread_variables
from unweave.progress import progress
from unweave.study.folder import StudyFolder
from unweave.study.perform import load_data, stand_in
from unweave.study.planning import Job
from unweave.study.results import split_metric
from unweave.study.scores import Unit, read_scores
from unweave.study.spec import Training

_SECONDS, _PIECES = 1.0, 4
_POINTS = 1_000  # points that a metric is timed on at most
_ENCODING = 3.0  # images are encoded about three times as fast as they are trained on: no backward pass
_SCORES_BYTES = 200_000
_ENDLESS = 10**9  # images of a simulator
_PACKING_SECONDS = 4.0  # each packing of processes is tried for so long
_BATCH = 64
DataKey = tuple[str, int | None, str | None]  # name, size of the images, file of labels
_EACH = ("representation", "labels", "part")  # a metric is computed once for each of these


class DataFacts(NamedTuple):
    """What the time of a run depends on of its data: image shape, number of images, factor sizes."""

    shape: tuple[int, ...]
    images: int
    factors: tuple[int, ...]


class Range(NamedTuple):
    """An estimate in seconds, and between what it is expected to be."""

    low: float
    middle: float
    high: float

    def plus(self, other: Range, times: float = 1.0) -> Range:
        """This and so many times another one, one after the other."""
        return Range(*(mine + times * each for mine, each in zip(self, other, strict=True)))

    def __str__(self) -> str:
        return f"{_duration(self.middle)} ({_duration(self.low)} to {_duration(self.high)})"


class Kind(NamedTuple):
    """Runs whose steps take equally long: their methods, earlier stages included, and the images' shape."""

    methods: str
    shape: tuple[int, ...]


class Cost(NamedTuple):
    """What an image takes in training, in seconds of one core; and the bytes of a run's weights."""

    seconds: Range
    size: int


def estimate(folder: StudyFolder, left: Sequence[Job]) -> list[tuple[str, str]]:
    """Facts on what is left to do, as names and values for people."""
    processes, threads, speedup = best_packing(folder.root)
    facts = {_data(job): data_facts(*_data(job)) for job in left}
    examples = {_kind(job, facts): job for job in reversed(left)}
    costs: dict[Kind, Cost] = {}
    unknown: dict[str, str] = {}
    evaluation: dict[DataKey, float] = {}
    with progress("Measuring", len(examples) + len(facts), "pieces", transient=True) as advance:
        for kind, example in examples.items():
            try:
                costs[kind] = _train_shortly(example, kind.shape)
            except UnweaveError as error:  # random images are nothing that it can learn from
                unknown[example.method] = str(error)
            advance(1)
        for data, fact in facts.items():
            passes = [cost.seconds.middle for kind, cost in costs.items() if kind.shape == fact.shape]
            encoding = _ENCODING / min(passes) if passes else math.inf
            evaluation[data] = sum(_seconds(unit, fact, encoding) for unit in folder.units)
            advance(1)
    known = _measured_seconds(folder)
    training = measuring = Range(0.0, 0.0, 0.0)
    disk = 0.0
    for job in left:
        cost = costs.get(_kind(job, facts))
        if cost is not None:
            training = training.plus(cost.seconds, job.training["steps"] * job.training["batch_size"])
            disk += cost.size + _SCORES_BYTES
        guess = evaluation[_data(job)]
        measuring = measuring.plus(known.get(_data(job), Range(guess / 2, guess, 2 * guess)))
    total = training.plus(measuring)
    here = Range(*(seconds / speedup for seconds in total))
    basis = "finished runs" if known else "random codes"
    lines = [
        ("runs left", f"{len(left):,}"),
        ("training", f"{training} of one core"),
        ("measuring", f"{measuring} of one core, estimated from {basis}"),
        ("here", f"about {here}: {processes} processes of {threads} threads"),
        ("disk", f"{disk / 1e9:,.1f} GB when finished"),
    ]
    return lines + [("not counted", f"{method}: {reason}") for method, reason in unknown.items()]


def steps_within(
    jobs: Sequence[Job], processes: int, seconds: float, least: int, most: int, multiple: int = 500
) -> tuple[int, float]:
    """How many steps each run may have to be trained here in so many seconds, and the seconds that takes.

    The steps are a multiple of ``multiple``, at least ``least`` and at most ``most``. All runs are taken to train as
    fast as the slowest method does now, on one thread: a busy machine gets fewer steps.
    """
    examples = {job.method: job for job in jobs}
    with progress("Measuring", len(examples), "methods", transient=True) as advance:
        costs = []
        for job in examples.values():
            costs.append(_train_shortly(job, data_facts(*_data(job)).shape, time.monotonic).seconds.middle)
            advance(1)
    turns = math.ceil(len(jobs) / processes)
    one = turns * max(job.training["batch_size"] for job in jobs) * max(costs)
    steps = min(max(int(seconds / one) // multiple * multiple, least), most)
    return steps, steps * one


def _data(job: Job) -> DataKey:
    """The data of a run: its name, the size of the images and the file of their labels."""
    return job.data, job.training["image_size"], job.training.get("labels_csv")


def _kind(job: Job, facts: Mapping[DataKey, DataFacts]) -> Kind:
    return Kind(_methods(job), facts[_data(job)].shape)


def _methods(job: Job) -> str:
    """The method of a run and those of its earlier stages, which take part in every step."""
    return json.dumps([job.method, [_methods(stage) for stage in job.stages.values()]])


def data_facts(data: str, image_size: int | None = None, labels_csv: str | None = None) -> DataFacts:
    """The facts of a data set by its recipe, where that has them: it need not be on this machine."""
    recipe = RECIPES.get(data)
    if recipe is None or recipe.image_shape is None:
        opened = load_data(data, image_size, None, labels_csv)
        return _facts(opened.image_shape, len(opened) if opened.finite else None, opened.space)
    shape = recipe.image_shape if image_size is None else (image_size, image_size, *recipe.image_shape[2:])
    return _facts(shape, recipe.num_images, recipe.space)


def _facts(shape: tuple[int, ...], images: int | None, space: FactorSpace | None) -> DataFacts:
    sizes = space.grid_shape if space and space.discrete else ()
    return DataFacts(shape, _ENDLESS if images is None else images, sizes)


def _train_shortly(job: Job, shape: tuple[int, ...], clock: Callable[[], float] = time.process_time) -> Cost:
    """What training like a job takes in this process on one thread."""
    from unweave.training.devices import one_thread

    with one_thread(), tempfile.TemporaryDirectory(prefix="unweave-") as scratch, _data_folder(scratch):
        rates, size = training_rates(job, shape, _SECONDS / _PIECES, _PIECES, clock)
    return Cost(Range(1 / max(rates), 1 / median(rates), 1 / min(rates)), size)


@contextmanager
def _data_folder(folder: str) -> Iterator[None]:
    """Whatever methods keep of random images is kept elsewhere."""
    before = os.environ.get(ENVIRONMENT_VARIABLE)
    os.environ[ENVIRONMENT_VARIABLE] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ[ENVIRONMENT_VARIABLE]
        else:
            os.environ[ENVIRONMENT_VARIABLE] = before


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
    metric = METRICS[unit.metric]
    params: dict[str, Any] = metric.parameters | metric.settings(unit.protocol) | unit.params
    params, scale = _reduced(params, metric.sizes, train // 10, unit.num_train)
    took = []
    for _ in range(2):  # what is compiled at its first use takes longer then than the metric itself
        start = time.process_time()
        try:
            score(unit.metric, codes[:train], labels[:train], (codes[train:], labels[train:]), **params)
        except UnweaveError:
            return 0.0  # it does not apply to such factors
        took.append(time.process_time() - start)
    return min(took) * (scale or unit.num_train / train)


def _reduced(
    params: dict[str, Any], sizes: Sequence[str], few: int, most: int
) -> tuple[dict[str, Any], float | None]:
    """Parameters whose numbers of points are ``few``, and how many times as many they were; None if there are none.

    Examples
    --------
    >>> _reduced({"sizes": (10, 100, 1000), "seed": 0}, ["sizes"], 100, 500)
    ({'sizes': (100,), 'seed': 0}, 6.1)
    """
    if not sizes:
        return params, None
    asked = {name: params[name] if isinstance(params[name], Sequence) else [params[name]] for name in sizes}
    total = sum(min(size, most) for each in asked.values() for size in each)
    reduced = {name: (few,) if isinstance(params[name], Sequence) else few for name in sizes}
    return params | reduced, total / (few * len(sizes))


def _measured_seconds(folder: StudyFolder) -> dict[DataKey, Range]:
    """Per data set the time that measuring took, of runs that are done: the median and the quartiles."""
    seconds: dict[DataKey, list[float]] = {}
    for job in folder.jobs:
        path = folder.run(job.identity) / folder.done_file
        if path.exists():
            once = {
                (split_metric(row["metric"])[0], *(row.get(name, "") for name in _EACH)): row["seconds"]
                for row in read_scores(path)
            }
            seconds.setdefault(_data(job), []).append(sum(once.values()))
    return {data: Range(*np.quantile(values, [0.25, 0.5, 0.75]).tolist()) for data, values in seconds.items()}


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
                    [sys.executable, "-P", "-m", "unweave.study.estimate", str(threads)],
                    env={**os.environ, **thread_variables(threads)},
                    stdout=subprocess.PIPE,
                )
                for _ in range(processes)
            ]
            rates[f"{processes}x{threads}"] = sum(float(worker.communicate()[0]) for worker in workers)
            advance(1)
    alone = rates.get("1x1") or rates[f"{cores()}x1"] / cores()  # as fast as its share of all
    return {packing: rate / alone for packing, rate in rates.items()}


def training_rates(
    job: Job, image_shape: tuple[int, ...], seconds: float, pieces: int, clock: Callable[[], float]
) -> tuple[list[float], int]:
    """Images per second of training like a job on random images, piece by piece; and the bytes of its weights.

    The images have factors of two values, for methods that learn from labels or pairs; no more of them than latents.
    Earlier stages are untrained.
    """
    from unweave.data import from_arrays
    from unweave.training.trial import trial_steps

    images = np.random.default_rng(0).integers(0, 256, (256, *image_shape), np.uint8)
    count = min(4, int(job.training.get("latent_size", 10)))
    data = from_arrays(images, np.arange(len(images))[:, None] >> np.arange(count) & 1)
    model = stand_in(_with_any_labels(job), lambda _: data).method
    steps = trial_steps(model, data, _BATCH)
    step = 0
    while step < 3:  # the first steps make room
        step = next(steps)
    rates = []
    for _ in range(pieces):
        start, begun = clock(), step
        while step == begun or clock() - start < seconds:
            step = next(steps)
        rates.append((step - begun) * _BATCH / (clock() - start))
    return rates, sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())


def _with_any_labels(job: Job) -> Job:
    """A job that learns from whatever factors there are; labels for all rows, or for some where it has some."""
    training = dict(job.training)
    labels = training.get("labels")
    if labels is not None:
        some = isinstance(labels, Mapping) and labels.get("labelled") is not None
        training["labels"] = {"labelled": 0.5} if some else None
    stages = {name: _with_any_labels(stage) for name, stage in job.stages.items()}
    return replace(job, training=training, stages=stages)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(int(sys.argv[1]))
    example = Job("random", "beta_vae", {"beta": 4.0}, Training().model_dump(), 0, "")
    print(training_rates(example, (64, 64, 1), _PACKING_SECONDS, 1, time.monotonic)[0][0])
