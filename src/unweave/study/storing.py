"""Storing the results of a study, so that it can be continued elsewhere and its table read without its runs.

A stored table is of a study file as it is now: of the runs of its grid, measured as it asks for. The Parquet file holds
the identity of the evaluation in its metadata (``unweave.evaluation``). A table that no study file is of, as that of a
script, has a title there (``unweave.title``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from unweave.errors import DataError
from unweave.files import replacing
from unweave.study.folder import StudyFolder
from unweave.study.results import Results, load_results
from unweave.study.stored import (
    EVALUATION,
    RUNS,
    TITLE,
    is_stored_address,
    metadata_of,
    stored_file,
    stored_folder,
)

if TYPE_CHECKING:
    from unweave.study.planning import Plan

_LEVEL = 19  # of zstd: written seldom, and kept by everybody


@dataclass(frozen=True)
class Stored:
    """What storing did.

    Parameters
    ----------
    path
        of the file.
    table
        all that it holds now.
    added, replaced, kept
        runs that it did not have; that it had, with the folder's scores now; that it has and the folder has not.
    dropped
        runs that it had and that are not of the study as its file is now, or were measured otherwise.
    planned
        the runs of the study.
    """

    path: Path
    table: pd.DataFrame
    added: int
    replaced: int
    kept: int
    dropped: int
    planned: int


def store(folder: StudyFolder, to: Path) -> Stored:
    """Write the scores of a study's finished runs to ``to/NAME.parquet``, whole or not at all.

    Runs that the file has already and the folder has not are kept: a study can be continued on another machine. Which
    study did the runs in the folder does not matter, as runs are known by their hash. UDR compares runs that differ in
    their seed: where these were done on several machines, it is that among the runs of one of them.

    Parameters
    ----------
    folder
        where runs are, with the plan of the study as its file is now. Nothing is written there.
    to
        the folder of stored tables.

    Examples
    --------
    >>> study, source = uw.study.load_study("demo")
    >>> from pathlib import Path
    >>> folder = uw.study.StudyFolder(Path("out"), study.name, uw.study.plan(study, source))
    >>> stored = uw.study.store(folder, Path("stored"))
    Traceback (most recent call last):
    unweave.errors.DataError: out/runs: no run of demo is finished there: nothing to store
    """
    from unweave.study.collecting import collect

    path = to / f"{folder.name}.parquet"
    known = {job.identity: position for position, job in enumerate(folder.jobs)}
    before, dropped = _still_valid(path, folder.plan)
    new = collect(folder, write=False).table
    done = set(new["run"])
    kept = before[~before["run"].isin(done)]
    had = set(before["run"])
    table = pd.concat([new, kept], ignore_index=True) if len(kept) else new
    order = table["run"].map(known).sort_values(kind="stable").index
    table = table.loc[order].reset_index(drop=True)
    table = table.assign(seconds=table["seconds"].round(2))
    if table.empty:
        raise DataError(f"{folder.runs}: no run of {folder.name} is finished there: nothing to store")
    write_stored(path, table, evaluation=folder.done_file)
    counts = (len(done - had), len(done & had), kept["run"].nunique())
    return Stored(path, table, *counts, dropped, len(folder.jobs))


def stored_runs(plan: Plan, folder: Path | None = None) -> set[str]:
    """The runs of a plan whose scores, by the plan's evaluation, are stored.

    Parameters
    ----------
    plan
        of a study.
    folder
        of stored tables; by default that of unweave.

    Examples
    --------
    >>> from unweave.study.storing import stored_runs
    >>> stored_runs(uw.study.plan(*uw.study.load_study("demo")))
    set()
    """
    path = (folder or stored_folder()) / f"{plan.study.name}.parquet"
    return set(_still_valid(path, plan)[0]["run"])


def stored_results(address: str) -> Results:
    """A stored table with the study that it is of: everything but the models. Without a study file it says what it is.

    Parameters
    ----------
    address
        "stored:yang-32", or the name alone.
    """
    from unweave.study.planning import plan
    from unweave.study.spec import known_studies, load_study

    path = stored_file(address)
    if path.stem not in known_studies():
        return Results(path.stem, load_results(path), None, {"title": metadata_of(path, TITLE)})
    study, source = load_study(path.stem)
    spec = {**study.model_dump(mode="json"), "planned": len(plan(study, source).jobs)}
    return Results(path.stem, load_results(path), None, spec)


def open_results(address: str, root: Path) -> Results:
    """The results of a study, wherever they are.

    Parameters
    ----------
    address
        "stored:NAME"; a study's folder, as FOLDER/NAME; or the name or file of a study that was run in ``root``.
    root
        the folder of runs and studies.

    Examples
    --------
    >>> from pathlib import Path
    >>> uw.study.open_results("stored:yang-32", Path("out")).name
    'yang-32'
    """
    from unweave.study.collecting import collect
    from unweave.study.folder import SPEC, open_study
    from unweave.study.spec import study_name

    if is_stored_address(address):
        return stored_results(address)
    if (Path(address) / SPEC).is_file():
        return collect(open_study(Path(address).parent, Path(address).name))
    return collect(open_study(root, study_name(address)))


def write_stored(path: Path, table: pd.DataFrame, *, evaluation: str = "", title: str = "") -> None:
    """Write a results table as stored ones are, whole or not at all.

    Parameters
    ----------
    path
        of the file, NAME.parquet.
    table
        a results table.
    evaluation
        the identity of the study's evaluation.
    title
        what the runs are, where there is no study file of that name that says so.

    Examples
    --------
    >>> from pathlib import Path
    >>> from unweave.study.results import as_table
    >>> write_stored(Path("mine.parquet"), as_table([]), title="Nothing yet")
    >>> len(uw.study.load_results("mine.parquet"))
    0
    """
    import pyarrow
    import pyarrow.parquet

    content = pyarrow.Table.from_pandas(table, preserve_index=False)
    said = {EVALUATION: evaluation, RUNS: str(table["run"].nunique()), TITLE: title}
    metadata = {
        **(content.schema.metadata or {}),
        **{key: text.encode() for key, text in said.items() if text},
    }
    content = content.replace_schema_metadata(metadata)
    try:
        with replacing(path) as temporary:
            pyarrow.parquet.write_table(content, temporary, compression="zstd", compression_level=_LEVEL)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error})") from error


def _still_valid(path: Path, plan: Plan) -> tuple[pd.DataFrame, int]:
    """The rows of a stored table that are of a plan's runs by its evaluation; how many runs are not."""
    from unweave.study.results import as_table

    if not path.exists():
        return as_table([]), 0
    table = load_results(path)
    if metadata_of(path, EVALUATION) != plan.done_file:
        return as_table([]), table["run"].nunique()
    valid = table["run"].isin([job.identity for job in plan.jobs])
    return table[valid], table.loc[~valid, "run"].nunique()
