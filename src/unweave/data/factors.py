"""The space of ground-truth factors that a data set's images show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from unweave.arrays import ArrayLike, FloatArray, IntArray
from unweave.errors import ArgumentError, unknown_name
from unweave.parameters import Natural, check_value

Rng = np.random.Generator | np.random.RandomState
FactorArray = IntArray | FloatArray
Fixed = Mapping[str, ArrayLike]
Size = int | tuple[float, float]


@dataclass(frozen=True)
class FactorSpace:
    """Named factors of variation, each discrete or continuous, independent and uniform.

    Factors are arrays of shape (n, K): int64 if every factor is discrete, else float64.
    Rows number the full grid of a discrete space in C order: the last factor turns fastest.

    Parameters
    ----------
    names
        one name per factor, all different.
    sizes
        per factor the number of its values (a discrete factor takes 0 .. size - 1), or a pair
        ``(low, high)`` (a continuous factor, uniform in that interval).
    categorical
        names of the discrete factors whose values have no order (a shape, an identity).
        All others are ordered.
    value_names
        for some discrete factors what their values are called, e.g. ``{"shape": ["cube", "ball"]}``.

    Examples
    --------
    >>> space = uw.data.FactorSpace(["shape", "scale", "x"], [3, 6, 32], categorical=["shape"])
    >>> len(space)
    576
    >>> space.rows([[2, 5, 31]])
    array([575])
    >>> space.sample(2, np.random.default_rng(0), fixed={"shape": 1})
    array([[ 1,  5, 16],
           [ 1,  3,  8]])
    """

    names: tuple[str, ...]
    sizes: tuple[Size, ...]
    categorical: frozenset[str] = frozenset()
    value_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)

    def __init__(
        self,
        names: Sequence[str],
        sizes: Sequence[int | Sequence[float]],
        categorical: Sequence[str] | frozenset[str] = (),
        value_names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        checked_names = _check_names(names)
        if len(sizes) != len(checked_names):
            raise ArgumentError("sizes", list(sizes), f"needs one entry for each of {list(checked_names)}")
        checked_sizes = tuple(_check_size(n, s) for n, s in zip(checked_names, sizes, strict=True))
        object.__setattr__(self, "names", checked_names)
        object.__setattr__(self, "sizes", checked_sizes)
        for name in categorical:
            if isinstance(checked_sizes[self.position(name)], tuple):
                raise ArgumentError("categorical", name, "a continuous factor cannot be categorical")
        object.__setattr__(self, "categorical", frozenset(categorical))
        labels = {name: tuple(map(str, values)) for name, values in (value_names or {}).items()}
        for name, values in labels.items():
            if self.size(name) != len(values):
                raise ArgumentError("value_names", values, f"factor {name!r} has {self.size(name)} values")
        object.__setattr__(self, "value_names", labels)

    # --- what the space is -------------------------------------------------------------------

    @property
    def num_factors(self) -> int:
        """K, the number of factors."""
        return len(self.names)

    @property
    def discrete(self) -> bool:
        """Whether every factor is discrete: only then is there a grid with rows."""
        return not any(isinstance(size, tuple) for size in self.sizes)

    def empty(self, n: int) -> FactorArray:
        """An uninitialised factor array (n, K): int64 if every factor is discrete, else float64."""
        shape = (n, self.num_factors)
        return np.empty(shape, np.int64) if self.discrete else np.empty(shape, np.float64)

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """The sizes of a fully discrete space."""
        if not self.discrete:
            raise ArgumentError("space", list(self.continuous), "continuous factors have no grid and no rows")
        return tuple(size for size in self.sizes if isinstance(size, int))

    @property
    def continuous(self) -> tuple[str, ...]:
        """The names of the continuous factors."""
        return tuple(n for n, size in zip(self.names, self.sizes, strict=True) if isinstance(size, tuple))

    def __len__(self) -> int:
        """The number of rows of the full grid."""
        total = 1
        for size in self.grid_shape:
            total *= size
        return total

    def __bool__(self) -> bool:
        return self.num_factors > 0

    def position(self, name: str) -> int:
        """The column of a factor, by name."""
        if name not in self.names:
            raise unknown_name("factor", name, self.names)
        return self.names.index(name)

    def size(self, name: str) -> int:
        """The number of values of a discrete factor, by name."""
        size = self.sizes[self.position(name)]
        if isinstance(size, tuple):
            raise ArgumentError("factor", name, f"is continuous in {size}: it has no number of values")
        return size

    def is_ordered(self, name: str) -> bool:
        """Whether the values of a factor have an order (continuous factors always do)."""
        self.position(name)
        return name not in self.categorical

    # --- rows and factors --------------------------------------------------------------------

    def rows(self, factors: ArrayLike) -> IntArray:
        """Rows (n,) of the full grid for factors (n, K)."""
        checked = self.check(factors)
        columns = tuple(checked.T.astype(np.int64))
        if not columns:
            return np.zeros(len(checked), np.int64)
        return np.asarray(np.ravel_multi_index(columns, self.grid_shape), np.int64)

    def factors(self, rows: ArrayLike) -> IntArray:
        """Factors (n, K) for rows (n,) of the full grid."""
        checked = check_rows(rows, len(self))
        columns = np.unravel_index(checked, self.grid_shape) if self.names else ()
        return np.ascontiguousarray(np.array(columns, np.int64).reshape(self.num_factors, len(checked)).T)

    def check(self, factors: ArrayLike, *, unknown: bool = False) -> FactorArray:
        """The factors as an (n, K) array of the space's dtype, or an error that names what is wrong.

        With ``unknown``, NaN is a value that is not known; an array that has any is float64.
        """
        array = np.asarray(factors)
        if array.ndim != 2 or array.shape[1] != self.num_factors:
            wanted = f"needs shape (n, {self.num_factors}) for factors {list(self.names)}"
            raise ArgumentError("factors", f"array of shape {array.shape}", wanted)
        if array.dtype.kind not in "iuf":
            raise ArgumentError("factors", f"array of dtype {array.dtype}", "needs integers or floats")
        missing = np.isnan(array) if unknown and array.dtype.kind == "f" else np.zeros(array.shape, bool)
        for column, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            _check_column(name, size, array[~missing[:, column], column])
        if self.discrete and not missing.any():
            return array.astype(np.int64, copy=False)
        return array.astype(np.float64, copy=False)

    # --- sampling ----------------------------------------------------------------------------

    def sample(self, n: int, rng: Rng, fixed: Fixed | None = None) -> FactorArray:
        """Draw factors uniformly.

        One draw of n values per free factor, in the order of the factors: with a
        ``numpy.random.RandomState`` this is the random stream of disentanglement_lib.

        Parameters
        ----------
        n
            how many.
        rng
            either kind of numpy random source.
        fixed
            the values of some factors: one, or n, for each name.

        Returns
        -------
        array (n, K)
        """
        given = self.check_fixed(n, fixed)
        out = self.empty(n)
        for column, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            if name in given:
                out[:, column] = given[name]
            elif isinstance(size, tuple):
                out[:, column] = rng.uniform(size[0], size[1], size=n)
            else:
                out[:, column] = integers(rng, size, n)
        return out

    def check_fixed(self, n: int, fixed: Fixed | None) -> dict[str, FloatArray]:
        """The given factor values, each broadcast to (n,) and checked against its factor."""
        check_value("n", n, Natural)
        checked = {}
        for name, values in (fixed or {}).items():
            size = self.sizes[self.position(name)]
            array = np.asarray(values)
            if array.dtype.kind not in "iuf" or (array.ndim and array.shape != (n,)):
                raise ArgumentError(f"fixed[{name!r}]", values, f"needs one number or {n} numbers")
            _check_column(name, size, array)
            checked[name] = np.broadcast_to(array, (n,)).astype(np.float64)
        return checked


def integers(rng: Rng, size: int, n: int) -> IntArray:
    """n uniform integers in [0, size), from either kind of numpy random source."""
    draw = rng.integers if isinstance(rng, np.random.Generator) else rng.randint
    return np.asarray(draw(size, size=n), dtype=np.int64)


def check_rows(rows: ArrayLike, total: int) -> IntArray:
    """Rows as an (n,) int64 array within [0, total), or an error that names the row at fault."""
    array = np.asarray(rows)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ArgumentError(
            "rows", f"{array.dtype} array of shape {array.shape}", "needs integers of shape (n,)"
        )
    array = array.astype(np.int64, copy=False)
    if array.size and (array.min() < 0 or array.max() >= total):
        worst = array.max() if array.max() >= total else array.min()
        raise ArgumentError("rows", int(worst), f"needs 0 <= row < {total}")
    return array


def _check_names(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise ArgumentError("names", names, "needs a list of factor names")
    if len(set(names)) != len(names):
        raise ArgumentError("names", list(names), "factor names must differ")
    return tuple(names)


def _check_size(name: str, size: int | Sequence[float]) -> Size:
    if isinstance(size, int | np.integer) and not isinstance(size, bool):
        if size < 1:
            raise ArgumentError(f"size of {name!r}", size, "needs at least one value")
        return int(size)
    if isinstance(size, Sequence) and len(size) == 2:
        low, high = float(size[0]), float(size[1])
        if np.isfinite(low) and np.isfinite(high) and low < high:
            return (low, high)
    raise ArgumentError(f"size of {name!r}", size, "needs a whole number, or (low, high) with low < high")


def _check_column(name: str, size: Size, column: npt.NDArray[np.generic]) -> None:
    if column.size == 0:
        return
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise ArgumentError(f"factor {name!r}", "NaN or infinity", "needs finite values")
    low, high = (size[0], size[1]) if isinstance(size, tuple) else (0, size - 1)
    if column.min() < low or column.max() > high:
        worst = column.max() if column.max() > high else column.min()
        raise ArgumentError(f"factor {name!r}", worst.item(), f"needs {low} <= value <= {high}")
    if not isinstance(size, tuple) and column.dtype.kind == "f" and (column != np.floor(column)).any():
        raise ArgumentError(
            f"factor {name!r}",
            float(column[column != np.floor(column)].flat[0]),
            "is discrete: needs whole numbers",
        )
