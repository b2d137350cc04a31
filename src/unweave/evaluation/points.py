"""The points of an evaluation: which rows metrics learn from, and which they are judged on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unweave.arrays import AnyArray, IntArray
from unweave.data import Dataset
from unweave.data.factors import Rng, integers
from unweave.errors import ArgumentError

MOST_SHARED = 0.01  # the share of test points that may be among the training points without a warning


class SharedPointsWarning(UserWarning):
    """Many test points were training points too: what was learned by heart counts."""


class Points(NamedTuple):
    """Rows (n,) of a data set, or factors (n, K) of an endless one.

    Parameters
    ----------
    train, test
        for metrics that learn from some points and are judged on others.
    every
        for metrics that learn nothing: the training points and, where rows are few, further ones.
    learning, judging
        all rows in two parts, the training points in the first and the test points in the second: what metrics that
        intervene draw their votes from. None where rows are not kept apart.
    rows
        how many there are in the data set; None: it is endless.
    labelled
        how many of them could have been drawn, where that is only those whose factors are known; else None.
    shared
        the share of test points whose row is a training point as well.
    """

    train: AnyArray
    test: AnyArray
    every: AnyArray
    rows: int | None
    shared: float = 0.0
    learning: IntArray | None = None
    judging: IntArray | None = None
    labelled: int | None = None

    def counts(self, split: bool) -> dict[str, Any]:
        """What a score's details say of them: ``split`` if the metric was judged on test points."""
        sizes = {"train": len(self.train), "test": len(self.test)} if split else {"every": len(self.every)}
        shared = {"shared": self.shared} if split and self.shared else {}
        labelled = {} if self.labelled is None else {"labelled": self.labelled}
        return {**sizes, "rows": self.rows, **labelled, **shared}


def disjoint_points(
    data: Dataset, num_train: int, num_test: int, rng: Rng, *, labelled: bool = False
) -> Points:
    """Points of which none is both for learning and for judging.

    All rows are put into a random order once. Training points are the first, test points the next of them, no row
    twice. Where there are fewer rows than points asked for, both parts shrink in proportion. A data set that does not
    draw its rows uniformly (:func:`unweave.data.correlate`) keeps its distribution: the rows are split in two, and each
    part is drawn from with replacement.

    Parameters
    ----------
    data
        a finite data set.
    num_train, num_test
        the numbers of points asked for.
    rng
        what is drawn from.
    labelled
        whether only rows whose factors are all known are drawn.

    Returns
    -------
    Points

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((300, 4), np.float32), {"x": np.arange(300) % 3})
    >>> points = disjoint_points(data, 10_000, 5_000, np.random.default_rng(0))
    >>> len(points.train), len(points.test), len(points.every), points.rows
    (200, 100, 300, 300)
    >>> len(np.intersect1d(points.train, points.test)), len(points.learning), len(points.judging)
    (0, 200, 100)
    """
    allowed = _labelled(data) if labelled else None
    rows = len(data) if allowed is None else len(allowed)
    if rows < 2:
        which = "row" if allowed is None else f"labelled row of {len(data):,}"
        raise ArgumentError(
            "data", data.name, f"has one {which}: points to learn from and to judge on need two"
        )
    cut = min(1.0, rows / (num_train + num_test))
    learn = min(max(int(cut * num_train), 1), rows - 1)
    judge = min(max(int(cut * num_test), 1), rows - learn)
    order = rng.permutation(rows).astype(np.int64)
    first_part = max(1, round(rows * num_train / (num_train + num_test)))
    if allowed is not None:
        order = allowed[order]
    if data.sampler is None:
        train, test = order[:learn], order[learn : learn + judge]
        for_judging = order[learn : learn + max(judge, rows - first_part)]
        for_learning = np.setdiff1d(order, for_judging)
        every, some = order[: min(num_train, rows)], None if allowed is None else rows
        return Points(train, test, every, len(data), 0.0, for_learning, np.sort(for_judging), some)
    of_train = np.zeros(rows, dtype=bool)
    of_train[order[:first_part]] = True
    train = _drawn(data, learn, of_train, rng)
    test = _drawn(data, judge, ~of_train, rng)
    every = data.sample_rows(min(num_train, rows), rng)
    return Points(train, test, every, rows, 0.0, np.flatnonzero(of_train), np.flatnonzero(~of_train))


def independent_points(
    data: Dataset, num_train: int, num_test: int, train: Rng, test: Rng, *, labelled: bool = False
) -> Points:
    """Points drawn independently, with replacement from all rows, as disentanglement_lib draws them.

    On a small data set most test points are then training points, and what is learned by heart scores well:
    :attr:`Points.shared` says how many are.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((300, 4), np.float32), {"x": np.arange(300) % 3})
    >>> points = independent_points(data, 1_000, 500, np.random.default_rng(0), np.random.default_rng(1))
    >>> points.shared
    0.97
    """
    if not data.finite:
        drawn = data.sample_factors(num_train, train)
        return Points(drawn, data.sample_factors(num_test, test), drawn, None)
    allowed = _labelled(data) if labelled else None
    if allowed is None:
        learn, judge = data.sample_rows(num_train, train), data.sample_rows(num_test, test)
    else:
        learn = allowed[integers(train, len(allowed), num_train)]
        judge = allowed[integers(test, len(allowed), num_test)]
    some = None if allowed is None else len(allowed)
    return Points(learn, judge, learn, len(data), float(np.isin(judge, learn).mean()), labelled=some)


def _labelled(data: Dataset) -> IntArray | None:
    """The rows whose factors are all known; None where that is every row."""
    if not data.partly_labelled:
        return None
    rows = data.labelled_rows()
    if len(rows) == 0:
        known = ", ".join(f"{name} of {len(data.labelled_rows([name])):,}" for name in data.space.names)
        message = f"no row has all factors: of {len(data):,} rows it has {known}; name those to use"
        raise ArgumentError("data", data.name, message)
    return rows


def _drawn(data: Dataset, n: int, allowed: AnyArray, rng: Rng) -> IntArray:
    """n rows as the data set draws them, of those that are allowed."""
    chosen: list[IntArray] = []
    tries = 0
    while (missing := n - sum(map(len, chosen))) > 0:
        drawn = data.sample_rows(max(4 * missing, 1_000), rng)
        chosen.append(drawn[allowed[drawn]][:missing])
        tries += 1
        if tries > 10_000:
            raise ArgumentError("data", data.name, "draws too few of its rows to split them")
    return np.concatenate(chosen)
