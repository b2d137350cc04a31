"""A trained method with the data that it is measured on: what a metric of a model is called with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unweave.arrays import AnyArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from unweave.data import Dataset
    from unweave.data.factors import Rng
    from unweave.methods import LabelMode
    from unweave.methods.method import Posterior

_BATCH = 64  # small: activations stay in the processor's cache


class EncodedBatch(NamedTuple):
    """Images (n, C, H, W) in [0, 1], and the posterior over their codes."""

    images: Tensor
    posterior: Posterior


class Trained(NamedTuple):
    """A trained method with the data it is measured on: what a metric with ``takes="method"`` is called with.

    ``labels`` says where an encoder that takes labels gets them; ``rng`` draws the images.

    Examples
    --------
    >>> data = uw.data.from_arrays(np.zeros((5, 6), np.float32))
    >>> trained = Trained(uw.methods.create("vae", data, latent_size=2), data, None, np.random.default_rng(0))
    >>> which = trained.choose_images(100)
    >>> which.tolist()
    [0, 1, 2, 3, 4]
    >>> [batch.posterior.mean.shape for batch in trained.encoded(which)]
    [torch.Size([5, 2])]
    """

    method: Any
    data: Dataset
    labels: LabelMode | None
    rng: Rng

    def choose_images(self, n: int) -> AnyArray:
        """Rows of n different images, in order; all rows if there are no more than that.

        Where a data set does not draw its rows uniformly, n independent draws of its own. Of an endless simulator,
        factors (n, K).
        """
        if not self.data.finite:
            return self.data.sample_factors(n, self.rng)
        if self.data.sampler is not None:
            return self.data.sample_rows(n, self.rng)
        if n >= len(self.data):
            return np.arange(len(self.data))
        return np.sort(self.rng.choice(len(self.data), n, replace=False))

    def encoded(self, which: AnyArray) -> Iterator[EncodedBatch]:
        """The images of rows (n,), or of factors (n, K) of a simulator, with their posteriors, in batches."""
        import torch

        from unweave.data.batches import to_tensor

        given = self.method.labels_for(self.data) if self.labels == "given" else None
        for start in range(0, len(which), _BATCH):
            block = which[start : start + _BATCH]
            with torch.inference_mode():
                images = to_tensor(self.data.images(block, self.rng)).to(self.device)
                if self.labels is None:
                    yield EncodedBatch(images, self.method.encode(images))
                else:
                    u = None if given is None else torch.from_numpy(given.known(block)).to(self.device)
                    yield EncodedBatch(images, self.method.posterior(images, self.labels, u))

    @property
    def device(self) -> torch.device:
        """Where the method's weights are."""
        device: torch.device = next(self.method.parameters()).device
        return device
