"""A user's labels of some images, by file name or by row, become the factors of a data set."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unweave.arrays import AnyArray
from unweave.data.dataset import Dataset
from unweave.data.own.arrays import labelled
from unweave.data.own.columns import factor_table
from unweave.data.own.factor_csv import normal_path, read_factor_csv
from unweave.errors import ArgumentError, unknown_name

UserLabels = str | os.PathLike[str] | Mapping[Any, Any] | Any
_KEYS = ("file", "row")  # what a column of file names, or of rows, may be called


def with_labels(
    data: Dataset, labels: UserLabels, *, names: Sequence[str] | None = None, categorical: Sequence[str] = ()
) -> Dataset:
    """The same images with a user's labels as their factors; rows without a label have unknown ones.

    Parameters
    ----------
    data
        finite. Its rows are called by their file names (``data.files``) where it has some, else by number.
    labels
        a CSV file whose first column names the row; a mapping from a row's name to its label, or to a mapping of
        several; or a data frame with the names in its index, or in a column ``file`` (or ``row``). Labels are numbers
        or text and become factors as in :func:`unweave.data.own.columns.factor_table`. What is empty, None or NaN, or
        not there at all, is not known.
    names
        the labels to use; by default all. Of a mapping to single labels, what to call them (by default "label").
    categorical
        those whose values have no order; text has none anyway.

    Returns
    -------
    Dataset
        in the same order. ``labelled_rows()`` are those whose labels are all known.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8), np.uint8))
    >>> labelled = uw.data.with_labels(data, {0: "cat", 3: "dog"})
    >>> labelled
    Dataset(arrays: 4 of 8x8x1, 2 labelled; label=2)
    >>> labelled.factors([0, 1, 3]).ravel()
    array([ 0., nan,  1.])
    """
    if not data.finite or data.array is None:
        raise ArgumentError("data", data.name, "is computed from its factors: it cannot have others")
    keys = tuple(map(str, range(len(data)))) if data.files is None else data.files
    columns = label_columns(labels, keys, Path(data.folder or "."), names=names)
    space, table = factor_table(columns, categorical)
    relabelled = labelled(data.name, space, data.array, table)
    file = str(Path(labels).expanduser().absolute()) if isinstance(labels, str | os.PathLike) else ""
    return data.with_parts(space=space, index=relabelled.index, labels_file=file)


def label_columns(
    labels: UserLabels,
    keys: Sequence[str],
    folder: Path,
    *,
    names: Sequence[str] | None = None,
    skipped: Collection[str] = (),
) -> dict[str, AnyArray]:
    """The columns (n,) of labels by name, in the order of ``keys``, what the rows are called.

    Examples
    --------
    >>> labels = {"a.png": {"size": 3}, "b.png": {"size": 5, "shape": "cube"}}
    >>> label_columns(labels, ["a.png", "b.png"], Path())["shape"].tolist()
    [None, 'cube']
    """
    if isinstance(labels, str | os.PathLike):
        columns: dict[str, AnyArray] = read_factor_csv(folder, Path(labels).expanduser(), keys, skipped)
    else:
        cells = _mapping_cells(labels, names) if isinstance(labels, Mapping) else _frame_cells(labels)
        columns = _placed(cells, keys, folder, skipped)
    for name in names or ():
        if name not in columns:
            raise unknown_name("names", name, columns)
    return columns if names is None else {name: columns[name] for name in names}


@runtime_checkable
class _Frame(Protocol):
    """A data frame of any library."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: Any) -> Any: ...


def _mapping_cells(labels: Mapping[Any, Any], names: Sequence[str] | None) -> dict[Any, dict[str, Any]]:
    """Labels by name of each key of a mapping."""
    if not labels:
        raise ArgumentError("labels", labels, "is empty: needs the label of one row at least")
    several = [isinstance(value, Mapping) for value in labels.values()]
    if all(several):
        return {key: {str(name): cell for name, cell in value.items()} for key, value in labels.items()}
    if any(several):
        raise ArgumentError("labels", labels, "needs one label for each row, or a mapping of labels for each")
    if names is not None and len(names) != 1:
        raise ArgumentError("names", list(names), "the mapping has one label for each row: needs one name")
    name = "label" if names is None else names[0]
    return {key: {name: value} for key, value in labels.items()}


def _frame_cells(labels: Any) -> dict[Any, dict[str, Any]]:
    """Labels by name of each row of a frame, whose names are in its index or in a column."""
    if not isinstance(labels, _Frame):
        shown = type(labels).__name__
        raise ArgumentError("labels", shown, "needs a CSV file, a mapping from file names, or a data frame")
    columns = {str(name): list(labels[name]) for name in labels.columns}
    named = next((name for name in _KEYS if name in columns), None)
    index: Any = getattr(labels, "index", None)
    if named is not None:
        keys = columns.pop(named)
    elif index is not None and not callable(index):
        keys = list(index)
    else:
        raise ArgumentError(
            "labels", list(columns), f"needs a column {' or '.join(_KEYS)} that names the rows"
        )
    rows: dict[Any, dict[str, Any]] = {}
    for number, key in enumerate(keys):
        if key in rows:
            raise ArgumentError("labels", key, "is there twice")
        rows[key] = {name: column[number] for name, column in columns.items()}
    return rows


def _placed(
    cells: Mapping[Any, Mapping[str, Any]], keys: Sequence[str], folder: Path, skipped: Collection[str]
) -> dict[str, AnyArray]:
    """Labels by key as columns (n,) of objects in the order of ``keys``; None where there is none."""
    row_of = {key: row for row, key in enumerate(keys)}
    names = list(dict.fromkeys(name for values in cells.values() for name in values))
    columns = {name: np.full(len(keys), None, dtype=object) for name in names}
    unknown, placed = [], set()
    for key, values in cells.items():
        name = _key(key, folder)
        if name in skipped:
            continue
        if name not in row_of:
            unknown.append(str(key))
            continue
        if name in placed:
            raise ArgumentError("labels", str(key), f"is there twice, as {name}")
        placed.add(name)
        for label, value in values.items():
            columns[label][row_of[name]] = value
    if unknown:
        some = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
        raise ArgumentError("labels", some, f"{len(unknown)} of {len(cells)} are the names of no row")
    return columns


def _key(key: Any, folder: Path) -> str:
    """The name of a row as the data set has it: a path relative to the folder, or a number."""
    name = normal_path(os.fspath(key) if isinstance(key, os.PathLike) else str(key))
    inside = normal_path(str(folder.expanduser().absolute())) + "/"
    return name.removeprefix(inside)
