"""Keep freed memory in the process, so that a training step need not ask the system for it again."""

from __future__ import annotations

import ctypes
import os
import platform

# Options of glibc's mallopt, from its malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
KEPT = 1 << 30
GROWTH = 64 << 20
# Older versions of glibc refuse a larger threshold.
LARGEST_OLD_THRESHOLD = 32 << 20


def keep_freed_memory() -> bool:
    """Let glibc serve activations from its heap and keep up to 1 GiB that is freed; returns whether it does.

    By default glibc maps large blocks afresh for every tensor, and the system zeroes their pages each time: a
    large share of a small network's step. Other C libraries and systems are left as they are, and so is a
    process whose environment has ``UNWEAVE_KEEP_MEMORY=0``.

    Examples
    --------
    >>> keep_freed_memory() in (True, False)
    True
    """
    if os.environ.get("UNWEAVE_KEEP_MEMORY", "1") == "0" or platform.libc_ver()[0] != "glibc":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    heap_serves = mallopt(M_MMAP_THRESHOLD, KEPT) or mallopt(M_MMAP_THRESHOLD, LARGEST_OLD_THRESHOLD)
    return bool(heap_serves and mallopt(M_TRIM_THRESHOLD, KEPT) and mallopt(M_TOP_PAD, GROWTH))
