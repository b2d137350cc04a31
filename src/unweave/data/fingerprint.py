"""A hash of a data set's images and factors: it tells apart two data sets of the same name."""

from __future__ import annotations

import hashlib

import numpy as np

from unweave.data.dataset import Dataset
from unweave.parameters import Count

_IMAGES, _BYTES = 4_096, 2**28


def fingerprint(data: Dataset, most: Count | None = None) -> str:
    """A hash of a finite data set's size, and of its images and factors.

    Parameters
    ----------
    data
        Where noise is drawn at every access, the noise is that of a fixed seed.
    most
        the number of images, spread evenly, that count. None: all, or of a large data set 4,096 images or 256 MB,
        whichever is more.

    Returns
    -------
    str
        16 hexadecimal digits.

    Examples
    --------
    >>> black, white = (uw.data.from_arrays(np.full((4, 2, 2), value, np.uint8)) for value in (0, 255))
    >>> fingerprint(black) == fingerprint(white)
    False
    """
    one = data.images(np.zeros(1, np.int64), np.random.default_rng(0))
    enough = max(_IMAGES, _BYTES // max(one.nbytes, 1)) if most is None else most
    rows = np.unique(np.linspace(0, len(data) - 1, min(enough, len(data))).astype(np.int64))
    digest = hashlib.sha256(f"{len(data)} {one.shape} {one.dtype}".encode())
    for part in np.array_split(rows, -(-len(rows) // 1024)):
        digest.update(data.images(part, np.random.default_rng(0)).tobytes())
        if data.space:
            digest.update(data.factors(part).tobytes())
    return digest.hexdigest()[:16]
