"""Training batches: what a method sees at one step, and how batches of a data set are drawn.

A batch is typed by what comes with its images:

============================  ====================================================================
:class:`Batch`                images alone
:class:`LabelledBatch`        labels u of the images, and further labelled images if some have none
:class:`PairedBatch`          images in pairs, and which factors of each pair may differ
:class:`LabelledPairedBatch`  both
============================  ====================================================================

Each is drawn by a :class:`Batches`. Batch number ``step`` is a pure function of (seed, step): the random source is
Philox, a counter-based generator whose key is the seed and whose counter starts at the step. No state has to be stored
to resume a run, and labels or pairs change nothing about the images.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from unweave.arrays import AnyArray, IntArray
from unweave.data.dataset import Dataset
from unweave.data.factors import FactorArray
from unweave.data.supervision.labels import Labels
from unweave.data.supervision.pairs import Pairs
from unweave.errors import ArgumentError

Shard = tuple[int, int]
AnyBatch = TypeVar("AnyBatch", bound="Batch")

# Random streams of the further labelled images and of partners, apart from all others.
_LABELLED, _PAIRED = 1, 2


def _no_factors() -> FactorArray:
    raise ArgumentError("batch", "images alone", "was not drawn from a data set: its factors are not known")


@dataclass
class Batch:
    """Images of one training step, and where they come from.

    Parameters
    ----------
    images
        (n, C, H, W), float32 in [0, 1]; in memory channels last, as they are stored. Vectors are (n, size).
    rows
        (n,) of the data set; None for an endless simulator and for images of another source.
    lookup
        gives the factors (n, K), when they are asked for.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), {"shape": [0, 1, 2, 3]})
    >>> batch = data.batch(step=0, batch_size=2)
    >>> batch.images.shape, batch.factors.shape
    (torch.Size([2, 1, 8, 8]), (2, 1))
    """

    images: Tensor
    rows: IntArray | None = None
    lookup: Callable[[], FactorArray] = field(default=_no_factors, repr=False)

    @cached_property
    def factors(self) -> FactorArray:
        """The ground-truth factors (n, K)."""
        return self.lookup()

    def to(self: AnyBatch, device: torch.device | str) -> AnyBatch:
        """The same batch with its tensors on ``device``."""
        moved: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Tensor | Batch):
                moved[each.name] = value.to(device)
        return replace(self, **moved)

    def __len__(self) -> int:
        return len(self.images)


@dataclass(kw_only=True)
class LabelledBatch(Batch):
    """Images with labels.

    Parameters
    ----------
    u
        (n, d): the labels of the images, NaN where they have none.
    labelled
        further images, all with labels, for what is learned from these only; None where every row of the data set
        has labels.
    """

    u: Tensor
    labelled: LabelledBatch | None = None


@dataclass(kw_only=True)
class PairedBatch(Batch):
    """Pairs of images: n first ones and then, in the same order, their n partners.

    Parameters
    ----------
    changed
        (n, K): which factors of each pair may differ.
    """

    changed: Tensor


@dataclass(kw_only=True)
class LabelledPairedBatch(PairedBatch, LabelledBatch):
    """Pairs of images with labels."""


class Batches(Protocol):
    """A stream of training batches."""

    def draw(self, step: int, batch_size: int, seed: int, shard: Shard = (0, 1)) -> Batch:
        """Batch number ``step`` of the stream ``seed``.

        Several may be drawn before the first of them is used, so each has memory of its own.

        Parameters
        ----------
        step, seed
            which batch; the same two give the same batch.
        batch_size
            how many images, or pairs of images, over all devices.
        shard
            (i, n): only every n-th element from i on, the part of one of n devices.
        """
        ...


@dataclass(frozen=True, eq=False)
class ImageBatches:
    """Images alone: independent rows with replacement, or draws of an endless simulator.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), {"shape": [0, 1, 2, 3]})
    >>> len(ImageBatches(data).draw(step=0, batch_size=6, seed=0))
    6
    """

    data: Dataset

    def draw(self, step: int, batch_size: int, seed: int, shard: Shard = (0, 1)) -> Batch:
        """Batch number ``step`` of the stream ``seed``: see :class:`Batches`."""
        _check(step, batch_size, seed)
        data, part = self.data, slice(shard[0], None, shard[1])
        if not data.finite:
            factors = data.sample_factors(batch_size, _source(seed, step, 0))[part]
            images = to_tensor(data.images(factors, _noise(seed, step, shard)))
            return Batch(images, None, partial(np.asarray, factors))
        rows = data.sample_rows(batch_size, _source(seed, step, 0))[part]
        images = to_tensor(data.images(rows, _noise(seed, step, shard)))
        return Batch(images, rows, partial(data.factors, rows))


@dataclass(frozen=True, eq=False)
class PairedBatches:
    """The images of :class:`ImageBatches`, each with a partner; ``batch_size`` counts pairs.

    Examples
    --------
    >>> from unweave.data.supervision.pairs import Pairs
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), {"shape": [0, 0, 1, 1], "size": [0, 1, 0, 1]})
    >>> batch = PairedBatches(Pairs(data, 1)).draw(step=0, batch_size=3, seed=0)
    >>> len(batch), batch.changed.shape
    (6, torch.Size([3, 2]))
    """

    pairs: Pairs

    def draw(self, step: int, batch_size: int, seed: int, shard: Shard = (0, 1)) -> PairedBatch:
        """Batch number ``step`` of the stream ``seed``: see :class:`Batches`."""
        _check(step, batch_size, seed)
        data, part = self.pairs.data, slice(shard[0], None, shard[1])
        first = data.sample_rows(batch_size, _source(seed, step, 0))
        partners, changed = self.pairs.partners(first, _source(seed, step, 0, _PAIRED))
        rows = np.concatenate([first[part], partners[part]])
        images = to_tensor(data.images(rows, _noise(seed, step, shard)))
        return PairedBatch(images, rows, partial(data.factors, rows), changed=torch.from_numpy(changed[part]))


@dataclass(frozen=True, eq=False)
class LabelledBatches:
    """The images, or pairs, of other batches with their labels.

    Examples
    --------
    >>> from unweave.data.supervision.labels import labels_of
    >>> data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8), {"shape": [0, 1, 2, 3]})
    >>> LabelledBatches(ImageBatches(data), labels_of(data)).draw(step=0, batch_size=2, seed=0).u.shape
    torch.Size([2, 1])
    """

    batches: ImageBatches | PairedBatches
    labels: Labels

    def draw(self, step: int, batch_size: int, seed: int, shard: Shard = (0, 1)) -> LabelledBatch:
        """Batch number ``step`` of the stream ``seed``: see :class:`Batches`."""
        batch = self.batches.draw(step, batch_size, seed, shard)
        u = self._labels(batch.factors if batch.rows is None else batch.rows)
        further = self._further(step, batch_size, seed, shard)
        if isinstance(batch, PairedBatch):
            return LabelledPairedBatch(
                batch.images, batch.rows, batch.lookup, changed=batch.changed, u=u, labelled=further
            )
        return LabelledBatch(batch.images, batch.rows, batch.lookup, u=u, labelled=further)

    def _further(self, step: int, batch_size: int, seed: int, shard: Shard) -> LabelledBatch | None:
        """As many labelled images as the batch has, where some rows have no labels."""
        drawn = self.labels.sample_labelled(batch_size, _source(seed, step, 0, _LABELLED))
        if drawn is None:
            return None
        data, rows = self.labels.data, drawn[shard[0] :: shard[1]]
        images = to_tensor(data.images(rows, _noise(seed, step, shard, _LABELLED)))
        return LabelledBatch(images, rows, partial(data.factors, rows), u=self._labels(rows))

    def _labels(self, which: AnyArray) -> Tensor:
        return torch.from_numpy(self.labels.of(which))


def to_tensor(images: AnyArray) -> Tensor:
    """Images as a data set gives them, as a tensor for networks.

    Parameters
    ----------
    images
        uint8 (n, H, W, C), or other observations (n, …). Any array with four axes counts as images, channels last.

    Returns
    -------
    Tensor
        float32 (n, C, H, W) in [0, 1]; other observations as float32. The axes are permuted, never reinterpreted:
        pixel [i, c, y, x] is image [i, y, x, c].

    Examples
    --------
    >>> to_tensor(np.full((2, 8, 8, 3), 255, np.uint8)).shape
    torch.Size([2, 3, 8, 8])
    """
    tensor = torch.from_numpy(np.ascontiguousarray(images))
    tensor = tensor.float().div_(255) if tensor.dtype == torch.uint8 else tensor.float()
    return tensor.permute(0, 3, 1, 2) if tensor.ndim == 4 else tensor


def _check(step: int, batch_size: int, seed: int) -> None:
    """Refuse what no stream has."""
    if batch_size < 1:
        raise ArgumentError("batch_size", batch_size, "needs at least 1")
    if step < 0:
        raise ArgumentError("step", step, "needs 0 or more")
    if not 0 <= seed < 2**64:
        raise ArgumentError("seed", seed, "needs 0 <= seed < 2**64")


def _noise(seed: int, step: int, shard: Shard, purpose: int = 0) -> np.random.Generator:
    """The random source of the images' own noise: devices share the draw of rows, not that of noise."""
    return _source(seed, step, 1 + shard[0], purpose)


def _source(seed: int, step: int, stream: int, purpose: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, stream, step, purpose]))
