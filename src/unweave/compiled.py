"""Functions compiled by numba, which is imported when the first of them is called."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """A function as machine code: compiled at its first call, kept on disk, free of Python's lock.

    Arithmetic follows IEEE 754 as written (no reassociation), so that sums are the same on every machine. Compiled
    functions may call each other, in any order of definition.

    Two limits of numba's files: a change is noticed in the file of a function but not in the functions that it calls,
    so a kernel and what it calls belong in one file; and a function that calls itself must do so with the types of
    arguments that others call it with (numba issue 6061).

    Parameters
    ----------
    function
        a function on numbers, arrays and (named) tuples of them.

    Returns
    -------
    callable
        with the same signature and docstring. ``__wrapped__`` is the Python function.

    Examples
    --------
    >>> @compiled
    ... def square(x: float) -> float:
    ...     return x * x
    >>> square.__wrapped__(3.0)
    9.0
    """
    return cast(Function, _Compiled(function))


class _Compiled:
    """Stands for numba's dispatcher of a function, which it creates when it is needed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._dispatcher(*arguments)

    @cached_property
    def _dispatcher(self) -> Any:
        import numba

        dispatcher: Any = numba.njit(nogil=True, fastmath=False)(self._function)
        with suppress(RuntimeError):  # no folder in which it could be kept: it is compiled in each process
            dispatcher.enable_caching()
            _tolerate_bad_files(dispatcher._cache)
        return dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What numba asks of a global that it does not know: how it types calls from other compiled functions."""
        return self._dispatcher._numba_type_


def _tolerate_bad_files(cache: Any) -> None:
    """Let numba compile anew where its files are damaged, and go on where a full disk takes none."""
    load, save = cache.load_overload, cache.save_overload

    def load_overload(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # numba unpickles what it wrote: of a damaged file anything can come
            with suppress(OSError):
                cache.flush()  # else saving would read the same file again
            return None

    def save_overload(*arguments: Any) -> None:
        with suppress(OSError):
            save(*arguments)

    cache.load_overload, cache.save_overload = load_overload, save_overload
