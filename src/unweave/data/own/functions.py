"""A user's simulator is a data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unweave.arrays import AnyArray, as_array
from unweave.data.dataset import Dataset
from unweave.data.factors import FactorArray, FactorSpace, Rng
from unweave.data.own.arrays import observation_dtype, refuse_channels_first
from unweave.data.rows import Grid
from unweave.errors import ArgumentError

_PROBED = 3  # rows: with one, a result that lacks the axis of rows could pass


def from_function(
    names: Sequence[str],
    sizes: Sequence[int | Sequence[float]],
    fn: Callable[..., Any],
    *,
    categorical: Sequence[str] = (),
    vectorized: bool = True,
    stochastic: bool = False,
    name: str = "function",
) -> Dataset:
    """A data set whose observations are computed from their factors by ``fn`` when they are asked for.

    ``fn`` is called once here, to learn the shape of its observations.

    Parameters
    ----------
    names, sizes, categorical
        the factors, as :class:`~unweave.data.factors.FactorSpace` takes them. With a continuous
        factor, of size ``(low, high)``, the data set is endless; else its rows are the full grid.
    fn
        factors (n, K) -> observations (n, …) of one shape. Bytes (n, H, W, C) or (n, H, W) are images;
        all other numbers become float32. Unless ``stochastic``, it gives equal results for equal factors.
    vectorized
        False: ``fn`` takes the factors (K,) of one observation and returns that observation.
    stochastic
        True: ``fn`` takes a second argument, a numpy random generator, its only source of randomness.
    name
        of the data set.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> uw.data.from_function(
    ...     ["frequency", "phase"], [(1, 5), (0, 6.28)],
    ...     lambda factors: np.sin(factors[:, :1] * np.linspace(0, 6.28, 50) + factors[:, 1:]),
    ... )
    Dataset(function: endless of 50; frequency=(1.0, 5.0), phase=(0.0, 6.28))
    """
    space = FactorSpace(names, sizes, categorical)
    if not space:
        raise ArgumentError("names", list(names), "needs at least one factor")
    if not callable(fn):
        raise ArgumentError("fn", fn, "needs a function of factors")
    rng = np.random.default_rng(0)
    call = _Call(fn, vectorized, stochastic)
    probe = call(space.sample(_PROBED, rng), rng)
    shape, dtype = probe.shape[1:], probe.dtype

    def observe(factors: FactorArray, rng: Rng | None) -> AnyArray:
        if len(factors) == 0:
            return np.empty((0, *shape), dtype)
        out = call(factors, rng)
        if out.shape[1:] != shape or out.dtype != dtype:
            before = f"it was {dtype} of shape (n, {', '.join(map(str, shape))}) at first"
            raise ArgumentError("fn", f"returned {out.dtype} of shape {out.shape}", before)
        return out

    index = Grid(space) if space.discrete else None
    return Dataset(name, space, shape, index, function=observe, stochastic_function=stochastic)


class _Call:
    """Calls the user's function on factors (n, K) and checks what it returns."""

    def __init__(self, fn: Callable[..., Any], vectorized: bool, stochastic: bool) -> None:
        self.fn = fn
        self.vectorized = vectorized
        self.stochastic = stochastic

    def __call__(self, factors: FactorArray, rng: Rng | None) -> AnyArray:
        given = factors.copy()  # the function may write into its argument
        more = (rng,) if self.stochastic else ()
        out = _as_array(self.fn(given, *more)) if self.vectorized else self._one_by_one(given, more)
        if out.ndim == 0 or len(out) != len(factors):
            wanted = f"needs {len(factors)} observations for {len(factors)} rows of factors"
            raise ArgumentError("fn", f"returned an array of shape {out.shape}", wanted)
        dtype = observation_dtype(out, "what fn returned")
        if dtype == np.uint8:
            refuse_channels_first(out.shape, "what fn returned")
            out = out[..., None] if out.ndim == 3 else out
        with np.errstate(over="ignore"):
            out = np.array(out, dtype=dtype, order="C")  # a copy: the function may reuse its array
        if dtype == np.float32 and not np.isfinite(out).all():
            row = int(np.argmin(np.isfinite(out).reshape(len(out), -1).all(axis=1)))
            shown = f"returned NaN or infinity for factors {factors[row].tolist()}"
            raise ArgumentError("fn", shown, "needs finite numbers")
        return out

    def _one_by_one(self, factors: FactorArray, more: tuple[Any, ...]) -> AnyArray:
        outs = [_as_array(self.fn(row, *more)) for row in factors]
        for row, out in enumerate(outs):
            is_bytes, was_bytes = out.dtype == np.uint8, outs[0].dtype == np.uint8
            if out.shape != outs[0].shape or is_bytes != was_bytes:
                shown = f"returned {out.dtype} of shape {out.shape} for factors {factors[row].tolist()}"
                raise ArgumentError("fn", shown, f"it was {outs[0].dtype} of shape {outs[0].shape} before")
        return np.stack(outs)


def _as_array(value: object) -> AnyArray:
    if value is None:
        raise ArgumentError("fn", "returned None", "needs an array of observations")
    return as_array(value, "what fn returned")
