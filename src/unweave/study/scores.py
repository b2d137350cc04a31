"""The scores of a run: which metric of which codes, each computed and kept by itself.

A study's evaluation is a list of units. Each unit's score is a file of its own in the run's directory, written as
soon as it is known; when all are there, one file gathers the rows that the results table has of the run.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from unweave.arrays import FloatArray
from unweave.errors import ArgumentError, DamagedFileError, DataError, show, unknown_name
from unweave.evaluation.model_metrics import MODEL_METRICS, SAMPLED_FORMS, find_metric, metrics_of
from unweave.files import check_no_links, read_hashed_json, write_hashed_json
from unweave.metrics import METRICS, Score
from unweave.study.source import Source
from unweave.study.spec import (
    LABEL_MODES,
    WHOLE_CODE,
    Evaluation,
    LabelMode,
    MetricEntry,
    split_representation,
)
from unweave.tensor_file import Entry, read_tensors, write_tensors
from unweave.training.score_file import SCORES, ScoreFile

if TYPE_CHECKING:
    from unweave.data import Dataset
    from unweave.training import Run

# Of the rows of a run; ``POINTS`` say how many points of how many rows a score is of, where that is known.
POINTS = ["train_points", "test_points", "data_rows"]
COLUMNS = ["metric", "representation", "labels", "part", "value", "protocol", *POINTS, "seconds"]
# Scores by the paper's protocol have had other points and settings before: older ones are not taken for these.
_EDITION, _EDITION_OF_VOTES = 2, 3
_TEXTS, _NUMBERS = ("metric", "representation", "protocol"), ("value", "seconds")
UDR = "udr"
UDR_IMAGES = 1_000
_TRIAL = 40  # points


@dataclass(frozen=True)
class Unit:
    """One metric of one representation, with everything that decides its value.

    Parameters
    ----------
    label
        the metric's name in the results.
    metric
        the metric's name.
    representation
        "mean" or "sampled": which codes.
    protocol, num_train, num_test, seed, params
        as ``unweave.evaluate`` takes them.
    labels
        what an encoder that takes labels u gets as u: "given", "predicted" or "unknown"; None if it takes none.
    part
        a named part of the codes; "" for all of them.
    split
        the part of the data set that is scored; None: what the run was trained on.
    """

    label: str
    metric: str
    representation: str
    protocol: str
    num_train: int
    num_test: int
    seed: int
    params: dict[str, Any]
    labels: LabelMode | None = None
    part: str = ""
    split: str | None = None

    @property
    def file(self) -> str:
        """The name of the file that keeps the score; another setting has another name."""
        # Labels are part of the representation here, as in all files ever written: finished work is not redone.
        representation = f"{self.representation}_u_{self.labels}" if self.labels else self.representation
        values = json.dumps(
            {**self.as_dict(), "representation": representation, **self._edition}, sort_keys=True, default=str
        )
        digest = hashlib.sha256(values.encode()).hexdigest()[:10]
        suffix = "safetensors" if self.metric == UDR else "json"  # of a run alone UDR knows the codes only
        part = f"-{self.part}" if self.part else ""
        return f"{self.label}-{representation}{part}-{digest}.{suffix}"

    @property
    def _edition(self) -> dict[str, int]:
        """Which rows and settings a protocol stands for, where they have changed."""
        if self.protocol != "paper":
            return {}
        if not METRICS.is_builtin(self.metric):  # one of a user's has never changed, and may not be imported
            return {"edition": _EDITION}
        metric = METRICS[self.metric]
        changed_again = metric.takes == "interventions" or metric.in_sample
        return {"edition": _EDITION_OF_VOTES if changed_again else _EDITION}

    @property
    def codes(self) -> str:
        """Which codes it is computed from: those of the mean, or sampled ones."""
        return "mean" if find_metric(self.metric).of_posterior else self.representation

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as they are hashed and stored."""
        added = {"labels": None, "part": "", "split": None}  # units are older than these
        return {name: v for name, v in asdict(self).items() if name not in added or v != added[name]}


