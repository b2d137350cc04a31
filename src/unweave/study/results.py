"""The results of a study: one tidy table, a row per run, metric, representation, part, labels and protocol."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import pandas as pd

from unweave.errors import ArgumentError, DataError, UnweaveError, shorten, unknown_name
from unweave.files import check_regular
from unweave.optional import require
from unweave.study.spec import LABEL_MODES, split_representation
from unweave.study.stored import is_stored_address, stored_file

# The columns of results.parquet, in order. ``strength`` is the method's first hyperparameter (NaN if it has none);
# ``settings`` is everything else that a run was given, as JSON. ``first`` is the run that is its first stage, with
# ``first_method`` and ``first_strength``, that run's method and strength; "" and NaN if it has none.
# ``representation`` is "mean" or "sampled"; ``labels`` is what an encoder that takes labels u got as u: "given" (the
# true ones), "predicted", "unknown"; "" if it takes none. ``part`` is the part of the codes that was scored, "c" or "z"
# of a multi-stage model, say; "" for all of the code. Of a method without such settings ``latent_size`` is empty and
# ``correlation`` is 0, as of all independent noise. ``seconds`` is what computing the score took; ``train_points``,
# ``test_points`` and ``data_rows`` say how many points of how many rows it is of (empty where a metric draws its own
# images, or the data set is endless).
COLUMNS: dict[str, str] = {
    "run": "str",
    "data": "str",
    "method": "str",
    "strength_name": "str",
    "strength": "float64",
    "seed": "int64",
    "correlation": "float64",
    "latent_size": "Int64",
    "steps": "int64",
    "settings": "str",
    "first": "str",
    "first_method": "str",
    "first_strength": "float64",
    "metric": "str",
    "representation": "str",
    "labels": "str",
    "part": "str",
    "protocol": "str",
    "value": "float64",
    "seconds": "float64",
    "train_points": "Int64",
    "test_points": "Int64",
    "data_rows": "Int64",
}
RUN_COLUMNS = list(COLUMNS)[: list(COLUMNS).index("metric")]
# What columns say of a run or a score to which they do not apply; tables of older versions lack them.
ABSENT: dict[str, Any] = {
    "first": "",
    "first_method": "",
    "first_strength": math.nan,
    "labels": "",
    "part": "",
    "train_points": pd.NA,
    "test_points": pd.NA,
    "data_rows": pd.NA,
}
TABLE = "results.parquet"
T = TypeVar("T")


class NotInStudyError(UnweaveError):
    """An analysis needs something that the study does not have: a metric, a second data set, more seeds.

    Examples
    --------
    >>> from unweave.study.results import as_table
    >>> uw.study.select(as_table([]), "mig")
    Traceback (most recent call last):
    unweave.study.results.NotInStudyError: the study has no metric 'mig'
    """


@dataclass(frozen=True)
class Results:
    """A study's table and what belongs to it.

    Parameters
    ----------
    name
        the study's.
    table
        a row per score, with the columns of ``COLUMNS``.
    runs
        the folder of run directories, named as in the column ``run``; None where there are only scores.
    spec
        the study file as resolved.
    failures
        a mapping per failed run: run, data, method, strength, seed, error.

    Examples
    --------
    >>> from unweave.study.results import as_table
    >>> results = uw.study.Results("empty", as_table([]))
    >>> results.analysed(len), results.failures
    (0, [])
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
        result: T = self._known[key]
        return result


def load_results(path: Path | str) -> pd.DataFrame:
    """The results table of a study that was run, from its folder; :func:`unweave.study.load_study` reads study files.

    Parameters
    ----------
    path
        the study's folder, or the Parquet file itself; "stored:NAME" is a table that comes with unweave. A table of an
        older version is converted.

    Returns
    -------
    DataFrame
        a row per run, metric, representation, part, labels and protocol.

    Examples
    --------
    >>> from unweave.study.results import as_table
    >>> as_table([]).to_parquet("results.parquet")
    >>> list(uw.study.load_results("results.parquet"))[:6]
    ['run', 'data', 'method', 'strength_name', 'strength', 'seed']
    """
    if is_stored_address(path):
        path = stored_file(str(path))
    file = Path(path) / TABLE if Path(path).is_dir() else Path(path)
    if not file.exists():
        raise DataError(f"{file}: no results yet; 'unweave study run' computes them")
    check_regular(file)
    import pyarrow
    import pyarrow.parquet

    try:
        pyarrow.parquet.read_table(file).validate(
            full=True
        )  # texts that are no texts would be an error much later
        table = pd.read_parquet(file)
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        RuntimeError,
        MemoryError,
        pyarrow.ArrowException,
    ) as error:
        raise DataError(f"{file}: not a results table ({shorten(str(error))})") from error
    if "representation" in table.columns and any(name not in table.columns for name in ABSENT):
        table = _converted(table)
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        raise DataError(f"{file}: not a results table (it has no column {missing[0]!r})")
    return table


def load(path: Path | str) -> pd.DataFrame:
    """The old name of :func:`load_results`."""
    warnings.warn("study.load is now called study.load_results", FutureWarning, stacklevel=2)
    return load_results(path)


