"""Labels u that a method sees next to the images: factors, as they are, binned or noisy, or the user's own array."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Lt

from unweave.arrays import (
    AnyArray,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    SingleArray,
    as_array,
    to_python,
)
from unweave.data.dataset import Dataset
from unweave.data.factors import Rng, check_rows
from unweave.data.fingerprint import fingerprint
from unweave.data.supervision.weak import LabelledSubset, labelled_subset
from unweave.errors import ArgumentError, unknown_name
from unweave.parameters import Fraction, check_value

Encoding = Literal["scaled", "one_hot", "mixed"]
LabelledImages = Literal["mixed", "apart"]
Sizes = Sequence[int | None]
MOST_ENTRIES = 2**15  # of one-hot labels in u; the networks of a prior have 1,000 weights or more for each
_FEW = 64  # images by which the rows are recognised that an array of labels belongs to


@dataclass(frozen=True)
class LabelColumn:
    """One label: ``size`` values 0 .. size - 1, or a number in [0, 1] (None); in u ``one_hot`` or as one number.

    Examples
    --------
    >>> LabelColumn("shape", 3, one_hot=True).width
    3
    """

    name: str
    size: int | None
    one_hot: bool

    @property
    def width(self) -> int:
        """How many entries of u it takes."""
        return self.size if self.one_hot and self.size is not None else 1


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels u (n, d) of a data set's rows; NaN where there is none. The result of :func:`labels_of`.

    Parameters
    ----------
    data
        whose rows have the labels.
    columns
        what u consists of, from left to right.
    sizes
        per label the number of its values before they were binned; None for a number in [0, 1].
    subset
        the rows that have labels; None: all of them.
    spec
        all of this as plain data, for a run's spec.
    array
        the user's own labels (N, K), where they are not factors.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> labels_of(data, encoding="one_hot").of([0, 3])
    array([[1., 0., 0., 0.], [0., 0., 0., 1.]], dtype=float32)
    """

    data: Dataset
    columns: tuple[LabelColumn, ...]
    sizes: tuple[int | None, ...]
    subset: LabelledSubset | None
    spec: dict[str, Any]
    array: AnyArray | None = None

    def of(self, which: ArrayLike) -> SingleArray:
        """u (n, d), float32, of rows (n,), or of factors (n, K) in an endless simulator; unlabelled rows are NaN."""
        u = self.known(which)
        if self.subset is not None:
            u[~self.subset.contains(which)] = np.nan
        return u

    def known(self, which: ArrayLike) -> SingleArray:
        """As ``of``, with the labels of rows outside the labelled subset too: for evaluation.

        They are those that the method learns from: with ``noise`` some are wrong here as well, as in training.
        """
        asked = np.asarray(which)
        values = self._values(asked)
        if self.spec.get("noise"):
            values = _replace_some(values, asked, self.sizes, self.spec["noise"], self.spec.get("seed", 0))
        return _encode(_bin_values(values, self.sizes, self.spec.get("bins")), self.columns)

    def sample_labelled(self, n: int, rng: Rng) -> IntArray | None:
        """n labelled rows, drawn uniformly with replacement; None where every row is labelled."""
        return None if self.subset is None else self.subset.sample(n, rng)

    def sample(self, n: int, rng: Rng) -> SingleArray:
        """n draws of u as the labelled rows have them, without NaN: a label that a row lacks is another row's."""
        if not self.data.finite:
            return self.of(self.data.sample_factors(n, rng))
        rows = self.sample_labelled(n, rng)
        u = self.of(self.data.sample_rows(n, rng) if rows is None else rows)
        start = 0
        for column in self.columns:
            block = u[:, start : start + column.width]
            missing = np.isnan(block[:, 0])
            if missing.any():
                block[missing] = self._sample_one(start, column.width, int(missing.sum()), rng)
            start += column.width
        return u

    def _sample_one(self, start: int, width: int, n: int, rng: Rng) -> SingleArray:
        """n draws of one label, from all rows that have it."""
        rows = np.arange(len(self.data)) if self.subset is None else self.subset.rows
        block = self.of(rows)[:, start : start + width]
        known = np.flatnonzero(~np.isnan(block[:, 0]))
        if not len(known):
            raise ArgumentError(
                "labels", "a label that no labelled row has", "needs at least one known label"
            )
        return np.asarray(block[rng.choice(known, n)])

    def _values(self, asked: AnyArray) -> FloatArray:
        """The labels before noise, bins and encoding, (n, K); a continuous one is in [0, 1]."""
        if self.array is not None:
            return self.array[check_rows(asked, len(self.array))].astype(np.float64)
        space = self.data.space
        factors = space.check(asked) if asked.ndim == 2 else self.data.factors(asked)
        values = np.empty((len(factors), len(self.columns)))
        for label, column in enumerate(self.columns):
            position = space.position(column.name)
            size = space.sizes[position]
            low, high = size if isinstance(size, tuple) else (0, 1)
            values[:, label] = (factors[:, position] - low) / (high - low)
        return values