def units(evaluation: Evaluation, source: Source | None = None) -> list[Unit]:
    """All units of an evaluation, checked; with ``source``, the message of a mistake has its line."""
    source = source or Source({})
    known: dict[tuple[str, str, str], Unit] = {}
    for part, representation in product(evaluation.parts, evaluation.representations):
        for entry in _entries(evaluation):
            try:
                unit = _checked_unit(
                    entry, representation, "" if part == WHOLE_CODE else part, evaluation, known
                )
            except ArgumentError as error:
                line = line_of_metric(error, evaluation, entry.name, source)
                given = {**evaluation.params.get(entry.metric, {}), **entry.params}
                whose = f"{entry.name}: " if error.argument in given else ""
                raise DataError(f"{line}: {whose}{error}") from error
            known.setdefault((unit.label, unit.representation, unit.part), unit)
    for name in evaluation.params:
        if name not in {entry.metric for entry in _entries(evaluation)}:
            unused = ArgumentError("evaluation.params", name, "is not one of the study's metrics")
            raise DataError(f"{source.line(('evaluation', 'params', name))}: {unused}")
    parts = {unit.part for unit in known.values()}
    for number, part in enumerate(evaluation.parts):
        if part != WHOLE_CODE and part not in parts:
            line = source.line(("evaluation", "parts", number))
            unused = ArgumentError("evaluation.parts", part, "none of the metrics is of a part of the codes")
            raise DataError(f"{line}: {unused}")
    return list(known.values())


def with_labels(units: Sequence[Unit], modes: Sequence[LabelMode]) -> list[Unit]:
    """The units of a method whose encoder takes labels: each once for each of ``modes``.

    UDR compares codes that saw no true label.
    """
    if not modes:
        return list(units)
    labelled = []
    for unit in units:
        labelled += [unit] if unit.metric == UDR else [replace(unit, labels=mode) for mode in modes]
    return labelled


def applicable(unit: Unit, data: Dataset, method: object) -> bool:
    """Whether a unit can be computed for a method on a data set: many need discrete factors, some a part of a code."""
    from unweave.evaluation import applies
    from unweave.methods import Encodes

    parts = method.parts if isinstance(method, Encodes) else {}
    if unit.part and (unit.part not in parts or len(parts) == 1):  # the one part of a code is all of it
        return False
    return applies(find_metric(unit.metric), data, method)


def check_values(evaluation: Evaluation, units: Sequence[Unit], source: Source | None = None) -> None:
    """Try the metrics that were given parameters on a few points, so that a bad value is known before any run."""
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 2, (2, _TRIAL, 2))
    codes = factors + rng.normal(size=factors.shape)
    for unit in units:
        metric = find_metric(unit.metric)
        if unit.params and metric.takes not in ("models", "posterior", "method"):
            params = {name: value for name, value in unit.params.items() if name not in metric.sizes}
            try:
                metric.score(codes[0], factors[0], (codes[1], factors[1]), **params)
            except ArgumentError as error:
                line = line_of_metric(error, evaluation, unit.label, source or Source({}))
                raise DataError(f"{line}: {unit.label}: {error}") from error
        if metric.check is not None:
            try:
                metric.check(metric.parameters | unit.params)
            except ArgumentError as error:
                line = line_of_metric(error, evaluation, unit.label, source or Source({}))
                raise DataError(f"{line}: {unit.label}: {error}") from error


def line_of_metric(error: ArgumentError, evaluation: Evaluation, label: str, source: Source) -> str:
    """The line of a metric, by its name in the results, or of the parameter of it that an error names."""
    entries = [entry if isinstance(entry, str) else entry.name for entry in evaluation.metrics]
    metric = next((e.metric for e in evaluation.metrics if not isinstance(e, str) and e.name == label), label)
    for name in (error.argument, str(error.value)):
        path = ("evaluation", "params", metric, name)
        if path in source.lines:
            return source.line(path)
    last = len(entries) - 1 - entries[::-1].index(label) if label in entries else None
    return source.line(("evaluation", "metrics") if last is None else ("evaluation", "metrics", last))


def identity(units: Sequence[Unit], labels: Sequence[LabelMode] = LABEL_MODES) -> str:
    """A hash of all units, and of which labels are asked for: it names the file of a run that has them all."""
    names = "\n".join(sorted(unit.file for unit in units))
    names += "" if tuple(labels) == LABEL_MODES else f"\n{sorted(labels)}"
    return hashlib.sha256(names.encode()).hexdigest()[:16]


