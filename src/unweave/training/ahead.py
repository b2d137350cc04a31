"""Batches drawn a few at a time.

Between two steps a CPU's caches hold the networks' numbers and nothing else, and drawing one batch takes several
times as long as when another was drawn just before.
"""

from __future__ import annotations

import time

from unweave.data.batches import Batch, Batches, Shard

LARGEST = 8 << 20  # bytes of images that wait; labels, or the images y of a stage, come on top
MOST = 16
# Images that take longer are drawn when they are needed: nothing is gained, and an interrupt waits.
SECONDS = 0.005


class BatchesAhead:
    """The same batches, the next ones drawn together with the one that is asked for.

    Parameters
    ----------
    batches
        a stream, whose batches depend on nothing but the arguments of ``draw``.
    end
        the first step whose batch nobody will ask for.

    Examples
    --------
    >>> from unweave.data.batches import ImageBatches
    >>> batches = ImageBatches(uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8)))
    >>> len(BatchesAhead(batches, end=10).draw(step=0, batch_size=6, seed=0))
    6
    """

    def __init__(self, batches: Batches, end: int) -> None:
        self.batches, self.end = batches, end
        self._waiting: dict[tuple[int, int, int, Shard], Batch] = {}
        self._most = MOST

    def draw(self, step: int, batch_size: int, seed: int, shard: Shard = (0, 1)) -> Batch:
        """Batch number ``step`` of the stream ``seed``: see :class:`~unweave.data.batches.Batches`."""
        waiting = self._waiting.pop((step, batch_size, seed, shard), None)
        if waiting is not None:
            return waiting
        self._waiting.clear()
        start = time.monotonic()
        batch = self.batches.draw(step, batch_size, seed, shard)
        size = max(1, batch.images.numel() * batch.images.element_size())
        for later in range(step + 1, min(step + min(self._most, LARGEST // size), self.end)):
            if time.monotonic() - start > SECONDS:
                break
            try:
                drawn = self.batches.draw(later, batch_size, seed, shard)
            except Exception:  # if it comes again, then when that batch is asked for
                break
            if drawn.images.data_ptr() == batch.images.data_ptr():  # a stream that fills the same memory anew
                self._most = 1
                self._waiting.clear()
                return self.batches.draw(step, batch_size, seed, shard)
            self._waiting[later, batch_size, seed, shard] = drawn
        return batch