def query(table: pd.DataFrame, sql: str) -> pd.DataFrame:
    """The answer to a DuckDB query, in which the table is called ``results``.

    Examples
    --------
    >>> from unweave.study.results import as_table
    >>> int(uw.study.query(as_table([]), "select count(*) as rows from results")["rows"].item())
    0
    """
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
    """Rows as a table with all columns in their types.

    A row without ``labels`` is of an encoder that takes none, one without ``part`` of all of the code, one without
    ``first`` of a run that needs no other.

    >>> as_table([]).shape
    (0, 23)
    """
    return pd.DataFrame([{**ABSENT, **row} for row in rows], columns=list(COLUMNS)).astype(COLUMNS)


def select(
    table: pd.DataFrame,
    metric: str,
    representation: str | None = None,
    protocol: str | None = None,
    labels: str | None = None,
    part: str | None = None,
) -> pd.DataFrame:
    """The rows of one metric; at most one row per run.

    Parameters
    ----------
    table
        a results table.
    metric
        a metric's name; "dci.completeness" is a part of one.
    representation
        "mean" or "sampled"; by default "mean" if the metric has it.
    protocol
        by default the first in the table.
    labels
        of an encoder that takes labels u, which scores: with u "given", "predicted" or "unknown". By default those
        that no true label went into (predicted, else unknown), so that they compare with other methods'.
    part
        of the codes: "c" or "z", say, or "" for all of the code. By default all of it, if the metric was computed so.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"run": ["a", "a"], "metric": "mig", "representation": ["mean", "sampled"],
    ...                       "labels": "", "part": "", "protocol": "dlib", "value": [0.4, 0.3]})
    >>> uw.study.select(table, "mig")["value"].tolist()
    [0.4]
    """
    if labels is not None and labels not in LABEL_MODES:
        raise unknown_name("labels", labels, LABEL_MODES)
    rows = table[table["metric"] == metric]
    if rows.empty:
        raise NotInStudyError(f"the study has no metric {metric!r}")
    parts = rows["part"].unique().tolist()
    wanted_part = part if part is not None else "" if "" in parts else parts[0]
    rows = rows[rows["part"] == wanted_part]
    if rows.empty:
        raise NotInStudyError(
            f"the study has {metric!r} of {_part_names(parts)} only, not of {_part_names([part])}"
        )
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


def split_metric(name: str) -> tuple[str, str]:
    """A metric and the detail of it that a name in the column ``metric`` stands for; "" for its value.

    >>> split_metric("dci.completeness"), split_metric("mig")
    (('dci', 'completeness'), ('mig', ''))
    """
    metric, _, detail = name.partition(".")
    return metric, detail


def details_of(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of a metric's details, such as one number per factor, with their names in the column ``detail``.

    Examples
    --------
    >>> import pandas as pd
    >>> from unweave.study.results import details_of
    >>> details_of(pd.DataFrame({"metric": ["dci", "dci.completeness", "mig"]}), "dci")["detail"].tolist()
    ['completeness']
    """
    names = [name for name in table["metric"].unique() if split_metric(name)[0] == metric]
    details = {name: split_metric(name)[1] for name in names if name != metric}
    rows = table[table["metric"].isin(details.keys())]
    return rows.assign(detail=rows["metric"].map(details).astype("str"))


def wide(table: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """One row per run, with the run's columns and one column per metric (NaN where a run lacks it).

    Examples
    --------
    >>> from unweave.study.results import as_table
    >>> run = {"run": "a", "data": "d", "method": "vae", "strength_name": "", "seed": 0, "latent_size": 10, "steps": 1,
    ...        "settings": "{}", "representation": "mean", "protocol": "dlib"}
    >>> table = as_table([{**run, "metric": "mig", "value": 0.4}, {**run, "metric": "sap", "value": 0.1}])
    >>> uw.study.wide(table, ["mig", "sap"])[["run", "mig", "sap"]]
      run  mig  sap
    0   a  0.4  0.1
    """
    columns: list[pd.DataFrame | pd.Series[Any]] = [
        select(table, metric).set_index("run")["value"].rename(metric) for metric in metrics
    ]
    runs = table.drop_duplicates("run")[RUN_COLUMNS].set_index("run")
    return runs.join(columns).reset_index()


def _part_names(parts: list[Any]) -> str:
    return ", ".join(f"the part {part!r}" if part else "all of the code" for part in parts)


def _converted(table: pd.DataFrame) -> pd.DataFrame:
    """A table of an older version, with the columns that came later."""
    if "labels" not in table.columns:
        names = {name: split_representation(name) for name in table["representation"].unique()}
        table = table.assign(
            representation=table["representation"].map({name: parts[0] for name, parts in names.items()}),
            labels=table["representation"].map({name: parts[1] for name, parts in names.items()}),
        ).astype({"representation": "str", "labels": "str"})
    lacking = {name: value for name, value in ABSENT.items() if name not in table.columns}
    table = table.assign(**lacking).astype({name: COLUMNS[name] for name in lacking})
    known = [name for name in COLUMNS if name in table.columns]
    return table[[*known, *(name for name in table.columns if name not in COLUMNS)]]