LabelChoice = Labels | Mapping[str, Any] | str | Sequence[str] | ArrayLike


def labels_of(
    data: Dataset,
    names: str | Sequence[str] | None = None,
    *,
    array: ArrayLike | None = None,
    encoding: Encoding = "scaled",
    bins: int | None = None,
    noise: float = 0.0,
    labelled: float | int | None = None,
    seed: int = 0,
    batches: LabelledImages = "mixed",
) -> Labels:
    """The labels u of a data set, as a method that learns from them gets them.

    Parameters
    ----------
    names
        of the factors that u consists of, in this order; None: all of them.
    array
        the user's own labels by row, (n,) or (n, K), instead of factors; ``names`` then names its columns.
        Whole numbers (an integer dtype) are values 0 .. size - 1 of discrete labels, floats are numbers in
        [0, 1]; with "one_hot", a column of floats may hold whole numbers too, and must, if there are no
        ``bins``. NaN: this label is not known.
    encoding
        "scaled": one entry per label in [0, 1]; of a discrete one value / size, so that the largest is
        (size - 1) / size, as Mita et al. and Locatello et al. (2020, few labels) have it; of a continuous one
        (value - low) / (high - low). "one_hot": ``size`` entries per label. "mixed": factors whose values
        have no order one-hot, all others scaled.
    bins
        at most so many values per label: value -> floor(value * bins / size).
    noise
        the probability that a label is replaced by a value drawn uniformly from all; fixed for each row.
    labelled
        only this many rows (an int), or this part of all (a float), have labels; they are drawn from those
        that have any, where factors, or ``array``, are known of some rows only.
    seed
        which rows these are, as :func:`unweave.data.labelled_subset` has it; and of the noise.
    batches
        how a semi-supervised method learns from labelled images: "mixed", its loss is the mean over images as they
        come, labelled or not; "apart", the mean over images taken without labels plus that over labelled ones.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> labels_of(data).of([0, 1, 2, 3])[:, 0]
    array([0.  , 0.25, 0.5 , 0.75], dtype=float32)
    """
    check_value("encoding", encoding, Encoding)
    check_value("batches", batches, LabelledImages)
    bins, noise, labelled, seed = to_python((bins, noise, labelled, seed))
    _check_options(data, bins, noise, labelled, seed)
    chosen, has_any = _listed(names), None
    options: dict[str, Any] = {"bins": bins, "noise": float(noise) or None, "labelled": labelled}
    options |= {"seed": seed or None, "batches": None if batches == "mixed" else batches}
    spec: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    given = None if array is None else _label_array(array, data, encoding)
    if given is None:
        chosen = _factor_names(data, chosen)
        ranges = [data.space.sizes[data.space.position(name)] for name in chosen]
        sizes = [size if isinstance(size, int) else None for size in ranges]
        if data.partly_labelled:
            positions = [data.space.position(name) for name in chosen]
            unknown = np.isnan(data.factors(np.arange(len(data)))[:, positions])
            spec |= {"partial": True} if unknown.any() else {}
            has_any = np.asarray(~unknown.all(axis=1))
            if not has_any.any():
                raise ArgumentError("labels", chosen, "no row has one of these labels")
    else:
        chosen = _column_names(chosen, given.shape[1])
        discrete = _discrete_columns(given, encoding, bins)
        values = _check_values(given, discrete)
        sizes = [
            int(np.nanmax(column)) + 1 if whole else None
            for column, whole in zip(values.T, discrete, strict=True)
        ]
        has_any = np.asarray((~np.isnan(values)).any(axis=1))
        spec |= {"array": hashlib.sha256(values.tobytes()).hexdigest(), "images": fingerprint(data, _FEW)}
        spec |= {"partial": True} if np.isnan(values).any() else {}
    subset = _subset(data, labelled, seed, has_any)
    if subset is not None:
        spec["partial"] = True
        if data.sampler is not None:
            message = f"{data.name} samples rows in its own way: a labelled part needs uniform sampling"
            if labelled is None:
                raise ArgumentError("labels", "some rows have none", message)
            raise ArgumentError("labelled", labelled, message)
    columns = _columns(data, chosen, sizes, encoding, bins)
    _check_width(columns, encoding)
    spec = {"columns": [asdict(column) for column in columns], "encoding": encoding, **spec}
    return Labels(data, columns, tuple(sizes), subset, spec, given)


