"""Pictures of data sets: what they hold, at a glance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from unweave.arrays import AnyArray, IntArray
from unweave.data.dataset import Dataset
from unweave.data.factors import FactorArray, Size
from unweave.data.rows import Grid
from unweave.errors import ArgumentError
from unweave.figures.grids import Row, image_grid
from unweave.figures.tiles import draw_tiles
from unweave.parameters import Count, Seed, check_arguments

_RANDOM_ROWS = 2
_RANDOM_ROWS_UNLABELLED = 6


def contact_sheet(data: Dataset, seed: Seed = 0, columns: Count = 10) -> Image.Image:
    """Random images, then one row per factor: its traversal, all else held.

    A discrete factor takes up to ``columns`` of its values, evenly spaced; a continuous one as many points of its
    interval. In a data set that lacks combinations (a table), each traversal shows the images that come nearest to
    this. What a stochastic data set draws is held along a traversal, too.

    Parameters
    ----------
    data
        of images, or of vectors, which are drawn as lines.
    seed
        of the choice of images. The picture depends on the data set, ``seed`` and ``columns`` only.
    columns
        the number of tiles in a row.

    Returns
    -------
    PIL.Image.Image
        the picture, with a title and labels.

    Examples
    --------
    >>> images = np.arange(6, dtype=np.uint8)[:, None, None, None].repeat(8, 1).repeat(8, 2)
    >>> data = uw.data.from_arrays(images, {"grey": np.arange(6)}, name="greys")
    >>> uw.figures.contact_sheet(data, columns=3).height  # two rows of random images, one of the factor
    412
    """
    check_arguments(contact_sheet, {"seed": seed, "columns": columns})
    rng = np.random.default_rng(seed)
    num_random = columns * (_RANDOM_ROWS if data.space else _RANDOM_ROWS_UNLABELLED)
    groups = [_random_observations(data, num_random, rng)]
    traversals = _traversals(data, columns, rng) if data.space else []
    for which, _ in traversals:
        groups.append(_observe_held(data, which, seed))
    tiles = draw_tiles(data, groups)  # together, so that all line plots have the same axes

    random = [tiles[0][start : start + columns] for start in range(0, len(tiles[0]), columns)]
    rows = [Row("random" if i == 0 else "", "", row) for i, row in enumerate(random)]
    for (_, captions), row_tiles, name, size in zip(
        traversals, tiles[1:], data.space.names, data.space.sizes, strict=True
    ):
        first = len(rows) == len(random)
        rows.append(Row(name, _size_text(size), row_tiles, captions, gap_above=first))
    return image_grid(f"{data.name}: {_contents(data)}", rows)


def gallery(datasets: Sequence[Dataset], seed: Seed = 0, columns: Count = 12) -> Image.Image:
    """One labelled row of random images per data set.

    Parameters
    ----------
    datasets
        at least one.
    seed
        of the choice of images.
    columns
        the number of images of each.

    Returns
    -------
    PIL.Image.Image
        the picture.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), name="black")
    >>> uw.figures.gallery([data, data], columns=3).height
    236
    """
    check_arguments(gallery, {"seed": seed, "columns": columns})
    if not datasets:
        raise ArgumentError("datasets", datasets, "needs at least one data set")
    rows = []
    for data in datasets:
        images = _random_observations(data, columns, np.random.default_rng(seed))
        rows.append(Row(data.name, _contents(data), draw_tiles(data, [images])[0]))
    return image_grid(None, rows)


# --- what is shown -------------------------------------------------------------------------------


def _random_observations(data: Dataset, n: int, rng: np.random.Generator) -> AnyArray:
    """``n`` random observations, none twice where there are enough."""
    if data.index is None:
        return data.images(data.sample_factors(n, rng), rng)
    if len(data) == 0:
        raise ArgumentError("data", data.name, "has no images to show")
    if data.sampler is None and len(data) >= n:
        return data.images(rng.choice(len(data), n, replace=False), rng)
    return data.images(data.sample_rows(n, rng), rng)


def _traversals(data: Dataset, columns: int, rng: np.random.Generator) -> list[tuple[AnyArray, list[str]]]:
    """Per factor the rows (n,) or factors (n, K) to show, and the value of the factor in each."""
    names = data.space.names
    if data.index is None or isinstance(data.index, Grid):
        base = data.sample_factors(1, rng)
        picked = [_along(base, k, size, columns) for k, size in enumerate(data.space.sizes)]
        return [(f, [_value_text(data, names[k], v) for v in f[:, k]]) for k, f in enumerate(picked)]
    table = data.factors(np.arange(len(data)))
    known = data.labelled_rows() if data.partly_labelled else np.arange(len(data))
    nearest = _Nearest(data, table, int(known[rng.integers(len(known))]) if len(known) else 0)
    rows = [nearest.along(k, columns) for k in range(len(names))]
    return [(r, [_value_text(data, names[k], v) for v in table[r, k]]) for k, r in enumerate(rows)]


def _along(base: FactorArray, k: int, size: Size, columns: int) -> FactorArray:
    """The factors ``base`` (1, K) with factor k at evenly spaced values."""
    if isinstance(size, tuple):
        values = np.linspace(size[0], size[1], columns)
    else:
        values = np.linspace(0, size - 1, min(size, columns)).round()
    factors: FactorArray = base.repeat(len(values), axis=0)
    factors[:, k] = values
    return factors


class _Nearest:
    """Traversals in a table: rows that vary in one factor and are near the row ``base`` in the others.

    Distance is the sum over factors of 1 for another category, |difference| / range for ordered ones.
    """

    def __init__(self, data: Dataset, table: FactorArray, base: int) -> None:
        self.space, self.table = data.space, table
        self.distances = np.empty(table.shape, np.float32)
        for k, (name, size) in enumerate(zip(self.space.names, self.space.sizes, strict=True)):
            apart = np.abs(table[:, k] - table[base, k]).astype(np.float32)
            span = size[1] - size[0] if isinstance(size, tuple) else max(size - 1, 1)
            distance = (
                apart / span if self.space.is_ordered(name) else np.where(np.isnan(apart), 1, apart > 0)
            )
            self.distances[:, k] = np.nan_to_num(distance, nan=1.0)  # what is not known is another value
        self.total = self.distances.sum(axis=1)

    def along(self, k: int, columns: int) -> IntArray:
        others = self.total - self.distances[:, k]
        return np.array([group[np.argmin(others[group])] for group in self._groups(k, columns)], np.int64)

    def _groups(self, k: int, columns: int) -> list[IntArray]:
        """Rows grouped by the value of factor k: equal values, or else equal quantiles."""
        column = self.table[:, k]
        if isinstance(self.space.sizes[k], tuple):
            order = np.argsort(column, kind="stable")[: len(column) - int(np.isnan(column).sum())]
            return [group for group in np.array_split(order, columns) if len(group)]
        values = np.unique(column[~np.isnan(column)])
        chosen = values[np.linspace(0, len(values) - 1, min(len(values), columns)).round().astype(int)]
        return [np.flatnonzero(column == value) for value in chosen]


def _observe_held(data: Dataset, which: AnyArray, seed: int) -> AnyArray:
    """Observations of given rows or factors, with the same noise in all."""
    # One at a time, each with the same random source: what is drawn is then the same in all of them.
    return np.concatenate(
        [data.images(which[i : i + 1], np.random.default_rng(seed)) for i in range(len(which))]
    )


# --- texts ---------------------------------------------------------------------------------------


def _contents(data: Dataset) -> str:
    count = f"{len(data):,}" if data.finite else "endless"
    shape = " × ".join(map(str, data.image_shape))
    return f"{count} images, {shape}" if data.is_images else f"{count} observations of {shape} numbers"


def _size_text(size: Size) -> str:
    return f"{size[0]:.4g} … {size[1]:.4g}" if isinstance(size, tuple) else f"{size:,} values"


def _value_text(data: Dataset, name: str, value: float) -> str:
    if isinstance(data.space.sizes[data.space.position(name)], tuple):
        return f"{value:.3g}"
    names = data.space.value_names.get(name)
    return names[int(value)] if names else str(int(value))
