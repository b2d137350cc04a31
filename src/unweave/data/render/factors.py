"""Validation of factor arrays, shared by the rendered worlds."""

import numpy as np

from unweave.arrays import IntArray


def checked_factors(factors: object, sizes: tuple[int, ...]) -> IntArray:
    """Return `factors` as an int64 array of shape (n, len(sizes)), or raise `ValueError`.

    Column k must hold integers in [0, sizes[k]). Floating-point arrays are accepted if every
    entry is a whole number, because factor tables are often stored as floats.
    """
    array = np.asarray(factors)
    wanted = f"an integer array of shape (n, {len(sizes)})"
    if array.ndim != 2 or array.shape[1] != len(sizes):
        raise ValueError(f"factors has shape {array.shape}; expected {wanted}")
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (np.floor(array) == array)
        if not whole.all():
            raise ValueError(f"factors holds {array[~whole][0]}; expected {wanted}, whole numbers only")
    elif array.dtype.kind not in "iu":
        raise ValueError(f"factors has dtype {array.dtype}; expected {wanted}")
    for column, size in enumerate(sizes):
        values = array[:, column]
        outside = (values < 0) | (values >= size)
        if outside.any():
            raise ValueError(
                f"factors[:, {column}] holds {values[outside][0]}; allowed are the integers 0 to {size - 1}"
            )
    return array.astype(np.int64)
