"""Headers of .npy files."""

from __future__ import annotations

import ast
from typing import IO, Any

import numpy as np

_LIMIT = 1 << 16  # bytes of a header


def read_npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is in Fortran's order, and type of the array that begins in ``stream``.

    NumPy's own reader goes on with a header that is no Python literal to see whether Python 2 wrote it, which takes
    minutes for a damaged one. A ValueError says what is wrong.

    Examples
    --------
    >>> np.save("a.npy", np.zeros((2, 3), np.uint8))
    >>> with open("a.npy", "rb") as file:
    ...     read_npy_header(file)
    ((2, 3), False, dtype('uint8'))
    """
    major, _ = np.lib.format.read_magic(stream)
    size = int.from_bytes(stream.read(2 if major == 1 else 4), "little")
    if size > _LIMIT:
        raise ValueError(f"its header has {size:,} bytes")
    text = stream.read(size)
    if len(text) < size:
        raise ValueError("it ends early")
    try:
        header = ast.literal_eval(text.decode("utf-8").strip())
        shape, fortran, dtype = (
            header["shape"],
            header["fortran_order"],
            np.lib.format.descr_to_dtype(header["descr"]),
        )
        if len(header) != 3 or type(fortran) is not bool or not isinstance(shape, tuple):
            raise ValueError("its header is not one of a .npy file")
        if not all(type(n) is int and 0 <= n < 2**62 for n in shape):
            raise ValueError(f"its shape is {shape}")
    except (SyntaxError, LookupError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError("its header is damaged") from error
    return shape, fortran, dtype
