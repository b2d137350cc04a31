"""Training batches: independent rows with replacement, gathered from one array, as float tensors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from unweave.data.dataset import Array, Dataset
from unweave.data.factors import FactorArray, Rng
from unweave.data.rows import Rows
from unweave.data.supervision.pairs import Pairs
from unweave.errors import ArgumentError

# Random streams of the labelled part of a batch and of partners, apart from all others.
LABELLED, PAIRED = 1, 2


class LabelSource(Protocol):
    """What gives each image its labels: see :class:`unweave.data.supervision.labels.Labels`."""

    def of(self, which: npt.ArrayLike) -> Array: ...

    def sample_labelled(self, n: int, rng: Rng) -> Rows | None: ...


@dataclass(frozen=True)
class Batch:
    """One training batch: ``images`` (n, C, H, W) float32 in [0, 1], and where they came from.

    The tensor has NCHW shape; its memory is laid out channels-last, as the images are stored.
    ``rows`` is None for an endless simulator, whose factors are ``drawn``. With labels, ``u`` (n, d) are those of
    the images, NaN where they have none; if some have none, ``labelled`` is another batch, of labelled images only.
    Of pairs, the first images come first and their partners, in the same order, after them; ``changed`` (n/2, K) tells
    which factors of a pair may differ.
    """

    images: torch.Tensor
    data: Dataset
    rows: Rows | None
    drawn: FactorArray | None = None
    u: torch.Tensor | None = None
    labelled: Batch | None = None
    changed: torch.Tensor | None = None

    @property
    def more(self) -> dict[str, torch.Tensor]:
        """What a method gets next to the images, by the names that its ``begin`` takes."""
        found = {"u": self.u} if self.u is not None else {}
        if self.labelled is not None:
            assert self.labelled.u is not None
            found |= {"labelled_images": self.labelled.images, "labelled_u": self.labelled.u}
        if self.changed is not None:
            found["changed"] = self.changed
        return found

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
    data: Dataset,
    step: int,
    batch_size: int,
    seed: int,
    shard: tuple[int, int] = (0, 1),
    labels: LabelSource | None = None,
    pairs: Pairs | None = None,
) -> Batch:
    """Batch number ``step`` of the stream ``seed``: a pure function of its arguments.

    ``shard`` = (i, n): only every n-th element from i on, the part of one of n devices. ``labels`` change
    nothing about the images; if some rows are unlabelled, as many labelled images come in addition. With ``pairs``
    each image, still the same, has a partner: ``batch_size`` counts pairs.

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
        u = None if labels is None else torch.from_numpy(labels.of(factors))
        return Batch(to_tensor(data.images(factors, noise)), data, None, factors, u)
    rows, changed = data.sample_rows(batch_size, rng), None
    if pairs is None:
        rows = rows[part]
    else:
        partners, redrawn = pairs.partners(rows, _source(seed, step, 0, PAIRED))
        rows, changed = np.concatenate([rows[part], partners[part]]), torch.from_numpy(redrawn[part])
    images = to_tensor(data.images(rows, noise))
    if labels is None:
        return Batch(images, data, rows, changed=changed)
    known = labels.sample_labelled(batch_size, _source(seed, step, 0, LABELLED))
    labelled = None
    if known is not None:
        source = _source(seed, step, 1 + shard[0], LABELLED)
        known = known[part]
        shown = to_tensor(data.images(known, source))
        labelled = Batch(shown, data, known, u=torch.from_numpy(labels.of(known)))
    u = torch.from_numpy(labels.of(rows))
    return Batch(images, data, rows, u=u, labelled=labelled, changed=changed)


def to_tensor(images: Array) -> torch.Tensor:
    """Images uint8 (n, H, W, C) -> float32 (n, C, H, W) in [0, 1]; other observations -> float32.

    Any array with four axes counts as images, channels last. The axes are permuted, never
    reinterpreted: pixel [i, c, y, x] is image [i, y, x, c].
    """
    tensor = torch.from_numpy(np.ascontiguousarray(images))
    tensor = tensor.float().div_(255) if tensor.dtype == torch.uint8 else tensor.float()
    return tensor.permute(0, 3, 1, 2) if tensor.ndim == 4 else tensor


def _source(seed: int, step: int, stream: int, purpose: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, stream, step, purpose]))
