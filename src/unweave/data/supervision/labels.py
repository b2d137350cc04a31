"""Labels u that a method sees next to the images: factors, as they are, binned or noisy, or the user's own array."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from unweave.arrays import to_python
from unweave.data.dataset import Dataset
from unweave.data.factors import Rng, check_rows
from unweave.data.fingerprint import fingerprint
from unweave.data.rows import Rows
from unweave.data.supervision.label_checks import (
    check_options,
    check_values,
    check_width,
    column_names,
    discrete_columns,
    factor_names,
    listed,
    own_array,
)
from unweave.data.supervision.label_values import (
    LabelArray,
    LabelColumn,
    Values,
    bin_values,
    encode,
    replace_some,
)
from unweave.data.supervision.weak import LabelledSubset, labelled_subset
from unweave.errors import ArgumentError, unknown_name

Encoding = Literal["scaled", "one_hot", "mixed"]
_FEW = 64  # images that tell whose rows an array of labels belongs to


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels u (n, d) of a data set's rows; NaN where there is none. Made by :func:`labels_of`.

    columns
        what u is made of, from left to right.
    sizes
        per label the number of its values before they were binned; None for a number in [0, 1].
    subset
        the rows that have labels; None: all of them.
    spec
        all of this as plain data, for a run's spec.
    array
        the user's own labels (N, K), where they are not factors.
    """

    data: Dataset
    columns: tuple[LabelColumn, ...]
    sizes: tuple[int | None, ...]
    subset: LabelledSubset | None
    spec: dict[str, Any]
    array: npt.NDArray[Any] | None = None

    def of(self, which: npt.ArrayLike) -> LabelArray:
        """u (n, d), float32, of rows (n,), or of factors (n, K) in an endless simulator; unlabelled rows are NaN."""
        u = self.known(which)
        if self.subset is not None:
            u[~self.subset.contains(which)] = np.nan
        return u

    def known(self, which: npt.ArrayLike) -> LabelArray:
        """As ``of``, with the labels of rows outside the labelled subset too: for evaluation.

        They are those that the method learns from: with ``noise`` some are wrong here as well, as in training.
        """
        asked = np.asarray(which)
        values = self._values(asked)
        if self.spec.get("noise"):
            values = replace_some(values, asked, self.sizes, self.spec["noise"], self.spec.get("seed", 0))
        return encode(bin_values(values, self.sizes, self.spec.get("bins")), self.columns)

    def sample_labelled(self, n: int, rng: Rng) -> Rows | None:
        """n labelled rows, drawn uniformly with replacement; None where every row is labelled."""
        return None if self.subset is None else self.subset.sample(n, rng)

    def sample(self, n: int, rng: Rng) -> LabelArray:
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

    def _sample_one(self, start: int, width: int, n: int, rng: Rng) -> LabelArray:
        """n draws of one label, from all rows that have it."""
        rows = np.arange(len(self.data)) if self.subset is None else self.subset.rows
        block = self.of(rows)[:, start : start + width]
        known = np.flatnonzero(~np.isnan(block[:, 0]))
        if not len(known):
            raise ArgumentError(
                "labels", "a label that no labelled row has", "needs at least one known label"
            )
        return np.asarray(block[rng.choice(known, n)])

    def _values(self, asked: npt.NDArray[Any]) -> Values:
        """The labels before noise, bins and encoding, (n, K); a continuous one is in [0, 1]."""
        if self.array is not None:
            return self.array[check_rows(asked, len(self.array))].astype(np.float64)
        space = self.data.space
        factors = space.check(asked) if asked.ndim == 2 else self.data.factors(asked)
        values = np.empty((len(factors), len(self.columns)))
        for place, column in enumerate(self.columns):
            position = space.position(column.name)
            size = space.sizes[position]
            low, high = size if isinstance(size, tuple) else (0, 1)
            values[:, place] = (factors[:, position] - low) / (high - low)
        return values


def labels_of(
    data: Dataset,
    names: str | Sequence[str] | None = None,
    *,
    array: npt.ArrayLike | None = None,
    encoding: Encoding = "scaled",
    bins: int | None = None,
    noise: float = 0.0,
    labelled: float | int | None = None,
    seed: int = 0,
) -> Labels:
    """The labels u of a data set, as a method that learns from them gets them.

    Parameters
    ----------
    names
        of the factors that u is made of, in this order; None: all of them.
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
        that have any in ``array``.
    seed
        which rows these are, as :func:`unweave.data.labelled_subset` has it; and of the noise.
    """
    if encoding not in get_args(Encoding):
        raise unknown_name("encoding", str(encoding), get_args(Encoding))
    bins, noise, labelled, seed = to_python((bins, noise, labelled, seed))
    check_options(data, bins, noise, labelled, seed)
    chosen, has_any = listed(names), None
    options = {"bins": bins, "noise": float(noise) or None, "labelled": labelled, "seed": seed or None}
    spec: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    own = None if array is None else own_array(array, data, encoding)
    if own is None:
        chosen = factor_names(data, chosen)
        ranges = [data.space.sizes[data.space.position(name)] for name in chosen]
        sizes = [size if isinstance(size, int) else None for size in ranges]
    else:
        chosen = column_names(chosen, own.shape[1])
        discrete = discrete_columns(own, encoding, bins)
        values = check_values(own, discrete)
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
            told = f"{data.name} samples rows in its own way: a labelled part needs uniform sampling"
            if labelled is None:
                raise ArgumentError("labels", "some rows have none", told)
            raise ArgumentError("labelled", labelled, told)
    columns = _columns(data, chosen, sizes, encoding, bins)
    check_width(columns, encoding)
    spec = {"columns": [asdict(column) for column in columns], "encoding": encoding, **spec}
    return Labels(data, columns, tuple(sizes), subset, spec, own)


def labels_from_spec(spec: Mapping[str, Any], data: Dataset, array: npt.ArrayLike | None = None) -> Labels:
    """The labels that a run's spec tells of, on ``data``; those of the user's own array need it again."""
    if "array" in spec and array is None:
        raise ArgumentError(
            "labels",
            None,
            "the method learns from an array, which it needs again: uw.load(path, labels=array)",
        )
    options = {key: spec[key] for key in ("encoding", "bins", "noise", "labelled", "seed") if key in spec}
    names = [column["name"] for column in spec["columns"]]
    try:
        labels = labels_of(data, names, array=array if "array" in spec else None, **options)
    except ArgumentError as error:
        if "array" in spec or error.argument == "data":
            raise
        why = f"does not have the labels that the method was made for: {error}"
        raise ArgumentError("data", data.name, why) from error
    if labels.spec.get("images") != spec.get("images"):
        why = "has other images: the method's array of labels belongs to the rows that it was made for"
        raise ArgumentError("data", data.name, why)
    if labels.spec != dict(spec):
        told = [(column.name, column.size) for column in labels.columns]
        raise ArgumentError("data", data.name, f"has labels {told}, others than the method was made for")
    return labels


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
    data: Dataset, labelled: float | int | None, seed: int, has_any: npt.NDArray[np.bool_] | None
) -> LabelledSubset | None:
    """The rows that have labels, of those that ``has_any`` (n,) tells of; None where that is every row."""
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
                "labelled", labelled, f"is {wanted:,} rows, and the array has labels for {there:,}"
            )
    subset = labelled_subset(
        data,
        None if is_count else labelled,
        count=int(labelled) if is_count else None,
        seed=seed,
        among=has_any,
    )
    return None if len(subset) == len(data) else subset
