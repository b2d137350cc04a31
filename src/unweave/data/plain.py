"""NumPy's numbers as Python's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """NumPy scalars, also in mappings, lists and tuples, as Python values; all else as it is.

    Checks can then ask for an int or a float, and specs can be written. A ``numpy.float32`` keeps its value:
    ``plain(np.float32(0.1))`` is 0.10000000149011612.
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {plain(key): plain(entry) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(plain(entry) for entry in value)
    return value
