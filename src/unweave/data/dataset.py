"""A data set: a function from factors to images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from unweave.arrays import AnyArray, ArrayLike, IntArray
from unweave.data.factors import FactorArray, FactorSpace, Fixed, Rng, check_rows
from unweave.data.rows import Grid, RowIndex, Table
from unweave.errors import ArgumentError

if TYPE_CHECKING:
    from unweave.data.batches import Batch

Observe = Callable[[FactorArray, Rng | None], AnyArray]
Noise = Callable[[AnyArray, Rng], AnyArray]
Sampler = Callable[[int, Rng], IntArray]


class RowArray(Protocol):
    """Observations by row: a numpy array, or something that gives them as one would."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def take(self, indices: IntArray, axis: int) -> AnyArray: ...


class SomeRows:
    """Some rows (n,) of an array, in this order, read when they are asked for.

    Examples
    --------
    >>> SomeRows(np.arange(8).reshape(4, 2), np.array([3, 1])).take(np.array([0]), axis=0)
    array([[6, 7]])
    """

    def __init__(self, array: RowArray, rows: IntArray) -> None:
        self.array, self.rows = array, rows
        self.shape = (len(rows), *array.shape[1:])

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, indices: IntArray, axis: int) -> AnyArray:
        return self.array.take(self.rows[indices], axis=axis)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images (or other observations) and the factors that they show.

    Created by :func:`unweave.data.load` and the ``from_…`` functions.

    Parameters
    ----------
    name
        what it is called.
    space
        the factors of variation.
    image_shape
        (H, W, C) for images; any shape for other observations.
    index
        from rows to factors and back. None for an endless simulator: a space with continuous factors.
    array
        the observations by row, (N, …), usually memory-mapped; or else
    function
        (factors (n, K), rng) -> observations (n, …).
    noise
        (images, rng) -> images: drawn at every access.
    stochastic_function
        whether ``function`` draws from its ``rng``.
    sampler
        how rows are drawn, where not uniformly (correlated factors).
    split
        which part of a larger data set it is: "train", "test"; "" for the whole.
    folder
        the user's own folder that its images are in, as it was given; "" if they are not from one.
    files
        of each row (N,) the path of its image relative to that folder; None if they are not from one.
    labels_file
        the table that the factors were read from, where it was named by the user; "" if none was.
    skip_bad
        whether images of the folder that cannot be read were left out.

    Factors may be known of some rows only: NaN stands for those that are not, and :meth:`labelled_rows` are the others.

    Examples
    --------
    >>> images = np.zeros((6, 8, 8, 1), np.uint8)
    >>> data = uw.data.from_arrays(images, {"shape": [0, 0, 0, 1, 1, 1], "scale": [0, 1, 2, 0, 1, 2]})
    >>> data
    Dataset(arrays: 6 of 8x8x1; shape=2, scale=3)
    >>> data.factors([1, 5])
    array([[0, 1],
           [1, 2]])
    >>> data.images([[1, 2]]).shape
    (1, 8, 8, 1)
    """

    name: str
    space: FactorSpace
    image_shape: tuple[int, ...]
    index: RowIndex | None
    array: RowArray | None = None
    function: Observe | None = None
    noise: Noise | None = None
    stochastic_function: bool = False
    sampler: Sampler | None = None
    split: str = ""
    folder: str = ""
    files: tuple[str, ...] | None = None
    labels_file: str = ""
    skip_bad: bool = False

    # --- what it is --------------------------------------------------------------------------

    @property
    def stochastic(self) -> bool:
        """Whether each access to a row draws another image (from the given ``rng``)."""
        return self.noise is not None or self.stochastic_function

    @property
    def finite(self) -> bool:
        """Whether there are rows to count. A simulator with continuous factors has none."""
        return self.index is not None

    @property
    def is_images(self) -> bool:
        """Whether observations are pictures (H, W, C), not vectors or other arrays."""
        return len(self.image_shape) == 3 and self.image_shape[2] in (1, 3)

    def __len__(self) -> int:
        return len(self._rows())

    def __repr__(self) -> str:
        size = f"{len(self):,}" if self.finite else "endless"
        shape = "x".join(map(str, self.image_shape))
        factors = ", ".join(f"{n}={s}" for n, s in zip(self.space.names, self.space.sizes, strict=True))
        name = f"{self.name}, {self.split}" if self.split else self.name
        some = f", {len(self.labelled_rows()):,} labelled" if self.partly_labelled else ""
        return f"Dataset({name}: {size} of {shape}{some}; {factors or 'no factors'})"

    # --- observations ------------------------------------------------------------------------

    def images(self, which: ArrayLike, rng: Rng | None = None) -> AnyArray:
        """The images of rows or of factors.

        Parameters
        ----------
        which
            rows (n,) or factors (n, K).
        rng
            the only source of randomness: needed when the data set is stochastic, or when factors are given and
            several images show them.

        Returns
        -------
        uint8 (n, H, W, C)
            Observations that are not images have their own shape and dtype.
        """
        if self.stochastic and rng is None:
            raise ArgumentError(
                "rng", None, f"{self.name} draws noise at every access: pass numpy.random.default_rng(seed)"
            )
        asked = np.asarray(which)
        clean = self._observe_factors(asked, rng) if asked.ndim == 2 else self._observe_rows(asked, rng)
        return clean if self.noise is None or rng is None else self.noise(clean, rng)

    def factors(self, rows: ArrayLike) -> FactorArray:
        """The factors (n, K) of rows (n,); of a data set with unknown ones, float64 with NaN where one is not known."""
        return self._rows().factors(rows)

    @property
    def partly_labelled(self) -> bool:
        """Whether some factors of some rows are not known."""
        return isinstance(self.index, Table) and self.index.unknown is not None

    def labelled_rows(self, names: Sequence[str] | None = None) -> IntArray:
        """The rows (n,) whose factors, or those of these names, are all known.

        Examples
        --------
        >>> data = uw.data.from_arrays(np.zeros((3, 2), np.float32), {"shape": [0, 1, None], "size": [5, None, 7]})
        >>> data.labelled_rows(), data.labelled_rows(["size"])
        (array([0]), array([0, 2]))
        """
        chosen = None if names is None else tuple(names)
        for name in chosen or ():
            self.space.position(name)
        return self.index.labelled(chosen) if isinstance(self.index, Table) else np.arange(len(self))

    def rows(self, factors: ArrayLike, rng: Rng | None = None) -> IntArray:
        """A row for each of the factors (n, K); ``rng`` chooses where several rows fit."""
        return self._rows().rows(factors, rng)

    def check_labelled(self, what: str) -> None:
        """Refuse a data set with unknown factors; ``what`` needs all of them."""
        if self.partly_labelled:
            known = f"{len(self.labelled_rows()):,} of {len(self):,} rows have all factors"
            allowed = f'{what} need all: {known}, and split="labelled" loads these alone'
            raise ArgumentError("data", self.name, allowed)

    # --- sampling ----------------------------------------------------------------------------

    def sample_rows(self, n: int, rng: Rng, fixed: Fixed | None = None) -> IntArray:
        """n rows drawn independently with replacement; ``fixed`` gives the values of some factors."""
        if self.sampler is None:
            return self._rows().sample(n, rng, fixed)
        if fixed:
            raise ArgumentError(
                "fixed", fixed, f"{self.name} does not draw its rows uniformly: no factor can be fixed"
            )
        return self.sampler(n, rng)

    def sample_factors(self, n: int, rng: Rng, fixed: Fixed | None = None) -> FactorArray:
        """n draws of all factors (n, K), as they are distributed in this data set."""
        if self.sampler is None and not isinstance(self.index, Table):
            return self.space.sample(n, rng, fixed)
        return self.factors(self.sample_rows(n, rng, fixed))

    # --- training ----------------------------------------------------------------------------

    def batch(self, step: int, batch_size: int = 64, seed: int = 0, shard: tuple[int, int] = (0, 1)) -> Batch:
        """The training batch number ``step``: a function of (seed, step) alone, so that a resumed
        run sees the same images. See :class:`unweave.data.batches.ImageBatches`."""
        from unweave.data.batches import ImageBatches

        return ImageBatches(self).draw(step, batch_size, seed, shard)

    def batches(
        self, batch_size: int = 64, seed: int = 0, start: int = 0, steps: int | None = None
    ) -> Iterator[Batch]:
        """Training batches ``start``, ``start`` + 1, …: endless, or ``steps`` of them."""
        step = start
        while steps is None or step < start + steps:
            yield self.batch(step, batch_size, seed)
            step += 1

    def with_parts(self, **parts: Any) -> Dataset:
        """A copy with some parts replaced."""
        return replace(self, **parts)

    # --- inside ------------------------------------------------------------------------------

    def _rows(self) -> RowIndex:
        if self.index is None:
            raise ArgumentError("data", self.name, "has continuous factors: it is endless and has no rows")
        return self.index

    def _observe_rows(self, rows: AnyArray, rng: Rng | None) -> AnyArray:
        if self.array is None:
            return self._observe_factors(self.factors(rows), rng)
        return np.asarray(self.array.take(check_rows(rows, len(self)), axis=0))

    def _observe_factors(self, factors: AnyArray, rng: Rng | None) -> AnyArray:
        if self.function is not None:
            return self.function(self.space.check(factors), rng)
        assert self.array is not None
        return np.asarray(self.array.take(self.rows(factors, rng), axis=0))


def from_grid(name: str, space: FactorSpace, array: RowArray) -> Dataset:
    """A data set that has every combination of the factors once, its rows in C order.

    Examples
    --------
    >>> space = uw.data.FactorSpace(["x", "y"], [2, 3])
    >>> from_grid("toy", space, np.zeros((6, 4, 4, 1), np.uint8))
    Dataset(toy: 6 of 4x4x1; x=2, y=3)
    """
    if len(array) != len(space):
        raise ArgumentError("array", f"{len(array)} images", f"the grid {space.sizes} has {len(space)} rows")
    return Dataset(name, space, tuple(array.shape[1:]), Grid(space), array=array)


def from_table(name: str, space: FactorSpace, array: RowArray, factors: ArrayLike) -> Dataset:
    """A data set whose rows have the given factors (N, K): any subset of the grid, in any order.

    Examples
    --------
    >>> space = uw.data.FactorSpace(["x", "y"], [2, 3])
    >>> from_table("toy", space, np.zeros((2, 4, 4, 1), np.uint8), [[0, 2], [1, 1]])
    Dataset(toy: 2 of 4x4x1; x=2, y=3)
    """
    index = Table(space, factors)
    if len(array) != len(index):
        raise ArgumentError("factors", f"{len(index)} rows", f"there are {len(array)} images")
    return Dataset(name, space, tuple(array.shape[1:]), index, array=array)
