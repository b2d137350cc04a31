"""From run directories to the results table."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unweave.errors import DamagedFileError, DataError
from unweave.files import read_json, replacing, set_aside, write_text
from unweave.schedules import is_schedule
from unweave.study.folder import StudyFolder
from unweave.study.planning import SHARED, Job
from unweave.study.results import TABLE, Results, as_table
from unweave.study.scores import UDR, Unit, read_codes, read_scores
from unweave.training.score_file import SCORES


def collect(folder: StudyFolder, *, write: bool = True) -> Results:
    """The results of all runs that are done, gathered from their directories and written to results.parquet.

    Parameters
    ----------
    folder
        of the study.
    write
        without it nothing is written in the folder.

    Examples
    --------
    >>> study, source = uw.study.load_study("demo")
    >>> from pathlib import Path
    >>> folder = uw.study.StudyFolder(Path("out"), study.name, uw.study.plan(study, source))
    >>> len(uw.study.collect(folder).table)
    0
    """
    done, scores_of = [], []
    for job in folder.jobs:
        if folder.is_done(job):
            try:
                scores_of.append(read_scores(folder.run(job.identity) / folder.done_file))
                done.append(job)
            except DataError as error:
                print(f"{error}: left out; 'unweave study resume' makes it again", file=sys.stderr)
    rows: list[dict[str, Any]] = []
    for job, scores in zip(done, scores_of, strict=True):
        about = _about(job)
        rows += [
            {**about, **score}
            for score in scores
            if not (
                "." in score["metric"] and math.isnan(score["value"])
            )  # a part that settings leave undefined
        ]
    rows += _agreements(folder, done, write)
    table = as_table(rows)
    path = folder.path / TABLE
    if write:
        with _if_writable(path), replacing(path) as temporary:
            table.to_parquet(temporary, index=False)
    spec = {**folder.study.model_dump(mode="json"), "planned": len(folder.jobs)}
    return Results(folder.name, table, folder.runs, spec, folder.failures())


def set_aside_damaged(folder: StudyFolder) -> None:
    """Set aside the scores of runs that cannot be read, so that these runs are not done: they are measured again.

    Examples
    --------
    >>> study, source = uw.study.load_study("demo")
    >>> from pathlib import Path
    >>> set_aside_damaged(uw.study.StudyFolder(Path("out"), "demo", uw.study.plan(study, source)))
    """
    compared = [unit.file for unit in folder.units if unit.metric == UDR]
    for job in folder.jobs:
        run = folder.run(job.identity)
        if not folder.is_done(job):
            continue
        for path in (run / folder.done_file, *(run / SCORES / name for name in compared)):
            try:
                if path.exists():
                    read_scores(path) if path.name == folder.done_file else read_codes(path)
            except DamagedFileError as error:
                print(f"{error}: set aside as {set_aside(path).name}, and computed again", file=sys.stderr)
                (run / folder.done_file).unlink(missing_ok=True)


def _about(job: Job) -> dict[str, Any]:
    """The columns of a run."""
    first = next(iter(job.stages.values()), None)
    return {
        "run": job.identity,
        "data": job.data,
        "method": job.method,
        "strength_name": job.strength_name,
        "strength": job.strength,
        "seed": job.seed,
        "correlation": job.training.get("correlation", 0.0),
        "latent_size": job.training.get("latent_size"),
        "steps": job.training["steps"],
        "settings": json.dumps(_settings(job), sort_keys=True),
        "first": "" if first is None else first.identity,
        "first_method": "" if first is None else first.method,
        "first_strength": math.nan if first is None else first.strength,
    }


def _settings(job: Job) -> dict[str, Any]:
    """What a run was given besides its columns; of earlier stages everything in which they differ from it."""
    columns = ("correlation", "latent_size", "steps")
    settings = {
        name: value
        for name, value in job.hyperparameters.items()
        if name != job.strength_name or is_schedule(value)  # the column of strengths has numbers only
    }
    settings |= {name: value for name, value in job.training.items() if name not in columns}
    return settings | {name: _stage_settings(stage, job) for name, stage in job.stages.items()}


def _stage_settings(stage: Job, of: Job) -> dict[str, Any]:
    hyperparameters = {
        f"method.{name}" if name in SHARED else name: value for name, value in stage.hyperparameters.items()
    }
    about = {
        "method": stage.method,
        "data": stage.data,
        "seed": stage.seed,
        **stage.training,
        **hyperparameters,
    }
    shared = {name: value for name, value in of.settings().items() if name in SHARED}
    own = {name: value for name, value in about.items() if name not in shared or value != shared[name]}
    return own | {name: _stage_settings(earlier, stage) for name, earlier in stage.stages.items()}


def _agreements(folder: StudyFolder, done: Sequence[Job], write: bool) -> list[dict[str, Any]]:
    """UDR of each run among those that differ from it in the seed only; a group that is known is not done again."""
    path = folder.path / "udr.json"
    known = _known_agreements(path)
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in done:
        groups[job.group].append(job)
    current: dict[str, list[float]] = {}
    rows = []
    for unit in (unit for unit in folder.units if unit.metric == UDR):
        shared = {"metric": unit.label, "representation": "mean", "protocol": unit.protocol, "seconds": 0.0}
        for jobs in groups.values():
            if len(jobs) < 2 or not (folder.run(jobs[0].identity) / SCORES / unit.file).exists():
                continue  # a single run, or of a method without codes
            members = "".join([unit.file, *(job.identity for job in jobs)])
            key = hashlib.sha256(members.encode()).hexdigest()[:20]
            if len(known.get(key, ())) == len(jobs):
                current[key] = known[key]
            else:
                try:
                    current[key] = _agreement(folder, jobs, unit)
                except DamagedFileError as error:
                    print(f"{error}: its group has no {unit.label}", file=sys.stderr)
                    continue
            rows += [{**_about(job), **shared, "value": v} for job, v in zip(jobs, current[key], strict=True)]
    if write and current != known:
        with _if_writable(path):
            write_text(path, json.dumps(current))
    return rows


def _known_agreements(path: Path) -> dict[str, list[float]]:
    try:
        known = read_json(path)
    except FileNotFoundError:
        return {}
    except DamagedFileError as error:
        print(f"{error}: computed again", file=sys.stderr)
        return {}
    return {
        key: values
        for key, values in known.items()
        if isinstance(values, list) and all(isinstance(value, int | float) for value in values)
    }


@contextmanager
def _if_writable(path: Path) -> Iterator[None]:
    """Write a file that is a convenience only; a folder that cannot be written is as good a source of results."""
    try:
        yield
    except OSError as error:
        print(f"{path}: not written ({error.strerror or error})", file=sys.stderr)


def _agreement(folder: StudyFolder, jobs: Sequence[Job], unit: Unit) -> list[float]:
    """UDR of each of some runs."""
    from unweave.metrics import udr

    settings = {name: value for name, value in unit.params.items() if name != "num_images"}
    kept = [read_codes(folder.run(job.identity) / SCORES / unit.file) for job in jobs]
    score = udr([codes for codes, _ in kept], kl_list=[kl for _, kl in kept], **settings)
    values: list[float] = score.details["per_model"].tolist()
    return values
