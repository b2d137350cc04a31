"""Codes with mean 0 and variance 1."""

from __future__ import annotations

import numpy as np

from unweave.arrays import FloatArray
from unweave.metrics.sample import Sample


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
    return _scaled(codes, codes)


def standardise_samples(train: Sample, test: Sample) -> tuple[Sample, Sample]:
    """Both samples with the mean and the standard deviation of ``train`` removed from each code.

    A code that is constant in ``train`` becomes 0 in both.

    Examples
    --------
    >>> factors = np.zeros((2, 1), int)
    >>> train = uw.metrics.Sample(np.array([[1.0], [3.0]]), factors)
    >>> test = uw.metrics.Sample(np.array([[2.0], [5.0]]), factors)
    >>> [part.codes.ravel().tolist() for part in standardise_samples(train, test)]
    [[-1.0, 1.0], [0.0, 3.0]]
    """
    return (
        train._replace(codes=_scaled(train.codes, train.codes), single=False),
        test._replace(codes=_scaled(test.codes, train.codes), single=False),
    )


def _scaled(codes: FloatArray, reference: FloatArray) -> FloatArray:
    varies = np.ptp(reference, axis=0) > 0
    deviation = np.where(varies, reference.std(axis=0), 1.0)
    return np.where(varies, (codes - reference.mean(axis=0)) / deviation, 0.0)
