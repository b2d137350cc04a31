"""What tells two data sets of the same name apart: what their images look like."""

from __future__ import annotations

import hashlib

import numpy as np

from unweave.data.dataset import Dataset

_IMAGES, _BYTES = 4_096, 2**28


def looks(data: Dataset, most: int | None = None) -> str:
    """A hash of a finite data set's size, and of its images and factors.

    All of them count, up to 4,096 images or 256 MB, whichever is more; of a larger set, and with ``most``, so many
    that are spread evenly. Where images are drawn anew at every access, the noise is that of a fixed seed.
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
