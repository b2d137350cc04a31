"""The results of a study: one tidy table, a row per run, metric, representation, labels and protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import pandas as pd

from unweave.errors import ArgumentError, DataError, UnweaveError, unknown_name
from unweave.optional import require

# The columns of results.parquet, in order. ``strength`` is the method's first hyperparameter (NaN if it has none);
# ``settings`` is everything else that a run was given, as JSON. ``representation`` is "mean" or "sampled"; ``labels``
# is what an encoder that takes labels u got as u: "given" (the true ones), "predicted", "unknown"; "" if it takes none.
# ``seconds`` is what computing the score took.
COLUMNS: dict[str, str] = {
    "run": "str",
    "data": "str",
    "method": "str",
    "strength_name": "str",
    "strength": "float64",
    "seed": "int64",
    "correlation": "float64",
    "latent_size": "int64",
    "steps": "int64",
    "settings": "str",
    "metric": "str",
    "representation": "str",
    "labels": "str",
    "protocol": "str",
    "value": "float64",
    "seconds": "float64",
}
T = TypeVar("T")
RUN_COLUMNS = list(COLUMNS)[: list(COLUMNS).index("metric")]
SCORE_COLUMNS = [
    "metric",
    "representation",
    "labels",
    "value",
    "protocol",
    "seconds",
]  # of a run's scores on disk
TABLE, SPEC = "results.parquet", "study.yaml"
_LABEL_MODES = ("given", "predicted", "unknown")  # those of units.py, which would bring torch with it


class NotInStudyError(UnweaveError):
    """An analysis needs something that the study does not have: a metric, a second data set, more seeds."""


@dataclass(frozen=True)
class Results:
    """A study's table and what belongs to it.

    ``runs`` is the folder of run directories, named as in the column ``run``; None where there are only scores.
    ``spec`` is the study file as resolved; ``failures`` has one mapping per failed run: run, data, method,
    strength, seed, error.
    """

    name: str
    table: pd.DataFrame
    runs: Path | None = None
    spec: dict[str, Any] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def analysed(self, analysis: Callable[..., T], **arguments: Any) -> T:
        """``analysis(table, **arguments)``, computed once for all that show it: what it returns must not be changed."""
        key = (analysis, tuple(sorted((name, repr(value)) for name, value in arguments.items())))
        if key not in self._known:
            self._known[key] = analysis(self.table, **arguments)
        found: T = self._known[key]
        return found


def load(path: Path | str) -> pd.DataFrame:
    """The results table of a study: its folder, or the Parquet file itself."""
    place = Path(path)
    file = place / TABLE if place.is_dir() else place
    if not file.exists():
        raise DataError(f"{file}: no results yet; 'unweave study run' makes them")
    try:
        table = pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: not a results table ({error})") from error
    if "labels" not in table.columns and "representation" in table.columns:
        table = _with_labels(table)
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        raise DataError(f"{file}: not a results table (it has no column {missing[0]!r})")
    return table


def query(table: pd.DataFrame, sql: str) -> pd.DataFrame:
    """The answer to a DuckDB query, in which the table is called ``results``."""
    duckdb = require("duckdb", "sql", "a query in SQL")
    connection = duckdb.connect(config={"enable_external_access": False})
    try:
        connection.register("results", table)
        return cast(pd.DataFrame, connection.execute(sql).df())
    except duckdb.Error as error:
        raise ArgumentError("sql", sql, str(error)) from error
    finally:
        connection.close()


def as_table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a table with all columns in their types; a row without ``labels`` is of an encoder that takes none."""
    return pd.DataFrame([{"labels": "", **row} for row in rows], columns=list(COLUMNS)).astype(COLUMNS)


def select(
    table: pd.DataFrame,
    metric: str,
    representation: str | None = None,
    protocol: str | None = None,
    labels: str | None = None,
) -> pd.DataFrame:
    """The rows of one metric; at most one row per run.

    Without ``representation``, "mean" if the metric has it; without ``protocol``, the first in the table. A run whose
    encoder takes labels u has a score for each of "given", "predicted" and "unknown": unless ``labels`` says which,
    those are taken that no true label went into (predicted, else unknown), so that they compare with other methods'.
    """
    if labels is not None and labels not in _LABEL_MODES:
        raise unknown_name("labels", labels, _LABEL_MODES)
    rows = table[table["metric"] == metric]
    if rows.empty:
        raise NotInStudyError(f"the study has no metric {metric!r}")
    known = rows["representation"].unique().tolist()
    wanted = representation or ("mean" if "mean" in known else known[0])
    preference = {"": 0, labels: 1} if labels else {"": 0, "predicted": 1, "unknown": 2}
    kinds = rows[["representation", "labels"]].drop_duplicates()
    rows = rows[(rows["representation"] == wanted) & rows["labels"].isin(preference)]
    if rows.empty:
        present = [f"{codes} (u {mode})" if mode else codes for codes, mode in kinds.itertuples(index=False)]
        raise NotInStudyError(f"the study has {metric!r} for {', '.join(present)} only, not {wanted}")
    chosen = protocol or str(rows["protocol"].iloc[0])
    rows = rows[rows["protocol"] == chosen]
    if rows.empty:
        raise NotInStudyError(f"the study has no {metric!r} by the protocol {chosen!r}")
    if rows["labels"].nunique() > 1:
        first = rows["labels"].map(preference).sort_values(kind="stable").index
        rows = rows.loc[rows.loc[first].drop_duplicates("run").index.sort_values()]
    return rows


def wide(table: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """One row per run, with the run's columns and one column per metric (NaN where a run lacks it)."""
    columns: list[pd.DataFrame | pd.Series[Any]] = [
        select(table, metric).set_index("run")["value"].rename(metric) for metric in metrics
    ]
    runs = table.drop_duplicates("run")[RUN_COLUMNS].set_index("run")
    return runs.join(columns).reset_index()


def split_representation(name: str) -> tuple[str, str]:
    """Representation and labels of what older versions wrote as one word.

    >>> split_representation("mean_u_given"), split_representation("sampled")
    (('mean', 'given'), ('sampled', ''))
    """
    representation, _, labels = name.partition("_u_")
    return representation, labels


def _with_labels(table: pd.DataFrame) -> pd.DataFrame:
    """A table of an older version, with the column ``labels``."""
    names = {name: split_representation(name) for name in table["representation"].unique()}
    representation = table["representation"].map({name: parts[0] for name, parts in names.items()})
    labels = table["representation"].map({name: parts[1] for name, parts in names.items()})
    table = table.assign(representation=representation, labels=labels)
    known = [name for name in COLUMNS if name in table.columns]
    return table[[*known, *(name for name in table.columns if name not in COLUMNS)]].astype(
        {"representation": "str", "labels": "str"}
    )
