"""Codes with mean 0 and variance 1."""

from __future__ import annotations

import numpy as np

from unweave.arrays import FloatArray


def standardise(codes: FloatArray) -> FloatArray:
    """Scale each column to mean 0 and variance 1 (with the divisor n); a constant column becomes 0.

    Parameters
    ----------
    codes
        (n, D).

    Returns
    -------
    array
        (n, D).

    Examples
    --------
    >>> standardise(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    varies = np.ptp(codes, axis=0) > 0
    deviation = np.where(varies, codes.std(axis=0), 1.0)
    return np.where(varies, (codes - codes.mean(axis=0)) / deviation, 0.0)
