"""Labels that somebody has for some of the photographs, and how discovered factors relate to them."""

from __future__ import annotations

import csv
import io
import math
import posixpath
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unweave.arrays import AnyArray, BoolArray, FloatArray, IntArray
from unweave.data.factors import FactorSpace
from unweave.errors import ArgumentError, DataError
from unweave.files import read_bytes

FEWEST_LABELLED = 10  # below this, no relation can be seen
SIGNIFICANT = 0.05
_PERMUTATIONS, _PERMUTATIONS_PER_COMPARISON = 999, 100
_BINS = 8
_MOST_VALUES = 32  # of a number: more are taken in equal parts
_UNKNOWN = frozenset(["", "na", "n/a", "nan", "null", "none", "?"])  # in a column of numbers
_LIMIT = 1 << 28


@dataclass(frozen=True)
class LabelColumn:
    """A column of labels: numbers, or categories by number, for the rows that have one.

    Parameters
    ----------
    name
        of the column.
    values
        (n,) NaN where unknown; categories are whole numbers.
    categories
        their texts; empty for numbers.
    """

    name: str
    values: FloatArray
    categories: tuple[str, ...]

    @property
    def known(self) -> BoolArray:
        """Which rows have a label (n,)."""
        return ~np.isnan(self.values)


@dataclass(frozen=True)
class Relation:
    """How a factor relates to a label on the labelled photographs.

    Parameters
    ----------
    label
        the column's name.
    kind
        "order": rank correlation, from -1 to 1; "information": the part of the label's entropy that is known from the
        factor, from 0 to 1, less what chance gives. Of numbers it is "information" where that is above the square
        of the rank correlation, as for angles and numbers that stand for categories.
    strength
        that number.
    p
        the probability of as much by chance, corrected for the number of factors and labels that were compared.
    labelled
        how many photographs it is of.
    """

    label: str
    kind: str
    strength: float
    p: float
    labelled: int

    @property
    def is_real(self) -> bool:
        """Whether chance is an unlikely explanation."""
        return self.p <= SIGNIFICANT


def read_labels(path: Path | str, names: Sequence[str], unreadable: Sequence[str] = ()) -> list[LabelColumn]:
    """The columns of a CSV file whose first column is a photograph's path relative to the folder; cells may be empty.

    Parameters
    ----------
    path
        of the CSV file, with a header line; cells are separated by commas, semicolons or tabs, as the header is.
    names
        of all photographs, in their order.
    unreadable
        files of the folder that cannot be read: their lines are passed over.

    Examples
    --------
    >>> _ = Path("some.csv").write_text("file,angle,kind\\na.png,3,cat\\nb.png,,dog\\n")
    >>> angle, kind = read_labels("some.csv", ["a.png", "b.png", "c.png"])
    >>> angle.values, kind.values, kind.categories
    (array([ 3., nan, nan]), array([ 0.,  1., nan]), ('cat', 'dog'))
    """
    file = Path(path)
    header, lines, has_decimal_commas = _read(file)
    columns = [cell.strip() for cell in header[1:]]
    if not columns or not all(columns) or len(set(columns)) != len(columns):
        raise DataError(
            f"{file}, line 1: needs a column of files, then columns of labels with different names"
        )
    rows = {_key(name): row for row, name in enumerate(names)} | {name: row for row, name in enumerate(names)}
    passed_over = {_key(name) for name in unreadable}
    cells: list[list[str]] = [[""] * len(names) for _ in columns]
    seen: set[str] = set()
    for number, line in lines:
        if len(line) != len(header):
            raise DataError(f"{file}, line {number}: has {len(line)} cells; the header has {len(header)}")
        name = line[0] if line[0] in rows else _key(line[0])
        if name in seen:
            raise DataError(f"{file}, line {number}: {line[0]!r} has a line already")
        seen.add(name)
        if name in passed_over:
            continue
        if name not in rows:
            raise DataError(f"{file}, line {number}: there is no photograph {line[0]!r} in the folder")
        for column, cell in zip(cells, line[1:], strict=True):
            column[rows[name]] = cell.strip()
    return [_column(name, column, has_decimal_commas) for name, column in zip(columns, cells, strict=True)]