def measure(
    run: Run, data: Dataset, units: Sequence[Unit], on_progress: Callable[[str, float], None]
) -> None:
    """Compute the units that are not there yet.

    ``on_progress`` is called with the unit's label and the share of all units that is done.
    """
    from unweave.evaluation import evaluate
    from unweave.evaluation.points import SharedPointsWarning

    assert run.path is not None
    folder = run.path / SCORES
    check_no_links(folder, run.path)
    missing = [unit for unit in units if not (folder / unit.file).exists()]
    for unit in units:
        if unit.metric == UDR and unit not in missing:
            read_codes(folder / unit.file)  # raises if it is damaged, as reading a score does in the end
    done = len(units) - len(missing)
    for together in _rounds(missing):
        clock = time.monotonic()
        on_progress(together[0].label, done / len(units))
        if together[0].metric == UDR:
            _keep_codes(folder / together[0].file, run, data, together[0])
            done += 1
            continue
        by_metric = {unit.metric: unit for unit in together}

        def keep(metric: str, score: Score, by_metric: dict[str, Unit] = by_metric) -> None:
            nonlocal clock, done
            unit, now = by_metric[metric], time.monotonic()
            rows = list(scalars(unit, score, tuple(data.space.names)))
            kept = ScoreFile(unit.metric, rows, now - clock, score.params, score.details)
            kept.write(folder / unit.file)
            clock, done = now, done + 1
            on_progress(unit.label, done / len(units))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SharedPointsWarning)  # every score says it
            evaluate(
                run,
                data,
                list(by_metric),
                cast(Any, together[0].protocol),
                together[0].seed,
                num_train=together[0].num_train,
                num_test=together[0].num_test,
                params={unit.metric: unit.params for unit in together},
                codes=cast(Any, together[0].codes),
                labels=together[0].labels,
                part=together[0].part or None,
                on_score=keep,
            )


def scalars(unit: Unit, score: Score, factor_names: tuple[str, ...]) -> Iterator[tuple[str, str, float]]:
    """A score as rows of the results: (metric, representation, value), its value first, then its parts."""
    metric = find_metric(unit.metric)

    def codes(part: str) -> str:
        return "sampled" if part in metric.sampled_parts else unit.representation

    yield unit.label, codes(""), score.value
    for name, number in metric.scalars(score, factor_names).items():
        yield f"{unit.label}.{name}", codes(name), number


def gather(run: Path, units: Sequence[Unit], done_file: str, training_seconds: float) -> None:
    """Gather a run's scores into the one file that says that it is done."""
    rows = []
    for unit in units:
        if unit.metric != UDR:
            kept = ScoreFile.read(run / SCORES / unit.file)
            for metric, representation, value in kept.rows:
                codes, _ = split_representation(representation)  # in one word if an older version wrote it
                which = [metric, codes, unit.labels or "", unit.part]
                about = [unit.protocol, *_points(kept.details.get("points", {})), kept.seconds]
                rows.append([*which, value, *about])
    content = {
        "columns": COLUMNS,
        "rows": rows,
        "training_seconds": training_seconds,
        "finished": time.time(),
    }
    write_hashed_json(run / done_file, content)


def read_scores(path: Path) -> list[dict[str, Any]]:
    """The scores of a run that is done, by the names of the columns of the results."""
    content = read_hashed_json(path)
    known = [name for name in COLUMNS if name not in POINTS]
    try:
        if "columns" in content:
            rows = [dict(zip(content["columns"], row, strict=True)) for row in content["rows"]]
        else:
            rows = [
                dict(zip(known, (metric, *split_representation(name), "", *rest), strict=True))
                for metric, name, *rest in content["rows"]
            ]
        for row in rows:
            given = {name for name in row if isinstance(name, str)}
            texts = [row[name] for name in _TEXTS] + [row[name] for name in ("labels", "part") if name in row]
            counts = [row[name] for name in POINTS if row.get(name) is not None]
            if given != set(row) or not all(isinstance(text, str) for text in texts):
                raise TypeError(f"{show(row)} is no score")
            if not all(isinstance(count, int | float) for count in counts):
                raise TypeError(f"{show(row)} is no score")
            for name in _NUMBERS:
                row[name] = math.nan if row[name] is None else float(row[name])
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise DamagedFileError(path, error) from error
    return rows


def read_codes(path: Path) -> tuple[FloatArray, FloatArray]:
    """What UDR compares: the codes (n, D) of a run on the study's images, and the mean KL (D,) of each latent."""
    try:
        kept, notes = read_tensors(path)
        codes, kl = kept["codes"].array(), kept["kl"].array()
        if codes.ndim != 2 or kl.shape != codes.shape[1:]:
            raise ValueError(f"codes have the shape {codes.shape}, kl {kl.shape}")
    except FileNotFoundError as error:
        raise DamagedFileError(path, "not found") from error
    except (KeyError, ValueError, TypeError) as error:
        raise DamagedFileError(path, error) from error
    if notes.get("run", path.parent.parent.name) != path.parent.parent.name:
        raise DamagedFileError(path, f"of the run {notes['run']}")
    return codes, kl


