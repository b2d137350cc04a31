"""Samples: the points that a metric is computed from, and their validation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unweave.arrays import AnyArray, ArrayLike, FloatArray, IntArray, as_array
from unweave.errors import ArgumentError

# Squares of codes, and products of these, must stay numbers in double precision.
LARGEST, SMALLEST_RANGE = 1e100, 1e-100
_EXACT = 2**53  # whole numbers up to here are floats of their own


class Sample(NamedTuple):
    """The points that a metric is computed from, checked by :func:`check_sample`.

    Parameters
    ----------
    codes
        (n, D) float64, finite.
    factors
        (n, K) int64 of any size and sign; float64 for metrics that take continuous factors.
    single
        whether the codes were given in single precision.

    Examples
    --------
    >>> sample = uw.metrics.Sample(np.eye(3), np.arange(3)[:, None])
    >>> sample.rows(np.array([0, 2])).factors.ravel()
    array([0, 2])
    """

    codes: FloatArray
    factors: IntArray
    single: bool = False

    def rows(self, rows: IntArray) -> Sample:
        """The sample of some of the points."""
        return self._replace(codes=self.codes[rows], factors=self.factors[rows])

    @property
    def given(self) -> AnyArray:
        """The codes in the precision that they were given in: the edges of bins are rounded to it, as numpy's are."""
        return self.codes.astype(np.float32) if self.single else self.codes


def check_sample(codes: ArrayLike, factors: ArrayLike, name: str = "", continuous: bool = False) -> Sample:
    """Codes and factors as a :class:`Sample`, or an error that names what is wrong.

    Codes (n, D) or (n,): any finite numbers. Factors (n, K) or (n,): whole numbers, strings or booleans. Whole
    numbers are kept as they are, for metrics to which factors are numbers; the distinct strings of a column, or
    whole numbers that int64 cannot hold, are numbered 0, 1, … in sorted order. With ``continuous``, factors with a
    value that is not whole, or that int64 cannot hold, are kept as float64, all columns.

    Examples
    --------
    >>> check_sample([[0.5], [1.5]], ["cube", "ball"]).factors.ravel()
    array([1, 0])
    """
    prefix = f"{name} " if name else ""
    given = as_array(codes, f"{prefix}codes")
    codes_array = check_codes(given[:, None] if given.ndim == 1 else given, f"{prefix}codes")
    factors_array = as_array(factors, f"{prefix}factors")
    if factors_array.ndim == 1:
        factors_array = factors_array[:, None]
    if factors_array.ndim != 2 or factors_array.shape[1] == 0:
        raise ArgumentError(f"{prefix}factors", f"array of shape {factors_array.shape}", "needs shape (n, K)")
    if len(factors_array) != len(codes_array):
        raise ArgumentError(
            f"{prefix}factors", f"{len(factors_array)} rows", f"there are {len(codes_array)} codes"
        )
    checked = _checked_factors(factors_array, f"{prefix}factors", continuous)
    return Sample(codes_array, checked, given.dtype == np.float32)


def check_samples(
    train: tuple[ArrayLike, ArrayLike],
    test: tuple[ArrayLike, ArrayLike],
    continuous: bool = False,
) -> tuple[Sample, Sample]:
    """Two samples of the same codes and factors; a value of a factor has one number in both."""
    first, second = check_sample(*train, "", continuous), check_sample(*test, "test", continuous)
    shapes = [(part.codes.shape[1], part.factors.shape[1]) for part in (first, second)]
    if shapes[0] != shapes[1]:
        given = f"{shapes[1][0]} codes and {shapes[1][1]} factors"
        raise ArgumentError(
            "test", given, f"the other points have {shapes[0][0]} codes and {shapes[0][1]} factors"
        )
    values = [
        as_array(factors, "factors").reshape(shape)
        for (_, factors), shape in zip(
            (train, test), (first.factors.shape, second.factors.shape), strict=True
        )
    ]
    joint = _checked_factors(np.concatenate(values), "factors", continuous)
    n = len(first.codes)
    return first._replace(factors=joint[:n]), second._replace(factors=joint[n:])