def relate(codes: FloatArray, labels: Sequence[LabelColumn], seed: int = 0) -> list[list[Relation]]:
    """For each column of codes (n, K) its relation to every label.

    Categories are compared by mutual information with the factor in eight equal parts, numbers of more than two values
    by rank correlation, too: the larger counts. p is from permutations of the labels, times the number of comparisons.
    The rows must be independent of each other: see :func:`without_duplicates`.

    Examples
    --------
    >>> codes = np.random.default_rng(0).normal(size=(50, 1))
    >>> label = LabelColumn("angle", np.where(np.arange(50) < 40, 3 * codes[:, 0], np.nan), ())
    >>> relate(codes, [label])[0][0]
    Relation(label='angle', kind='order', strength=1.0, p=0.001, labelled=40)
    """
    rng = np.random.default_rng(seed)
    usable = [label for label in labels if _is_usable(label)]
    comparisons = codes.shape[1] * len(usable)
    return [
        [_relation(codes[:, column], label, comparisons, rng) for label in usable]
        for column in range(codes.shape[1])
    ]


def without_duplicates(labels: Sequence[LabelColumn], first_alike: IntArray) -> list[LabelColumn]:
    """The labels of different photographs only: copies of a photograph would each count as evidence.

    A photograph without a label has that of its first duplicate that has one.

    Parameters
    ----------
    labels
        by row (n,).
    first_alike
        for each row the first row that shows the same (n,).

    Examples
    --------
    >>> label = LabelColumn("angle", np.array([3.0, 3.0, np.nan, 5.0]), ())
    >>> without_duplicates([label], np.array([0, 0, 2, 2]))[0].values
    array([ 3., nan,  5., nan])
    """
    columns = []
    for label in labels:
        values = np.full(len(label.values), np.nan)
        for row in np.flatnonzero(label.known)[::-1]:  # the first one last: it stays
            values[first_alike[row]] = label.values[row]
        columns.append(replace(label, values=values))
    return columns


def useless_labels(labels: Sequence[LabelColumn]) -> Mapping[str, str]:
    """The labels that nothing can be compared with, and why."""
    return {
        label.name: f"only {int(label.known.sum())} of the photographs have it"
        if label.known.sum() < FEWEST_LABELLED
        else "all photographs that have it have the same"
        for label in labels
        if not _is_usable(label)
    }


def as_factors(labels: Sequence[LabelColumn]) -> tuple[FactorSpace, FloatArray]:
    """The labels as factors of a data set, and their values (n, K), NaN where unknown.

    Numbers of many values are continuous. Labels that nothing can be compared with are left out, and so are texts of
    which there are very many, such as names.

    Examples
    --------
    >>> angle = LabelColumn("angle", np.arange(50) / 2, ())
    >>> kind = LabelColumn("kind", np.arange(50.0) % 2, ("cat", "dog"))
    >>> space, table = as_factors([angle, kind])
    >>> space.sizes, table[3]
    (((0.0, 24.5), 2), array([1.5, 1. ]))
    """
    sizes: dict[str, int | tuple[float, float]] = {}
    texts: dict[str, tuple[str, ...]] = {}
    columns = []
    for label in filter(_is_usable, labels):
        values, numbers = np.unique(label.values[label.known], return_inverse=True)
        is_many = len(values) > _MOST_VALUES
        if is_many and label.categories:
            continue
        column = label.values.copy()
        if is_many:
            sizes[label.name] = (float(values[0]), float(values[-1]))
        else:
            column[label.known] = numbers
            sizes[label.name] = len(values)
            texts[label.name] = tuple(
                label.categories[int(value)] if label.categories else f"{value:g}" for value in values
            )
        columns.append(column)
    categorical = [label.name for label in labels if label.categories and label.name in sizes]
    space = FactorSpace(list(sizes), list(sizes.values()), categorical, texts)
    return space, np.stack(columns, axis=1) if columns else np.empty((0, 0))


def _is_usable(label: LabelColumn) -> bool:
    values = label.values[label.known]
    return len(values) >= FEWEST_LABELLED and len(np.unique(values)) > 1


def _relation(code: FloatArray, label: LabelColumn, comparisons: int, rng: np.random.Generator) -> Relation:
    """The relation by some permutations; one that may be real by as many as the number of comparisons asks for.

    With 999 of them p is 0.001 at least, and 0.002 where one kind of relation is there and the other is not, which
    times 26 comparisons would call nothing real. What the first test lets pass is judged by the second alone, so that
    two tests give no more false alarms than one.
    """
    rows = label.known
    values, code = label.values[rows], code[rows]
    kind, strength, p = _test(code, label, values, _PERMUTATIONS, rng)
    needed = _PERMUTATIONS_PER_COMPARISON * comparisons - 1
    if needed > _PERMUTATIONS and p <= SIGNIFICANT:
        kind, strength, p = _test(code, label, values, needed, rng)
    return Relation(label.name, kind, strength, min(1.0, p * comparisons), len(values))