def _points(points: Mapping[str, Any]) -> list[int | None]:
    """The columns ``POINTS`` of what a score says of its points."""
    return [points.get("train", points.get("every")), points.get("test"), points.get("rows")]


def _entries(evaluation: Evaluation) -> Iterator[MetricEntry]:
    for entry in evaluation.metrics:
        if isinstance(entry, MetricEntry):
            yield entry
        elif entry in ("paper", "all"):
            names = metrics_of(entry)
            # Sampled forms of metrics come before the other metrics of models, as in all tables ever written.
            names.sort(key=lambda name: name in MODEL_METRICS and name not in SAMPLED_FORMS.values())
            yield from (MetricEntry(metric=name) for name in names)
        else:
            yield MetricEntry(metric=entry)


def _checked_unit(
    entry: MetricEntry,
    representation: str,
    part: str,
    evaluation: Evaluation,
    known: Mapping[tuple[str, str, str], Unit],
) -> Unit:
    unit = _unit(entry, representation, part, evaluation)
    params = {
        name: value for name, value in unit.params.items() if (unit.metric, name) != (UDR, "num_images")
    }
    find_metric(unit.metric).check_params(params)
    if known.get((unit.label, unit.representation, unit.part), unit) != unit:
        raise ArgumentError(
            "metrics", entry.name, "is there twice with other parameters; name one with 'as:'"
        )
    return unit


def _unit(entry: MetricEntry, representation: str, part: str, evaluation: Evaluation) -> Unit:
    if entry.metric not in METRICS and entry.metric not in MODEL_METRICS:
        raise unknown_name("metric", entry.metric, [*METRICS, *MODEL_METRICS])
    if entry.metric == UDR or find_metric(entry.metric).of_posterior:
        representation = "mean"
    label = entry.name
    originals = {sampled: name for name, sampled in SAMPLED_FORMS.items()}
    if entry.metric in originals and entry.label is None:
        label, representation = originals[entry.metric], "sampled"
    params = {**evaluation.params.get(entry.metric, {}), **entry.params}
    if entry.metric == UDR:
        params = {"num_images": UDR_IMAGES, **params}
    metric = entry.metric
    if representation == "sampled":
        metric = SAMPLED_FORMS.get(metric, metric)
    return Unit(
        label=label,
        metric=metric,
        representation=representation,
        protocol=evaluation.protocol,
        num_train=evaluation.num_train,
        num_test=evaluation.num_test,
        seed=evaluation.seed,
        params=params,
        part="" if metric == UDR or find_metric(metric).takes == "method" else part,
        split=evaluation.split,
    )


def _rounds(missing: Sequence[Unit]) -> list[list[Unit]]:
    """Units that one evaluation computes together: of the same codes, each metric once; UDR by itself."""
    rounds: list[list[Unit]] = []
    for unit in missing:
        for together in rounds:
            first = together[0]
            same = (first.codes, first.labels, first.part) == (unit.codes, unit.labels, unit.part)
            same &= UDR not in (unit.metric, together[0].metric)
            if same and unit.metric not in {other.metric for other in together}:
                together.append(unit)
                break
        else:
            rounds.append([unit])
    return rounds


def _keep_codes(path: Path, run: Run, data: Dataset, unit: Unit) -> None:
    import torch

    from unweave.evaluation import RepresentationTable
    from unweave.methods import EncodesWithLabels
    from unweave.objectives import usage

    rng = np.random.default_rng([unit.seed, len(data) if data.finite else 0])
    n = int(unit.params["num_images"])
    which = data.sample_rows(n, rng) if data.finite else data.sample_factors(n, rng)
    table = RepresentationTable(run, data, unit.labels)
    mean, log_variance = (torch.from_numpy(part) for part in np.moveaxis(table.posterior(which, rng), 1, 0))
    conditional = isinstance(run.method, EncodesWithLabels)
    kl = usage(mean.double(), log_variance.double(), conditional).kl.numpy()
    entries = {"codes": Entry.of(mean.numpy().astype(np.float32)), "kl": Entry.of(kl)}
    write_tensors(path, entries, {"run": path.parent.parent.name})