def split_sample(sample: Sample, seed: int) -> tuple[Sample, Sample]:
    """Two thirds of the rows to learn from and one third to judge on, drawn by the seed."""
    n = len(sample.codes)
    if n < 3:
        raise ArgumentError("codes", f"{n} rows", "needs at least 3 to split them; or give test points")
    order = np.random.default_rng(seed).permutation(n)
    return sample.rows(order[: -(n // 3)]), sample.rows(order[-(n // 3) :])


def check_codes(codes: ArrayLike, name: str) -> FloatArray:
    """Codes (n, D) in double precision: finite, of a size whose squares can be computed with; or an error.

    Numbers are at most 1e100 in size, and a latent that varies does so by at least 1e-100.
    """
    given = as_array(codes, name)
    if given.ndim != 2 or given.dtype.kind not in "fiu" or given.shape[1] == 0:
        raise ArgumentError(
            name, f"{given.dtype} array of shape {given.shape}", "needs numbers of shape (n, D)"
        )
    if len(given) == 0:
        raise ArgumentError(name, "no rows", "needs at least one point")
    array = np.ascontiguousarray(given, dtype=np.float64)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ArgumentError(f"{name}[{row}, {column}]", float(array[row, column]), "needs finite numbers")
    if np.abs(array).max() > LARGEST:
        row, column = np.argwhere(np.abs(array) > LARGEST)[0].tolist()
        allowed = "needs numbers of at most 1e100 in size: scale the codes"
        raise ArgumentError(f"{name}[{row}, {column}]", float(array[row, column]), allowed)
    ranges = np.ptp(array, axis=0)
    if ((ranges > 0) & (ranges < SMALLEST_RANGE)).any():
        column = int(np.argmax((ranges > 0) & (ranges < SMALLEST_RANGE)))
        allowed = "a latent that varies needs a range of at least 1e-100: scale the codes"
        raise ArgumentError(f"{name}[:, {column}]", f"range {ranges[column]:.3g}", allowed)
    return array


def _checked_factors(factors: AnyArray, name: str, continuous: bool) -> AnyArray:
    if factors.dtype.kind in "OT" and all(isinstance(value, str) for value in factors.flat):
        factors = factors.astype(str)  # a column of a table
    if factors.dtype.kind == "f":
        _check_finite(factors, name)
        whole = factors == np.floor(factors)
        if continuous and not (whole.all() and _fits_integers(factors)):
            return check_codes(factors, name)
        if not whole.all():
            row, column = np.argwhere(~whole)[0].tolist()
            raise ArgumentError(
                f"{name}[{row}, {column}]",
                float(factors[row, column]),
                "needs whole numbers: bin a continuous factor first",
            )
    elif factors.dtype.kind not in "iubUS":
        raise ArgumentError(
            name, f"array of dtype {factors.dtype}", "needs whole numbers, strings or booleans"
        )
    if factors.dtype.kind in "ib" or (factors.dtype.kind in "uf" and _fits_integers(factors)):
        return _near_zero(np.ascontiguousarray(factors, dtype=np.int64), name)
    columns = [np.unique(column, return_inverse=True)[1] for column in factors.T]
    return np.stack(columns, axis=1).astype(np.int64)


def _near_zero(factors: AnyArray, name: str) -> AnyArray:
    """Whole numbers (n, K), those of a column shifted where a float could not tell them from their neighbours."""
    lowest, highest = factors.min(axis=0).tolist(), factors.max(axis=0).tolist()
    for column, (low, high) in enumerate(zip(lowest, highest, strict=True)):
        if max(-low, high) > _EXACT:
            if high - low > _EXACT:
                shown = f"from {low} to {high}"
                raise ArgumentError(
                    f"{name}[:, {column}]", shown, "needs values at most 2^53 apart: number them"
                )
            factors = factors.copy()
            factors[:, column] -= low
    return factors


def _check_finite(factors: AnyArray, name: str) -> None:
    if not np.isfinite(factors).all():
        row, column = np.argwhere(~np.isfinite(factors))[0].tolist()
        raise ArgumentError(f"{name}[{row}, {column}]", float(factors[row, column]), "needs finite values")


def _fits_integers(factors: AnyArray) -> bool:
    return bool(factors.max() < 2**63 and factors.min() >= -(2**63))