def labels_from_spec(spec: Mapping[str, Any], data: Dataset, array: ArrayLike | None = None) -> Labels:
    """The labels of a run's spec, on ``data``; those of the user's own array need it again.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> labels = labels_of(data, labelled=2)
    >>> labels_from_spec(labels.spec, data).subset.rows.tolist() == labels.subset.rows.tolist()
    True
    """
    if "array" in spec and array is None:
        raise ArgumentError(
            "labels",
            None,
            "the method learns from an array, which it needs again: uw.load(path, labels=array)",
        )
    known = ("encoding", "bins", "noise", "labelled", "seed", "batches")
    options = {key: spec[key] for key in known if key in spec}
    names = [column["name"] for column in spec["columns"]]
    try:
        labels = labels_of(data, names, array=array if "array" in spec else None, **options)
    except ArgumentError as error:
        if "array" in spec or error.argument == "data":
            raise
        why = f"does not have the labels that the method was created for: {error}"
        raise ArgumentError("data", data.name, why) from error
    if labels.spec.get("images") != spec.get("images"):
        why = "has other images: the method's array of labels belongs to the rows that it was created for"
        raise ArgumentError("data", data.name, why)
    ignored = (
        () if "array" in spec or "labelled" in spec else ("partial",)
    )  # which rows have labels is the data's
    if _without(labels.spec, ignored) != _without(spec, ignored):
        columns = [(column.name, column.size) for column in labels.columns]
        raise ArgumentError(
            "data", data.name, f"has labels {columns}, others than the method was created for"
        )
    return labels


def _without(spec: Mapping[str, Any], ignored: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in ignored}


def choose_labels(data: Dataset, labels: LabelChoice | None) -> Labels:
    """Labels from what a user says of them.

    Parameters
    ----------
    data
        whose rows have labels.
    labels
        names of factors, an array by row, or a mapping of the arguments of :func:`labels_of`; None: all factors.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> choose_labels(data, {"names": ["shape"], "encoding": "one_hot"}).columns[0].width
    4
    """
    if isinstance(labels, Labels):
        return labels_from_spec(labels.spec, data, labels.array)
    if isinstance(labels, Mapping):
        known = [name for name in inspect.signature(labels_of).parameters if name != "data"]
        for key in labels:
            if key not in known:
                raise unknown_name("labels", str(key), known)
        return labels_of(data, **labels)
    if labels is None or isinstance(labels, str):
        return labels_of(data, labels)
    if isinstance(labels, list | tuple) and all(isinstance(name, str) for name in labels):
        return labels_of(data, [str(name) for name in labels])
    return labels_of(data, array=labels)


def _columns(
    data: Dataset, names: Sequence[str], sizes: Sequence[int | None], encoding: str, bins: int | None
) -> tuple[LabelColumn, ...]:
    columns = []
    for name, size in zip(names, sizes, strict=True):
        count = bins if bins is not None and (size is None or size > bins) else size
        one_hot = encoding == "one_hot" or (encoding == "mixed" and name in data.space.categorical)
        if one_hot and count is None:
            raise ArgumentError("encoding", encoding, f"{name!r} is continuous: take 'scaled', or bins=…")
        columns.append(LabelColumn(name, count, one_hot))
    return tuple(columns)


