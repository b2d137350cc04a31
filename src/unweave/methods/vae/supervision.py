"""What a VAE learns from besides images: labels, pairs, both or nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from unweave.arrays import AnyArray, ArrayLike, as_array
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
from unweave.data.supervision.labels import Labels, labels_from_spec
from unweave.errors import ArgumentError
from unweave.methods.method import Posterior
from unweave.methods.spec import VAESpec
from unweave.methods.vae.label_distribution import LabelLayout
from unweave.methods.vae.pairing import Pairing

_HINT = "method.labels_for(data).known(rows) gives labels as the method learned from them"


class Supervision:
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

    def __init__(self, spec: VAESpec, pairing: Pairing | None, may_lack: bool) -> None:
        self.spec, self.pairing, self.may_lack = spec, pairing, may_lack
        self.layout = None if spec.labels is None else LabelLayout.of(spec.labels)
        self.array: AnyArray | None = None

    # --- data -----------------------------------------------------------------------------------------

    def batches(self, data: Dataset) -> Batches:
        """How training batches of ``data`` are drawn; data that lacks labels or pairs is refused."""
        labels = self.labels_for(data)
        paired = None if self.pairing is None else PairedBatches(self.pairing.pairs_of(data, self.spec))
        batches = ImageBatches(data) if paired is None else paired
        return batches if labels is None else LabelledBatches(batches, labels)

    def labels_for(self, data: Dataset) -> Labels | None:
        """The labels of ``data`` that the method learns from; None if it learns from none."""
        return None if self.spec.labels is None else labels_from_spec(self.spec.labels, data, self.array)

    @property
    def lacks_array(self) -> bool:
        """Whether the method learned from an array of labels that it has to be given again."""
        return "array" in (self.spec.labels or {}) and self.array is None

    def remember(self, array: ArrayLike) -> None:
        """Take again the array of labels that a loaded method was created with; ``labels_for`` checks that it is."""
        if "array" not in (self.spec.labels or {}):
            message = f"this {self.spec.name} did not learn from an array"
            raise ArgumentError("labels", np.shape(array), message)
        self.array = np.array(array)

    # --- batches --------------------------------------------------------------------------------------

    def check(self, batch: Batch) -> Batch:
        """The batch, with labels as tensors like the images; one that lacks labels or pairs is refused."""
        if self.pairing is not None:
            self._check_pairs(batch)
        return batch if self.layout is None else self._with_labels(batch)

    def check_labelled(self, batch: Batch) -> LabelledBatch:
        """As ``check``, for a method that always learns from labels."""
        if self.pairing is not None:
            self._check_pairs(batch)
        return self._with_labels(batch)

    def join(self, posterior: Posterior, batch: Batch) -> Posterior:
        """The posteriors (n, D) of a batch, averaged where the images of a pair share a latent."""
        if self.pairing is None or not isinstance(batch, PairedBatch):
            return posterior
        return self.pairing.join(posterior, batch.changed)

    def check_labels(
        self, given: Tensor | ArrayLike | None, images: Tensor, *, entries: bool | None = None
    ) -> Tensor:
        """Labels as a tensor (n, d) like the images.

        Their ``entries`` are checked if they are on a CPU (None): anywhere else each check would wait for the device.
        """
        if self.layout is None:
            raise ArgumentError("u", "labels", f"{self.spec.name} does not learn from labels")
        u = given if given is None or isinstance(given, Tensor) else _as_tensor(given)
        if u is None or tuple(u.shape) != (len(images), self.layout.width):
            raise self._wrong_shape(u, len(images))
        if entries or (entries is None and u.is_cpu):
            self._check_entries(u, self.layout)
        return u.to(images)

    def _with_labels(self, batch: Batch) -> LabelledBatch:
        if not isinstance(batch, LabelledBatch):
            raise self._wrong_shape(None, len(batch))
        labelled = batch.labelled
        if labelled is not None:
            labelled = replace(labelled, u=self.check_labels(labelled.u, labelled.images))
        return replace(batch, u=self.check_labels(batch.u, batch.images), labelled=labelled)

    def _check_pairs(self, batch: Batch) -> None:
        changed = batch.changed if isinstance(batch, PairedBatch) else None
        if changed is None or 2 * len(changed) != len(batch):
            value = None if changed is None else f"a tensor of shape {tuple(changed.shape)}"
            needs = f"{self.spec.name} needs pairs of images, and for each which factors changed"
            raise ArgumentError("changed", value, f"{needs}; there are {len(batch)} images")

    def _wrong_shape(self, u: Tensor | None, n: int) -> ArgumentError:
        columns = () if self.layout is None else self.layout.columns
        value = None if u is None else f"a tensor of shape {tuple(u.shape)}"
        names = ", ".join(column.name for column in columns)
        wanted = (n, sum(column.width for column in columns))
        needs = f"{self.spec.name} needs labels of shape {wanted} ({names})"
        return ArgumentError("u", value, f"{needs}; {_HINT}")

    def _check_entries(self, u: Tensor, layout: LabelLayout) -> None:
        """Refuse entries outside [0, 1], and NaN in a part of a one-hot label, or anywhere if labels may not lack."""
        wrong = (u < 0) | (u > 1)
        if wrong.any():
            row, entry = wrong.nonzero()[0].tolist()
            raise ArgumentError(f"u[{row}, {entry}]", u[row, entry].item(), f"needs 0 to 1, or NaN; {_HINT}")
        missing = u.isnan()
        if not missing.any():
            return
        if not self.may_lack:
            message = f"{self.spec.name} has no q(u|x) to predict missing labels; {_HINT}"
            raise ArgumentError("u", "NaN", message)
        partly = missing != layout.entries(missing[:, layout.starts])
        if partly.any():
            row, entry = partly.nonzero()[0].tolist()
            needs = f"all entries of {layout.names[entry]!r} are NaN, or none"
            raise ArgumentError(f"u[{row}, {entry}]", u[row, entry].item(), f"{needs}; {_HINT}")


def _as_tensor(u: ArrayLike) -> Tensor:
    """Labels that are an array, or lists of numbers."""
    given = as_array(u, "u")
    if given.dtype.kind not in "biuf":
        raise ArgumentError("u", f"{given.dtype} array of shape {given.shape}", "needs numbers")
    return torch.from_numpy(given.astype(np.float64))
