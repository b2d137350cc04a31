"""How this room uses the linear algebra library."""

from __future__ import annotations

from contextlib import AbstractContextManager

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]


def one_thread() -> AbstractContextManager[object]:
    """A context in which matrix products take one thread, in this process.

    The matrices here are narrow: several threads wait for each other more than they compute, many times longer if
    other programs use the processors, and their number would decide the last bits of a score.
    """
    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limits