def _subset(
    data: Dataset, labelled: float | int | None, seed: int, has_any: BoolArray | None
) -> LabelledSubset | None:
    """The rows that have labels, chosen of those that have any (n,); None where that is every row."""
    if labelled is None:
        return (
            None
            if has_any is None or has_any.all()
            else LabelledSubset(np.flatnonzero(has_any).astype(np.int64))
        )
    is_count = isinstance(labelled, int)
    if has_any is not None:
        wanted, there = labelled if is_count else round(labelled * len(data)), int(has_any.sum())
        if wanted > there:
            raise ArgumentError(
                "labelled", labelled, f"is {wanted:,} rows, and there are labels for {there:,}"
            )
    subset = labelled_subset(
        data,
        None if is_count else labelled,
        count=int(labelled) if is_count else None,
        seed=seed,
        among=has_any,
    )
    return None if len(subset) == len(data) else subset


# --- values ------------------------------------------------------------------------------------------


def _encode(values: FloatArray, columns: Sequence[LabelColumn]) -> SingleArray:
    """FloatArray (n, K) to u (n, d); NaN in one label makes all its entries NaN."""
    u = np.empty((len(values), sum(column.width for column in columns)), np.float32)
    start = 0
    for column, value in zip(columns, values.T, strict=True):
        block = u[:, start : start + column.width]
        if column.one_hot:
            block[:] = value[:, None] == np.arange(column.width)
            block[np.isnan(value)] = np.nan
        else:
            block[:, 0] = value / (column.size or 1)
        start += column.width
    return u


def _bin_values(values: FloatArray, sizes: Sizes, bins: int | None) -> FloatArray:
    """At most ``bins`` values per label: floor(value * bins / size), and floor(value * bins) of those in [0, 1]."""
    if bins is None:
        return values
    out = values.copy()
    for column, size in enumerate(sizes):
        if size is None or size > bins:
            scaled = values[:, column] * bins / (size or 1)
            out[:, column] = np.minimum(np.floor(scaled), bins - 1)  # 1.0 is in the last bin; NaN stays
    return out


def _replace_some(values: FloatArray, rows: AnyArray, sizes: Sizes, noise: float, seed: int) -> FloatArray:
    """Each label, with probability ``noise``, replaced by a uniform draw: a function of (seed, row, column)."""
    out = values.copy()
    for column, size in enumerate(sizes):
        hit = _uniform(rows, 2 * column, seed) < noise
        drawn = _uniform(rows, 2 * column + 1, seed)
        new = drawn if size is None else np.floor(drawn * size)
        out[:, column] = np.where(hit & ~np.isnan(values[:, column]), new, values[:, column])
    return out


def _uniform(rows: AnyArray, stream: int, seed: int) -> FloatArray:
    """A number in [0, 1) for each row, by the finaliser of SplitMix64: no table of all rows is needed."""
    key = (seed * 0x9E3779B97F4A7C15 + stream * 0x8CB92BA72F3D8DD7 + 1) % 2**64
    mixed = rows.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03) + np.uint64(key)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2**53


# --- checks ------------------------------------------------------------------------------------------


def _check_options(data: Dataset, bins: object, noise: object, labelled: object, seed: object) -> None:
    """Refuse bins, noise, a labelled part or a seed that are not what they must be."""
    check_value("bins", bins, Annotated[int, Ge(2)] | None)
    check_value("noise", noise, Fraction)
    check_value("seed of labels", seed, Annotated[int, Ge(0), Lt(2**63)])
    if noise and not data.finite:
        raise ArgumentError("noise", noise, f"{data.name} is endless: it has no rows to fix wrong labels for")
    if labelled is not None and data.finite:
        _check_labelled(labelled, len(data))


def _listed(names: object) -> list[str] | None:
    """Names as a list; one alone may be given as text."""
    if names is None:
        return None
    given = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if not all(isinstance(name, str) for name in given):
        raise ArgumentError("names", names, "needs names, as text")
    return [str(name) for name in given]


