import numpy as np
import pytest
import torch

from unweave.data import Dataset, FactorSpace
from unweave.data.batches import Batch, LabelledBatches, LabelledPairedBatch, PairedBatches, to_tensor
from unweave.data.dataset import from_grid
from unweave.data.supervision.labels import labels_of
from unweave.data.supervision.pairs import Pairs
from unweave.errors import ArgumentError

SPACE = FactorSpace(["a", "b"], [3, 4])
IMAGES = np.random.default_rng(0).integers(0, 256, (12, 4, 5, 3), dtype=np.uint8)
GRID = from_grid("grid", SPACE, IMAGES)


def test_pixels_keep_their_place_when_channels_move_to_the_front():
    tensor = to_tensor(IMAGES)
    assert tensor.shape == (12, 3, 4, 5)
    assert tensor.dtype == torch.float32
    for channel in range(3):
        np.testing.assert_allclose(tensor[:, channel].numpy(), IMAGES[..., channel] / 255, rtol=1e-7)


def test_white_is_exactly_one_and_black_exactly_zero():
    tensor = to_tensor(np.array([0, 255], np.uint8).reshape(2, 1, 1, 1))
    assert tensor.flatten().tolist() == [0.0, 1.0]


def test_other_observations_become_float32_unscaled():
    tensor = to_tensor(np.array([[255.0, -3.5]]))
    assert tensor.dtype == torch.float32
    assert tensor.tolist() == [[255.0, -3.5]]


def test_a_batch_is_a_function_of_seed_and_step():
    batch = GRID.batch(7, batch_size=16, seed=3)
    again = list(GRID.batches(16, seed=3, start=5, steps=3))[2]
    assert torch.equal(batch.images, again.images)
    np.testing.assert_array_equal(batch.rows, again.rows)
    assert not np.array_equal(batch.rows, GRID.batch(8, 16, 3).rows)
    assert not np.array_equal(batch.rows, GRID.batch(7, 16, 4).rows)


def test_a_batch_knows_its_rows_and_factors():
    batch = GRID.batch(0, batch_size=32)
    assert len(batch) == 32
    np.testing.assert_array_equal(batch.factors, SPACE.factors(batch.rows))
    assert torch.equal(batch.images, to_tensor(IMAGES[batch.rows]))


def test_rows_are_uniform_and_independent_between_steps():
    rows = np.stack([GRID.batch(step, 60).rows for step in range(400)])
    counts = np.bincount(rows.ravel(), minlength=12)
    assert ((counts - 2000) ** 2 / 2000).sum() < 31.3  # 0.1 % quantile, 11 degrees of freedom
    pairs = np.bincount(rows[:-1, 0] * 12 + rows[1:, 0], minlength=144)
    assert ((pairs - 399 / 144) ** 2 / (399 / 144)).sum() < 199  # 0.1 % quantile, 143 degrees


def test_noise_is_part_of_the_stream():
    noisy = GRID.with_parts(noise=lambda images, rng: rng.integers(0, 256, images.shape, dtype=np.uint8))
    assert torch.equal(noisy.batch(2).images, noisy.batch(2).images)
    assert not torch.equal(noisy.batch(2).images, noisy.batch(3).images)


def test_endless_simulators_give_their_drawn_factors():
    space = FactorSpace(["angle"], [(0.0, 1.0)])
    data = Dataset("endless", space, (2,), None, function=lambda f, rng: np.repeat(f, 2, axis=1))
    batch = data.batch(0, 8)
    assert batch.rows is None
    np.testing.assert_allclose(batch.images.numpy()[:, :1], batch.factors, rtol=1e-6)


@pytest.mark.parametrize("arguments", [{"batch_size": 0}, {"step": -1}, {"seed": -1}, {"seed": 2**64}])
def test_wrong_arguments_are_named(arguments):
    with pytest.raises(ArgumentError, match=next(iter(arguments))):
        GRID.batch(**{"step": 0, **arguments})


def test_a_batch_moves_with_all_its_tensors():
    labels = labels_of(GRID, labelled=3)
    batch = LabelledBatches(PairedBatches(Pairs(GRID, 1)), labels).draw(0, 4, 0)
    moved = batch.to("meta")
    assert type(moved) is LabelledPairedBatch
    tensors = [moved.images, moved.u, moved.changed, moved.labelled.images, moved.labelled.u]
    assert all(tensor.device.type == "meta" for tensor in tensors)
    assert batch.images.device.type == "cpu"
    np.testing.assert_array_equal(moved.factors, batch.factors)


def test_images_of_another_source_have_no_factors():
    batch = Batch(torch.zeros(3, 1, 4, 4))
    assert len(batch) == 3
    with pytest.raises(ArgumentError, match="was not drawn from a data set"):
        batch.factors  # noqa: B018
