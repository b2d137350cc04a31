"""From run directories to the results table."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from unweave.files import replacing, write_text
from unweave.metrics import udr
from unweave.study.job import Job
from unweave.study.measuring import SCORES, read_codes
from unweave.study.results import SCORE_COLUMNS, TABLE, Results, as_table, split_representation
from unweave.study.store import StudyFolder
from unweave.study.units import UDR, Unit


def collect(folder: StudyFolder) -> Results:
    """The results of all runs that are done, gathered from their directories and written to results.parquet."""
    done = [job for job in folder.jobs if folder.is_done(job)]
    rows: list[dict[str, Any]] = []
    for job in done:
        scores = read_scores(folder.run(job.identity) / folder.done_file)
        about = _about(job)
        rows += [
            {**about, **score}
            for score in scores
            if not (
                "." in score["metric"] and math.isnan(score["value"])
            )  # a part that the settings leave undefined
        ]
    rows += _agreements(folder, done)
    table = as_table(rows)
    with replacing(folder.folder / TABLE) as temporary:
        table.to_parquet(temporary, index=False)
    return gathered(folder, table)


def read_scores(path: Path) -> list[dict[str, Any]]:
    """The scores of a run that is done, by the names of the columns of the results."""
    content = json.loads(path.read_text())
    if "columns" in content:
        return [dict(zip(content["columns"], row, strict=True)) for row in content["rows"]]
    return [
        dict(zip(SCORE_COLUMNS, (metric, *split_representation(name), *rest), strict=True))
        for metric, name, *rest in content["rows"]
    ]


def gathered(folder: StudyFolder, table: pd.DataFrame) -> Results:
    """A table as the results of a study."""
    spec = folder.study.model_dump(mode="json")
    return Results(folder.name, table, folder.runs, {**spec, "planned": len(folder.jobs)}, folder.failures())


def _about(job: Job) -> dict[str, Any]:
    rest = {name: value for name, value in job.hyperparameters.items() if name != job.strength_name}
    own = ("correlation", "latent_size", "steps")
    rest |= {name: value for name, value in job.training.items() if name not in own}
    return {
        "run": job.identity,
        "data": job.data,
        "method": job.method,
        "strength_name": job.strength_name,
        "strength": job.strength,
        "seed": job.seed,
        **{name: job.training[name] for name in own},
        "settings": json.dumps(rest, sort_keys=True),
    }


def _agreements(folder: StudyFolder, done: Sequence[Job]) -> list[dict[str, Any]]:
    """UDR of each run among those that differ from it in the seed only; a group that is known is not done again."""
    path = folder.folder / "udr.json"
    known: dict[str, list[float]] = json.loads(path.read_text()) if path.exists() else {}
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in done:
        groups[job.group].append(job)
    found: dict[str, list[float]] = {}
    rows = []
    for unit in folder.units:
        if unit.metric == UDR:
            rows += _agreement(folder, groups, unit, known, found)
    if found != known:
        write_text(path, json.dumps(found))
    return rows


def _agreement(
    folder: StudyFolder,
    groups: dict[str, list[Job]],
    unit: Unit,
    known: dict[str, list[float]],
    found: dict[str, list[float]],
) -> list[dict[str, Any]]:
    rows = []
    settings = {name: value for name, value in unit.params.items() if name != "num_images"}
    for jobs in groups.values():
        if len(jobs) < 2:
            continue
        key = hashlib.sha256("".join([unit.file, *(job.identity for job in jobs)]).encode()).hexdigest()[:20]
        if key in known:
            found[key] = known[key]
        else:
            kept = [read_codes(folder.run(job.identity) / SCORES / unit.file) for job in jobs]
            score = udr([codes for codes, _ in kept], kl_list=[kl for _, kl in kept], **settings)
            found[key] = score.details["per_model"].tolist()
        shared = {
            "metric": unit.label,
            "representation": "mean",
            "labels": "",
            "protocol": unit.protocol,
            "seconds": 0.0,
        }
        rows += [{**_about(job), **shared, "value": v} for job, v in zip(jobs, found[key], strict=True)]
    return rows
