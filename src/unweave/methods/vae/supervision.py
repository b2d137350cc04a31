"""What a VAE learns from besides images: labels, pairs, both or nothing."""

from __future__ import annotations

from unweave.data import Dataset
from unweave.data.batches import (
    Batch,
    Batches,
    ImageBatches,
    LabelledBatch,
    LabelledBatches,
    PairedBatch,
    PairedBatches,
)
from unweave.errors import ArgumentError
from unweave.methods.labelled import LabelSupervision
from unweave.methods.method import Posterior
from unweave.methods.spec import VAESpec
from unweave.methods.vae.pairing import Pairing


class Supervision(LabelSupervision):
    """How a VAE's training batches are drawn and checked, and what the posteriors of a batch share.

    Parameters
    ----------
    spec
        of the method; its ``labels`` say which labels it learns from, if any.
    pairing
        what images that come in pairs share; None: they come one by one.
    may_lack
        whether the method can learn from images that have no labels.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((4, 6), np.float32), {"shape": [0, 1, 2, 3]})
    >>> uw.methods.create("ivae", data).supervision.batches(data).draw(step=0, batch_size=2, seed=0).u.shape
    torch.Size([2, 1])
    """

    spec: VAESpec

    def __init__(self, spec: VAESpec, pairing: Pairing | None, may_lack: bool) -> None:
        super().__init__(spec, may_lack)
        self.pairing = pairing

    def batches(self, data: Dataset) -> Batches:
        """How training batches of ``data`` are drawn; data that lacks labels or pairs is refused."""
        labels = self.labels_for(data)
        paired = None if self.pairing is None else PairedBatches(self.pairing.pairs_of(data, self.spec))
        batches = ImageBatches(data) if paired is None else paired
        return batches if labels is None else LabelledBatches(batches, labels)

    def check(self, batch: Batch) -> Batch:
        """The batch, with labels as tensors like the images; one that lacks labels or pairs is refused."""
        if self.pairing is not None:
            self._check_pairs(batch)
        return batch if self.layout is None else self.check_batch(batch)

    def check_labelled(self, batch: Batch) -> LabelledBatch:
        """As ``check``, for a method that always learns from labels."""
        if self.pairing is not None:
            self._check_pairs(batch)
        return self.check_batch(batch)

    def join(self, posterior: Posterior, batch: Batch) -> Posterior:
        """The posteriors (n, D) of a batch, averaged where the images of a pair share a latent."""
        if self.pairing is None or not isinstance(batch, PairedBatch):
            return posterior
        return self.pairing.join(posterior, batch.changed)

    def _check_pairs(self, batch: Batch) -> None:
        changed = batch.changed if isinstance(batch, PairedBatch) else None
        if changed is None or 2 * len(changed) != len(batch):
            value = None if changed is None else f"a tensor of shape {tuple(changed.shape)}"
            needs = f"{self.spec.name} needs pairs of images, and for each which factors changed"
            raise ArgumentError("changed", value, f"{needs}; there are {len(batch)} images")
