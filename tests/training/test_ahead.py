"""Batches drawn ahead are those that a direct draw gives, and errors come where they belong."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.data.batches import ImageBatches
from unweave.training import ahead
from unweave.training.ahead import BatchesAhead


@pytest.fixture(autouse=True)
def _ample_time(monkeypatch):
    monkeypatch.setattr(ahead, "SECONDS", 1000.0)


class Watched:
    """Batches that remember which were drawn, and cannot draw some."""

    def __init__(self, unreadable: tuple[int, ...] = ()) -> None:
        images = np.random.default_rng(0).integers(0, 256, (50, 8, 8, 1), np.uint8)
        self.batches = ImageBatches(uw.data.from_arrays(images))
        self.unreadable, self.drawn = unreadable, []

    def draw(self, step, batch_size, seed, shard=(0, 1)):
        if step in self.unreadable:
            raise OSError(f"step {step}")
        self.drawn.append(step)
        return self.batches.draw(step, batch_size, seed, shard)


def test_the_same_batches_each_drawn_once():
    watched = Watched()
    batches = BatchesAhead(watched, end=40)
    for step in range(3, 40):
        batch, direct = batches.draw(step, 6, 1), watched.batches.draw(step, 6, 1)
        assert torch.equal(batch.images, direct.images)
        assert (batch.rows == direct.rows).all()
    assert watched.drawn == list(range(3, 40))


def test_other_arguments_are_drawn_anew():
    watched = Watched()
    batches = BatchesAhead(watched, end=40)
    batches.draw(0, 6, seed=1)
    for arguments in ((1, 6, 2), (1, 5, 1), (7, 6, 1), (2, 6, 1, (1, 2))):
        batch, direct = batches.draw(*arguments), watched.batches.draw(*arguments)
        assert torch.equal(batch.images, direct.images), arguments


def test_large_batches_do_not_wait(monkeypatch):
    watched = Watched()
    monkeypatch.setattr(ahead, "LARGEST", 3 * 6 * 8 * 8 * 4)
    BatchesAhead(watched, end=40).draw(0, 6, 0)
    assert watched.drawn == [0, 1, 2]
    watched.drawn.clear()
    BatchesAhead(watched, end=40).draw(0, 64, 0)
    assert watched.drawn == [0]


def test_an_error_comes_at_its_own_step():
    batches = BatchesAhead(Watched(unreadable=(5,)), end=40)
    for step in range(5):
        batches.draw(step, 6, 0)
    with pytest.raises(OSError, match="step 5"):
        batches.draw(5, 6, 0)


def test_slow_batches_do_not_wait(monkeypatch):
    monkeypatch.setattr(ahead, "SECONDS", -1.0)
    watched = Watched()
    BatchesAhead(watched, end=40).draw(0, 6, 0)
    assert watched.drawn == [0]


@pytest.mark.parametrize(
    ("count", "drawn"), [(1, [0, 1, 0, 1, 2, 3, 4, 5]), (2, [0, 1, 2, 0, 1, 2, 3, 4, 5])]
)
def test_a_stream_that_fills_the_same_memory_is_drawn_step_by_step(count, drawn):
    watched, buffers = Watched(), [torch.zeros(6, 1, 8, 8) for _ in range(count)]

    class Reusing:
        calls = 0

        def draw(self, *arguments):
            batch = watched.draw(*arguments)
            buffer = buffers[self.calls % count]
            self.calls += 1
            buffer.copy_(batch.images)
            batch.images = buffer
            return batch

    batches = BatchesAhead(Reusing(), end=40)
    for step in range(6):
        expected = watched.batches.draw(step, 6, 0).images
        assert torch.equal(batches.draw(step, 6, 0).images, expected)
    assert watched.drawn == drawn