def _test(
    code: FloatArray, label: LabelColumn, values: FloatArray, permutations: int, rng: np.random.Generator
) -> tuple[str, float, float]:
    """The kind of a relation, its strength, and p by so many permutations, of this comparison alone."""
    from scipy.stats import rankdata

    parts, groups = _parts(code), _groups(label, values)
    first, second = (_standard(rankdata(each)) for each in (code, values))
    shared, correlations = np.empty(1 + permutations), np.empty(1 + permutations)
    for number in range(1 + permutations):  # as it is, and by chance
        order = rng.permutation(len(values)) if number else np.arange(len(values))
        shared[number] = _information(parts, groups[order])
        correlations[number] = second[order] @ first
    chance = shared[1:].mean()
    share = max(0.0, float((shared[0] - chance) / max(_entropy(np.bincount(groups)) - chance, 1e-9)))
    if label.categories or len(np.unique(values)) <= 2:
        return "information", share, float(_p_values(shared[None])[0])
    # The better of two tests, compared with the better of the two by chance.
    p = float(
        _p_values(-_p_values(np.stack([shared, np.abs(correlations)]), of_all=True).min(axis=0)[None])[0]
    )
    if correlations[0] ** 2 >= share:
        return "order", round(float(correlations[0]), 9), p
    return "information", share, p


def _p_values(statistics: FloatArray, of_all: bool = False) -> FloatArray:
    """The share of values (tests, 1 + permutations) at least as large as the first of a test, or as each of them."""
    ordered = np.sort(statistics, axis=1)
    wanted = statistics if of_all else statistics[:, :1]
    below = np.stack([np.searchsorted(row, each - 1e-12) for row, each in zip(ordered, wanted, strict=True)])
    p: FloatArray = (statistics.shape[1] - below) / statistics.shape[1]  # exact: 0.05 is 0.05
    return p if of_all else p[:, 0]


def _groups(label: LabelColumn, values: FloatArray) -> IntArray:
    """Labels as whole numbers from 0; numbers of many values in equal parts."""
    groups = np.unique(values, return_inverse=True)[1]
    return groups if label.categories or groups.max() < _MOST_VALUES else _parts(values)


def _standard(ranks: AnyArray) -> FloatArray:
    centred = np.asarray(ranks, np.float64) - np.mean(ranks)
    length = np.linalg.norm(centred)
    return centred / length if length > 0 else centred


def _parts(code: FloatArray) -> IntArray:
    """Which of eight equal parts each value is in; fewer where there are few values."""
    bins = max(2, min(_BINS, len(code) // 5))
    edges = np.quantile(code, np.linspace(0, 1, bins + 1)[1:-1])
    return np.searchsorted(edges, code, side="right")


def _information(first: IntArray, second: IntArray) -> float:
    shape = (first.max() + 1, second.max() + 1)
    table = np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).reshape(shape)
    return _entropy(table.sum(axis=1)) + _entropy(table.sum(axis=0)) - _entropy(table.ravel())


def _entropy(counts: AnyArray) -> float:
    part = counts[counts > 0] / counts.sum()
    return float(-(part * np.log(part)).sum())


def _key(name: str) -> str:
    """A name as it is compared: systems differ in slashes, and in whether an umlaut is one character or two."""
    return unicodedata.normalize("NFC", posixpath.normpath(name.strip().replace("\\", "/")))


def _column(name: str, cells: Sequence[str], has_decimal_commas: bool) -> LabelColumn:
    """Numbers, if all cells are that are not empty, or say in a usual way that nothing is known; else categories."""
    try:
        numbers = [_number(cell.replace(",", ".") if has_decimal_commas else cell) for cell in cells]
        if all(map(math.isnan, numbers)):
            raise ValueError
        return LabelColumn(name, np.array(numbers), ())
    except ValueError:
        categories = tuple(sorted({cell for cell in cells if cell}))
        number = {text: float(index) for index, text in enumerate(categories)}
        return LabelColumn(name, np.array([number.get(cell, math.nan) for cell in cells]), categories)


def _number(cell: str) -> float:
    if cell.lower() in _UNKNOWN:
        return math.nan
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError
    return value


def _read(path: Path) -> tuple[list[str], list[tuple[int, list[str]]], bool]:
    """The header, the lines with their numbers, and whether numbers are written as 1,5.

    Spreadsheets separate cells by semicolons where numbers have a comma.
    """
    try:
        text = read_bytes(path, _LIMIT).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise ArgumentError("labels", str(path), "there is no such file") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text; save the table as CSV UTF-8") from error
    first = text.lstrip().partition("\n")[0]
    separator = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    rows = []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append((reader.line_num, row))
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}") from error
    if not rows:
        raise DataError(f"{path}: is empty; needs a header line: file, then the names of the labels")
    return rows[0][1], rows[1:], separator == ";"
