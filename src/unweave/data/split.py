"""Parts of a data set: its own train and test images, or a random part of its rows."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from unweave.arrays import IntArray
from unweave.data.dataset import Dataset, SomeRows
from unweave.data.rows import Table
from unweave.data.supervision.weak import labelled_subset
from unweave.errors import ArgumentError
from unweave.parameters import Fraction, Seed, check_value

LABELLED = "labelled"  # the split of the rows of which all factors are known
Part = Literal["train", "test"]
Split = str | tuple[float, int] | tuple[str, float, int]


def random_part(data: Dataset, fraction: Fraction, seed: Seed = 0, part: Part = "train") -> Dataset:
    """A random part of a data set's rows, or the rest of them.

    The rows are those of :func:`unweave.data.labelled_subset`: the first of a permutation that depends on the seed
    alone, in the order of the data set.

    Parameters
    ----------
    data
        any finite data set.
    fraction
        of the rows that are for training, between 0 and 1.
    seed
        which rows these are.
    part
        "train", or "test" for all other rows.

    Returns
    -------
    Dataset
        with the same factors; its ``split`` says which part it is.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((10, 4), np.float32), {"x": np.arange(10)})
    >>> train, test = (random_part(data, 0.8, seed=0, part=part) for part in ("train", "test"))
    >>> len(train), len(test), train.split
    (8, 2, 'train,0.8,0')
    >>> sorted([*train.factors(range(8)).ravel().tolist(), *test.factors(range(2)).ravel().tolist()])
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    share, number = check_value("split", fraction, Fraction), check_value("seed", seed, Seed)
    check_value("split", part, Part)
    if not 0 < round(share * len(data)) < len(data):
        raise ArgumentError("split", fraction, f"leaves no rows for one of two parts of {len(data):,} rows")
    chosen = labelled_subset(data, share, seed=number).rows
    rows = chosen if part == "train" else np.setdiff1d(np.arange(len(data)), chosen)
    return take_rows(data, rows, split_text((part, share, number)))


def labelled_part(data: Dataset) -> Dataset:
    """The rows of a data set of which all factors are known; the data set itself where that is every row.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((3, 2), np.float32), {"shape": [0, 1, None]})
    >>> labelled_part(data)
    Dataset(arrays, labelled: 2 of 2; shape=2)
    """
    if not data.partly_labelled:
        return data
    rows = data.labelled_rows()
    if len(rows) == 0:
        raise ArgumentError("split", LABELLED, f"no row of {data.name} has all factors")
    return take_rows(data, rows, LABELLED)


def take_rows(data: Dataset, rows: IntArray, split: str) -> Dataset:
    """The data set of some rows, in this order; ``split`` names the part that it is.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.arange(6, dtype=np.float32)[:, None], {"x": [0, 1, 2, 0, 1, 2]})
    >>> part = take_rows(data, np.array([1, 4]), "middle")
    >>> part.images([0, 1]).ravel(), part.factors([0, 1]).ravel()
    (array([1., 4.], dtype=float32), array([1, 1]))
    """
    if data.sampler is not None:
        raise ArgumentError("split", split, f"{data.name} draws its rows in its own way: split it before")
    index = Table(data.space, data.factors(rows))
    array = None if data.array is None else SomeRows(data.array, rows)
    files = None if data.files is None else tuple(data.files[row] for row in rows)
    return data.with_parts(index=index, array=array, split=split, files=files)


def parse_split(value: Any) -> Split:
    """A split as it may be written: "train", (0.8, 0), ("test", 0.8, 0), or one of these as text, "test,0.8,0".

    Examples
    --------
    >>> parse_split("train"), parse_split("0.8,0"), parse_split(["test", 0.8, 0])
    ('train', ('train', 0.8, 0), ('test', 0.8, 0))
    """
    parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if isinstance(parts, list | tuple) and len(parts) == 1 and isinstance(parts[0], str) and parts[0]:
        return parts[0]
    if isinstance(parts, list | tuple) and len(parts) == 2:
        parts = ("train", *parts)
    try:
        part, fraction, seed = parts
        if part in ("train", "test") and float(seed) == int(seed):
            return str(part), float(fraction), int(seed)
    except (TypeError, ValueError):
        pass
    raise ArgumentError("split", value, "needs train, test, or a fraction and a seed as in (0.8, 0)")


def split_text(split: Split) -> str:
    """A split as text, in one way.

    Examples
    --------
    >>> split_text(("train", 0.8, 0)), split_text("test")
    ('train,0.8,0', 'test')
    """
    return split if isinstance(split, str) else ",".join(f"{value}" for value in split)


def part_of_same_split(own: str | None, asked: str | None) -> str | None:
    """The part that is asked for of a data set of which another one is in use.

    Parameters
    ----------
    own
        the part in use, as text; None: all of it.
    asked
        "train" or "test", the same split's; or a split of its own; None: the part in use.

    Examples
    --------
    >>> part_of_same_split("train,0.8,0", "test"), part_of_same_split("train", "test")
    ('test,0.8,0', 'test')
    """
    if asked is None:
        return own
    random = own is not None and "," in own and asked.strip() in ("train", "test")
    return ",".join([asked.strip(), *own.split(",")[1:]]) if random and own is not None else asked
