"""How long the runs of a study will take and how much disk they need, from a short measurement.

Training: each method is trained for a second on random images of each image shape of the study, and this machine's
best packing of processes is measured once. Measuring: each metric is timed on random codes of a tenth of the points,
and the time is scaled up; images are counted at the rate of the encoder. Both are estimates: where runs are finished
in the same folder, what measuring them took is used instead.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from unweave.data import FactorSpace
from unweave.data.registry import RECIPES
from unweave.errors import UnweaveError
from unweave.metrics import METRICS, score
from unweave.progress import progress
from unweave.study.job import Job
from unweave.study.packing import best_packing, training_rate
from unweave.study.store import StudyFolder
from unweave.study.units import Unit
from unweave.study.work import load_data

_SECONDS = 1.0
_POINTS = 1_000  # points that a metric is timed on at most
_ENCODING = 3.0  # images are encoded about three times as fast as they are trained on: no backward pass
_SCORES_BYTES = 200_000
_ENDLESS = 10**9  # images of a simulator


class Look(NamedTuple):
    """What the time of a run depends on of its data: image shape, number of images, factor sizes."""

    shape: tuple[int, ...]
    images: int
    factors: tuple[int, ...]


def estimate(folder: StudyFolder, left: Sequence[Job]) -> list[tuple[str, str]]:
    """Facts on what is left to do, as names and values for people."""
    processes, threads, speedup = best_packing(folder.root)
    looks = {job.data: look(job.data, job.training["image_size"]) for job in reversed(left)}
    kinds = dict.fromkeys((job.method, looks[job.data].shape) for job in left)
    first = {(job.method, looks[job.data].shape): job for job in reversed(left)}
    rates, sizes = {}, {}
    with progress("Measuring", len(kinds) + len(looks), "pieces", transient=True) as advance:
        for kind in kinds:
            rates[kind], sizes[kind] = _train_shortly(first[kind], kind[1])
            advance(1)
        evaluation = {}
        for data, found in looks.items():
            encoding = _ENCODING * max(rate for (_, shape), rate in rates.items() if shape == found.shape)
            evaluation[data] = sum(_seconds(unit, found, encoding) for unit in folder.units)
            advance(1)
    known = _known(folder)
    training = measuring = disk = 0.0
    for job in left:
        kind = (job.method, looks[job.data].shape)
        training += job.training["steps"] * job.training["batch_size"] / rates[kind]
        measuring += known.get(job.data, evaluation[job.data])
        disk += sizes[kind] + _SCORES_BYTES
    total = training + measuring
    told = "finished runs" if known else "random codes"
    return [
        ("runs left", f"{len(left):,}"),
        ("training", f"{_duration(training)} of one core"),
        ("measuring", f"{_duration(measuring)} of one core, estimated from {told}"),
        ("here", f"about {_duration(total / speedup)}: {processes} processes of {threads} threads"),
        ("disk", f"{disk / 1e9:,.1f} GB when finished"),
    ]


def look(data: str, image_size: int | None = None) -> Look:
    """The look of a data set by its description, where it has one: it need not be on this machine."""
    recipe = RECIPES.get(data)
    if recipe is None or recipe.image_shape is None:
        opened = load_data(data, image_size)
        return _look(opened.image_shape, len(opened) if opened.finite else None, opened.space)
    shape = recipe.image_shape if image_size is None else (image_size, image_size, *recipe.image_shape[2:])
    return _look(shape, recipe.num_images, recipe.space)


def _look(shape: tuple[int, ...], images: int | None, space: FactorSpace | None) -> Look:
    sizes = space.grid_shape if space and space.discrete else ()
    return Look(shape, _ENDLESS if images is None else images, sizes)


def _train_shortly(job: Job, shape: tuple[int, ...]) -> tuple[float, float]:
    """Images per second of training like a job, in this process on one thread; and the bytes of its weights."""
    import torch

    own = ("latent_size", "architecture", "reconstruction", "correlation", "capacity", "extra_terms", "prior")
    settings = {name: job.training[name] for name in own}
    labels = job.training["labels"]
    if isinstance(labels, Mapping) and labels.get("labelled") is not None:
        settings["labels"] = {"labelled": 0.5}  # both kinds of rows, whatever the share
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return training_rate(job.method, shape, _SECONDS, **settings, **job.hyperparameters)
    finally:
        torch.set_num_threads(before)


def _seconds(unit: Unit, found: Look, encoding: float) -> float:
    """What a unit takes, encoding included."""
    metric = METRICS.get(unit.metric)
    asked = metric.images(metric.parameters | unit.params) if metric and metric.images else 0
    images = min(max(asked, unit.num_train + unit.num_test), found.images)
    seconds = images / encoding
    if metric and metric.takes in ("arrays", "sample", "split") and found.factors:
        seconds += _time_metric(unit, found.factors)
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


def _known(folder: StudyFolder) -> dict[str, float]:
    """Per data set the median time that measuring took, of runs that are done."""
    seconds: dict[str, list[float]] = {}
    for job in folder.jobs:
        path = folder.run(job.identity) / folder.done_file
        if path.exists():
            rows = json.loads(path.read_text())["rows"]
            once = {(row[0].partition(".")[0], row[1]): row[4] for row in rows}
            seconds.setdefault(job.data, []).append(sum(once.values()))
    return {data: median(values) for data, values in seconds.items()}


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
