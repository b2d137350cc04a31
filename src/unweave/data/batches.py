"""Training batches: independent rows with replacement, gathered from one array, as float tensors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from unweave.data.dataset import Array, Dataset
from unweave.data.factors import FactorArray
from unweave.data.rows import Rows
from unweave.errors import ArgumentError


@dataclass(frozen=True)
class Batch:
    """One training batch: ``images`` (n, C, H, W) float32 in [0, 1], and where they came from.

    The tensor has NCHW shape; its memory is laid out channels-last, as the images are stored.
    ``rows`` is None for an endless simulator, whose factors are ``drawn``.
    """

    images: torch.Tensor
    data: Dataset
    rows: Rows | None
    drawn: FactorArray | None = None

    @cached_property
    def factors(self) -> FactorArray:
        """The ground-truth factors (n, K) of the batch; looked up only when asked for."""
        if self.drawn is not None:
            return self.drawn
        assert self.rows is not None
        return self.data.factors(self.rows)

    def __len__(self) -> int:
        return len(self.images)


def draw_batch(
    data: Dataset, step: int, batch_size: int, seed: int, shard: tuple[int, int] = (0, 1)
) -> Batch:
    """Batch number ``step`` of the stream ``seed``: a pure function of its arguments.

    ``shard`` = (i, n): only every n-th element from i on, the part of one of n devices.

    The random source is Philox, a counter-based generator: its key is the seed and its counter
    starts at the step, so no state has to be stored to resume a run.
    """
    if batch_size < 1:
        raise ArgumentError("batch_size", batch_size, "needs at least 1")
    if step < 0:
        raise ArgumentError("step", step, "needs 0 or more")
    if not 0 <= seed < 2**64:
        raise ArgumentError("seed", seed, "needs 0 <= seed < 2**64")
    part = slice(shard[0], None, shard[1])
    rng = _source(seed, step, 0)
    noise = _source(seed, step, 1 + shard[0])  # devices share the draw of rows, not that of noise
    if not data.finite:
        factors = data.sample_factors(batch_size, rng)[part]
        return Batch(to_tensor(data.images(factors, noise)), data, None, factors)
    rows = data.sample_rows(batch_size, rng)[part]
    return Batch(to_tensor(data.images(rows, noise)), data, rows)


def to_tensor(images: Array) -> torch.Tensor:
    """Images uint8 (n, H, W, C) -> float32 (n, C, H, W) in [0, 1]; other observations -> float32.

    Any array with four axes counts as images, channels last. The axes are permuted, never
    reinterpreted: pixel [i, c, y, x] is image [i, y, x, c].
    """
    tensor = torch.from_numpy(np.ascontiguousarray(images))
    tensor = tensor.float().div_(255) if tensor.dtype == torch.uint8 else tensor.float()
    return tensor.permute(0, 3, 1, 2) if tensor.ndim == 4 else tensor


def _source(seed: int, step: int, stream: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, stream, step, 0]))