def _factor_names(data: Dataset, names: list[str] | None) -> list[str]:
    """The factors of that name, or all; refuses unknown ones."""
    if not data.space:
        raise ArgumentError(
            "data",
            data.name,
            "has no factors to learn from: a folder of images needs a factors.csv, "
            "and in Python labels=… may be an array with a row for each image",
        )
    if names is None:
        return list(data.space.names)
    for name in names:
        if name not in data.space.names:
            raise unknown_name("labels", str(name), data.space.names)
    if not names or len(set(names)) != len(names):
        raise ArgumentError("labels", names, f"needs different factors, of {', '.join(data.space.names)}")
    return names


def _column_names(names: list[str] | None, count: int) -> list[str]:
    """Names of the columns of an array: those given, or label_0, label_1, …"""
    names = [f"label_{column}" for column in range(count)] if names is None else names
    if len(names) != count or len(set(names)) != count:
        raise ArgumentError(
            "names", names, f"needs {count} different names, one for each column of the array"
        )
    return names


def _label_array(array: ArrayLike, data: Dataset, encoding: str) -> AnyArray:
    """A user's labels as a new array (N, K), with a row for each of the data set."""
    given = as_array(array, "labels")
    if not data.finite:
        raise ArgumentError(
            "labels", "an array", f"{data.name} is endless: it has no rows that could have labels"
        )
    if given.dtype.kind not in "biuf" or given.ndim not in (1, 2) or given.size == 0:
        raise ArgumentError(
            "labels", f"{given.dtype} array of shape {given.shape}", "needs numbers (n,) or (n, K)"
        )
    if len(given) != len(data):
        raise ArgumentError("labels", f"{len(given)} rows", f"{data.name} has {len(data)}")
    if encoding == "mixed":
        raise ArgumentError("encoding", encoding, "an array of labels needs 'scaled' or 'one_hot'")
    return np.array(given.reshape(len(given), -1))


def _discrete_columns(given: AnyArray, encoding: str, bins: int | None) -> list[bool]:
    """Which columns (n, K) hold whole numbers, one for each value, rather than numbers in [0, 1].

    Integers do. Floats do if they are to be one-hot, unless bins can make values of what is not whole.
    """
    if given.dtype.kind in "biu" or encoding != "one_hot":
        return [given.dtype.kind in "biu"] * given.shape[1]
    whole = (given == np.floor(given)) | np.isnan(given)
    return [bins is None or bool(column.all()) for column in whole.T]


def _check_values(given: AnyArray, discrete: Sequence[bool]) -> FloatArray:
    """A user's labels (n, K) as float64, NaN where unknown; refuses what is out of range."""
    values = given.astype(np.float64)
    whole = np.array(discrete)
    known = ~np.isnan(values)
    values[~known] = np.nan  # one bit pattern for all, so that equal labels have equal hashes
    if not known.any(axis=0).all():
        column = int(np.argmin(known.any(axis=0)))
        raise ArgumentError("labels", f"column {column} is all NaN", "needs at least one known label")
    with np.errstate(invalid="ignore"):
        wrong = (values < 0) | np.where(whole, values != np.floor(values), values > 1)
        wrong = (wrong | np.isinf(values)) & known
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        needs = "whole numbers >= 0, one for each value" if whole[column] else "numbers in [0, 1]"
        raise ArgumentError(f"labels[{row}, {column}]", values[row, column].item(), f"needs {needs}, or NaN")
    return values


def _check_width(columns: Sequence[LabelColumn], encoding: str) -> None:
    """Refuse one-hot labels of so many values that no network could take them."""
    if sum(column.width for column in columns if column.one_hot) > MOST_ENTRIES:
        most = max(columns, key=lambda column: column.width)
        raise ArgumentError(
            "encoding",
            encoding,
            f"{most.name!r} has {most.width:,} values, and all labels together may have {MOST_ENTRIES:,}: "
            "number the values 0, 1, 2, … without gaps, or take 'scaled', or bins=…",
        )


def _check_labelled(labelled: object, total: int) -> None:
    is_number = isinstance(labelled, int | float) and not isinstance(labelled, bool)
    most = total if isinstance(labelled, int) else 1
    if not is_number or not 0 < labelled <= most:  # type: ignore[operator]
        needs = f"needs a number of rows, 1 to {total:,} (an int), or a part of them, up to 1.0 (a float)"
        raise ArgumentError("labelled", labelled, needs)
