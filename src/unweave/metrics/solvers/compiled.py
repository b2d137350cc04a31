"""The one way in which this room compiles a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """``function`` as machine code: kept on disk after its first call, and free of Python's lock.

    Arithmetic follows IEEE 754 as written (no reassociation), so that sums come out the same everywhere.
    """
    return cast(Function, numba.njit(cache=True, nogil=True, fastmath=False)(function))
