"""The pieces that a run's evaluation is made of; each is computed and kept by itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from unweave.data import Dataset
from unweave.errors import ArgumentError, DataError
from unweave.evaluation.evaluate import SAMPLED, UNSUPERVISED, applies, check_settings
from unweave.methods import LabelMode
from unweave.metrics import METRICS, Score, score
from unweave.study.faults import place_in_evaluation
from unweave.study.source import Source
from unweave.study.spec import Evaluation, MetricEntry

UDR = "udr"
UDR_IMAGES = 1_000
LABEL_MODES: tuple[LabelMode, ...] = ("given", "predicted", "unknown")
_TRIAL = 40  # points
_OF_SAMPLED_CODES = ("reconstruction", "kl", "elbo")


@dataclass(frozen=True)
class Unit:
    """One metric of one representation, with everything that decides its value."""

    label: str
    metric: str
    representation: str
    protocol: str
    num_train: int
    num_test: int
    seed: int
    params: dict[str, Any]
    labels: LabelMode | None = None  # what an encoder that takes labels u gets as u

    @property
    def file(self) -> str:
        """The name of the file that keeps the score; another setting has another name."""
        values = {name: value for name, value in asdict(self).items() if (name, value) != ("labels", None)}
        # Labels are part of the representation here, as in all files ever written: finished work is not redone.
        representation = f"{self.representation}_u_{self.labels}" if self.labels else self.representation
        values["representation"] = representation
        digest = hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:10]
        suffix = "safetensors" if self.metric == UDR else "json"  # of a run alone UDR knows the codes only
        return f"{self.label}-{representation}-{digest}.{suffix}"

    @property
    def codes(self) -> str:
        """Which codes it is computed from: those of the mean, or sampled ones."""
        return "mean" if _of_posterior(self.metric) else self.representation


def with_labels(found: list[Unit], modes: Sequence[LabelMode]) -> list[Unit]:
    """The units of a method whose encoder takes labels: each once for each of ``modes``.

    UDR compares codes that saw no true label.
    """
    if not modes:
        return found
    labelled = []
    for unit in found:
        labelled += [unit] if unit.metric == UDR else [replace(unit, labels=mode) for mode in modes]
    return labelled


def units(evaluation: Evaluation, source: Source | None = None) -> list[Unit]:
    """All units of an evaluation, checked; a mistake is told with the line of ``source`` it stands in."""
    source = source or Source({})
    found: dict[tuple[str, str], Unit] = {}
    for representation in evaluation.representations:
        for entry in _entries(evaluation):
            try:
                unit = _checked_unit(entry, representation, evaluation, found)
            except ArgumentError as error:
                place = place_in_evaluation(error, evaluation, entry.name, source)
                given = {**evaluation.params.get(entry.metric, {}), **entry.params}
                whose = f"{entry.name}: " if error.argument in given else ""
                raise DataError(f"{place}: {whose}{error}") from error
            found.setdefault((unit.label, unit.representation), unit)
    for name in evaluation.params:
        if name not in {entry.metric for entry in _entries(evaluation)}:
            unused = ArgumentError("evaluation.params", name, "is not one of the study's metrics")
            raise DataError(f"{source.place(('evaluation', 'params', name))}: {unused}")
    return list(found.values())


def _checked_unit(
    entry: MetricEntry, representation: str, evaluation: Evaluation, found: Mapping[tuple[str, str], Unit]
) -> Unit:
    unit = _unit(entry, representation, evaluation)
    own = {name: value for name, value in unit.params.items() if (unit.metric, name) != (UDR, "num_images")}
    check_settings(unit.metric, own)
    if found.get((unit.label, unit.representation), unit) != unit:
        raise ArgumentError(
            "metrics", entry.name, "is there twice with other parameters; name one with 'as:'"
        )
    return unit


def check_values(evaluation: Evaluation, found: Sequence[Unit], source: Source | None = None) -> None:
    """Try the metrics that were given parameters on a few points, so that a bad value is told before any run."""
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 2, (2, _TRIAL, 2))
    codes = factors + rng.normal(size=factors.shape)
    for unit in found:
        if (
            unit.params
            and unit.metric in METRICS
            and METRICS[unit.metric].takes not in ("models", "posterior")
        ):
            params = {
                name: value for name, value in unit.params.items() if name not in METRICS[unit.metric].sizes
            }
            try:
                score(unit.metric, codes[0], factors[0], (codes[1], factors[1]), **params)
            except ArgumentError as error:
                place = place_in_evaluation(error, evaluation, unit.label, source or Source({}))
                raise DataError(f"{place}: {unit.label}: {error}") from error


def applicable(unit: Unit, data: Dataset) -> bool:
    """Whether a unit makes sense on a data set: many need discrete factors."""
    return unit.metric == UDR or applies(unit.metric, data, is_vae=True)


def identity(found: list[Unit], labels: Sequence[LabelMode] = LABEL_MODES) -> str:
    """A hash of all units, in all ways to come by labels: it names the file that says that a run has them all."""
    names = "\n".join(sorted(unit.file for unit in found))
    names += "" if tuple(labels) == LABEL_MODES else f"\n{sorted(labels)}"
    return hashlib.sha256(names.encode()).hexdigest()[:16]


def scalars(unit: Unit, score: Score, factor_names: tuple[str, ...]) -> Iterator[tuple[str, str, float]]:
    """A score as rows of the results: (metric, representation, value), its value first, then its parts."""
    home = "sampled" if unit.metric in (SAMPLED, UNSUPERVISED) else unit.representation
    yield unit.label, home, score.value
    if unit.metric in METRICS:
        for name, number in METRICS[unit.metric].scalars(score, factor_names).items():
            yield f"{unit.label}.{name}", home, number
        return
    for name, value in score.details.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            own = home
            if unit.metric == UNSUPERVISED:
                own = "sampled" if name in _OF_SAMPLED_CODES else "mean"
            yield f"{unit.label}.{name}", own, float(value)


def _of_posterior(metric: str) -> bool:
    """Whether a metric has one value of the posterior, not one for each representation."""
    return metric in (SAMPLED, UNSUPERVISED) or (metric in METRICS and METRICS[metric].of_posterior)


def _entries(evaluation: Evaluation) -> Iterator[MetricEntry]:
    for entry in evaluation.metrics:
        if isinstance(entry, MetricEntry):
            yield entry
        elif entry in ("paper", "all"):
            single = [metric for metric in METRICS.values() if metric.takes != "models"]
            names = [metric.name for metric in single if entry == "all" or metric.paper]
            yield from (MetricEntry(metric=name) for name in (*names, SAMPLED, UNSUPERVISED))
        else:
            yield MetricEntry(metric=entry)


def _unit(entry: MetricEntry, representation: str, evaluation: Evaluation) -> Unit:
    if entry.metric == UDR or _of_posterior(entry.metric):
        representation = "mean"
    label = entry.name
    if entry.metric == SAMPLED and entry.label is None:
        label, representation = "gaussian_total_correlation", "sampled"
    params = {**evaluation.params.get(entry.metric, {}), **entry.params}
    if entry.metric == UDR:
        params = {"num_images": UDR_IMAGES, **params}
    metric = entry.metric
    if metric == "gaussian_total_correlation" and representation == "sampled":
        metric = SAMPLED
    return Unit(
        label=label,
        metric=metric,
        representation=representation,
        protocol=evaluation.protocol,
        num_train=evaluation.num_train,
        num_test=evaluation.num_test,
        seed=evaluation.seed,
        params=params,
    )
