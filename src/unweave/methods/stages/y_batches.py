"""Images x with the images y that a frozen first stage makes of them: the paired data of the multi-stage paper.

Where the images of a data set are always the same, so is y of each row, and it is computed once: a file that is mapped
into memory holds y of the rows that training has seen (:class:`~unweave.data.storage.lazy.LazyArray`; a crash leaves
rows that are missing, never half a row). It is in the folder of all data under ``stages``, named by the weights of the
first stage and by the images, so that runs which share a first stage share it.

Networks may round differently for another number of rows. y is computed in blocks of one size, filled up, whether it is
kept or not: training to the end, in parts, with or without kept y sees the same y (on one machine and device; on
others, or with other kernels, equal to rounding).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from unweave.arrays import AnyArray, IntArray
from unweave.data import Dataset
from unweave.data.batches import Batch, Batches, Shard, to_tensor
from unweave.data.fingerprint import fingerprint
from unweave.data.registry import FEW, RECIPES
from unweave.data.storage.lazy import LazyArray
from unweave.data.storage.prepared import data_folder
from unweave.methods.stages.first_stage import CodeSource, FirstStage
from unweave.objectives import reparameterise

VERSION = 1
BLOCK = 32
LARGEST = 8 * 2**30  # bytes of y of a data set that are kept; of a larger one y is computed at every step
_CHOICE = 3  # of the random streams of a step: which y of an image is shown


@dataclass(kw_only=True)
class YBatch(Batch):
    """Images with their y.

    Parameters
    ----------
    y
        (n, C, H, W) in [0, 1].
    """

    y: Tensor


@dataclass(frozen=True, eq=False)
class YBatches:
    """The batches of a data set, with y where that is the same for a row at every step.

    Parameters
    ----------
    batches
        of images.
    data
        that they are from.
    first
        the first stage.
    source
        what y is decoded from: the "mean" of q(c|x), or a "draw" from it.
    num_y
        how many draws each image has, once and for all; a step shows one of them, each as probable. None: a draw is
        made anew at every step, by the method.
    weights
        gives a hash of the first stage's weights, which names the file of kept y. None: y is not kept.

    Examples
    --------
    >>> from unweave.data.batches import ImageBatches
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> first = FirstStage(uw.methods.create("vae", data, latent_size=2, seed=0), (6,))
    >>> batch = YBatches(ImageBatches(data), data, first, "mean").draw(step=0, batch_size=3, seed=0)
    >>> torch.allclose(batch.y, first.reconstruct(batch.images, "mean"))
    True
    """

    batches: Batches
    data: Dataset
    first: FirstStage
    source: CodeSource
    num_y: int | None = None
    weights: Callable[[], str] | None = None

    def draw(self, step: int, batch_size: int, seed: int, shard: Shard = (0, 1)) -> Batch:
        """Batch number ``step`` of the stream ``seed``: see :class:`~unweave.data.batches.Batches`."""
        batch = self.batches.draw(step, batch_size, seed, shard)
        if batch.rows is None or not has_fixed_y(self.data, self.source, self.num_y):
            return batch
        count = self.num_y or 1
        choice = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, step, _CHOICE]))
        which = batch.rows * count + choice.integers(0, count, batch_size)[shard[0] :: shard[1]]
        kept = self._kept
        y = self._compute(batch.images, which) if kept is None else to_tensor(kept.take(which))
        return YBatch(batch.images, batch.rows, batch.lookup, y=y)

    @cached_property
    def _kept(self) -> LazyArray | None:
        """y (number of rows * num_y, H, W, C), filled as it is asked for."""
        shape = (len(self.data) * (self.num_y or 1), *self.data.image_shape)
        if self.weights is None or 4 * np.prod(shape, dtype=np.float64) > LARGEST:
            return None
        # The content of a published data set is fixed: a few images show whether it is the one.
        images = fingerprint(self.data, FEW if RECIPES.is_builtin(self.data.name) else None)
        facts = (VERSION, torch.__version__, self.weights(), images, self.source, self.num_y)
        name = hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
        folder = data_folder() / "stages" / name
        return LazyArray(
            folder,
            shape,
            self._compute_rows,
            version=VERSION,
            dtype=np.float32,
            block=32 * BLOCK,
            what="images y",
            identity=name,
        )

    def _compute_rows(self, which: IntArray) -> AnyArray:
        """y (n, H, W, C) of numbers row * num_y + draw."""
        images = to_tensor(self.data.images(which // (self.num_y or 1)))
        y = self._compute(images, which)
        return (y.permute(0, 2, 3, 1) if y.ndim == 4 else y).contiguous().numpy()

    @torch.no_grad()
    def _compute(self, images: Tensor, which: IntArray) -> Tensor:
        """y (n, C, H, W) of images and numbers row * num_y + draw, on the CPU; in blocks of one size."""
        device = next(self.first.parameters()).device
        blocks = []
        for start in range(0, len(images), BLOCK):
            part, numbers = images[start : start + BLOCK], which[start : start + BLOCK]
            filled = np.resize(np.arange(len(part)), BLOCK)
            posterior = self.first.encode(part[torch.from_numpy(filled)].to(device))
            c = posterior.mean
            if self.source == "draw":
                noise = np.stack([_noise(int(number), c.shape[1]) for number in numbers[filled]])
                c = reparameterise(*posterior, torch.from_numpy(noise).to(c))
            blocks.append(self.first.decode(c)[: len(part)].float().cpu())
        return torch.cat(blocks)


def has_fixed_y(data: Dataset, source: CodeSource, num_y: int | None) -> bool:
    """Whether a row of a data set has the same y, or the same few, at every step.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32))
    >>> has_fixed_y(data, "mean", None), has_fixed_y(data, "draw", None), has_fixed_y(data, "draw", 10)
    (True, False, True)
    """
    return data.finite and not data.stochastic and (source == "mean" or num_y is not None)


def _noise(number: int, size: int) -> AnyArray:
    """The noise (size,) of draw number ``row * num_y + draw``: always the same, so that a lost file changes nothing."""
    return np.random.Generator(np.random.Philox(key=VERSION, counter=[0, 0, 0, number])).standard_normal(
        size, np.float32
    )
