"""Partners in batches: a function of (seed, step), equal in all but k factors."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from unweave.data import correlate, from_arrays, from_function
from unweave.data.batches import (
    Batch,
    ImageBatches,
    LabelledBatches,
    LabelledPairedBatch,
    PairedBatch,
    PairedBatches,
)
from unweave.data.supervision.labels import labels_of
from unweave.data.supervision.pairs import Pairs, sample_pairs
from unweave.errors import ArgumentError

NAMES, SIZES = ["shape", "x", "y", "angle"], [3, 4, 5, 2]


def grid():
    return from_function(NAMES, SIZES, lambda f: f, name="grid")


def table():
    """Two thirds of the grid's combinations, some of them several times."""
    rows = np.random.default_rng(0).integers(120, size=150)
    factors = np.stack(np.unravel_index(np.concatenate([np.arange(40), rows]), SIZES), axis=1)
    return from_arrays(factors.astype(np.float32), factors, names=NAMES, name="table")


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("make", [grid, table])
@pytest.mark.parametrize("k", [1, 3, "random"])
def test_partners_differ_where_factors_were_drawn_anew_only(make, k):
    data = make()
    rows = data.sample_rows(400, rng())
    partners, redrawn = Pairs(data, k).partners(rows, rng(1))
    first, second = data.factors(rows), data.factors(partners)
    assert redrawn.shape == (400, 4)
    np.testing.assert_array_equal(first[~redrawn], second[~redrawn])
    assert (first[redrawn] != second[redrawn]).mean() > 0.3
    assert set(redrawn.sum(axis=1)) == ({k} if k != "random" else {1, 2, 3})


def test_a_random_number_of_changes_is_uniform():
    _, redrawn = Pairs(grid(), "random").partners(np.zeros(30_000, np.int64), rng())
    assert chisquare(np.bincount(redrawn.sum(axis=1))[1:]).pvalue > 1e-3
    assert chisquare(redrawn.sum(axis=0)).pvalue > 1e-3  # a factor is as likely to change as any other
    first, second = (grid().factors(rows) for rows in sample_pairs(grid(), 2_000, rng(), changed="random"))
    assert (first != second).sum(axis=1).max() == 3


def test_given_the_first_image_the_partner_is_uniform():
    data = grid()
    partners, redrawn = Pairs(data, 1).partners(np.full(40_000, 37), rng())
    of_y = data.factors(partners)[redrawn[:, 2], 2]
    assert chisquare(np.bincount(of_y, minlength=5)).pvalue > 1e-3


@pytest.mark.parametrize("make", [grid, table])
def test_a_batch_of_pairs_is_a_function_of_seed_and_step(make):
    data = make()
    pairs = Pairs(data, "random")
    batch = PairedBatches(pairs).draw(7, 16, 3)
    again = PairedBatches(Pairs(make(), "random")).draw(7, 16, 3)
    np.testing.assert_array_equal(batch.rows, again.rows)
    assert torch.equal(batch.images, again.images)
    assert torch.equal(batch.changed, again.changed)
    other = PairedBatches(pairs).draw(8, 16, 3)
    assert not np.array_equal(batch.rows[16:], other.rows[16:])

    first, second = batch.factors[:16], batch.factors[16:]
    unchanged = ~batch.changed.numpy()
    np.testing.assert_array_equal(first[unchanged], second[unchanged])
    np.testing.assert_array_equal(batch.images.numpy(), batch.factors)


def test_the_first_images_are_those_that_any_method_sees():
    alone, paired = ImageBatches(grid()).draw(5, 8, 1), PairedBatches(Pairs(grid(), 1)).draw(5, 8, 1)
    assert len(paired) == 16
    np.testing.assert_array_equal(alone.rows, paired.rows[:8])
    assert type(alone) is Batch
    assert type(paired) is PairedBatch


def test_devices_share_a_batch_by_pairs():
    whole = PairedBatches(Pairs(grid(), 1)).draw(5, 8, 1)
    for device in (0, 1):
        part = PairedBatches(Pairs(grid(), 1)).draw(5, 8, 1, (device, 2))
        np.testing.assert_array_equal(part.rows[:4], whole.rows[:8][device::2])
        np.testing.assert_array_equal(part.rows[4:], whole.rows[8:][device::2])
        assert torch.equal(part.changed, whole.changed[device::2])


def test_partners_have_labels_too():
    data = grid()
    batch = LabelledBatches(PairedBatches(Pairs(data, 1)), labels_of(data, "x")).draw(0, 8, 0)
    assert isinstance(batch, LabelledPairedBatch)
    np.testing.assert_allclose(batch.u[:, 0], batch.factors[:, 1] / 4)


def test_factors_with_one_value_never_change():
    data = from_function(["one", "a", "none", "b", "c"], [1, 4, 1, 3, 2], lambda f: f, name="held")
    for k, counts in ((1, {1}), (2, {2}), ("random", {1, 2})):
        rows = data.sample_rows(300, rng())
        _, redrawn = Pairs(data, k).partners(rows, rng(1))
        assert not redrawn[:, [0, 2]].any()
        assert set(redrawn.sum(axis=1)) == counts
        assert (redrawn.sum(axis=0)[[1, 3, 4]] > 0).all()
    # The others are drawn as they are without them.
    without = from_function(["a", "b", "c"], [4, 3, 2], lambda f: f)
    plain = Pairs(without, "random").partners(np.zeros(50, np.int64), rng(2))[1]
    held = Pairs(data, "random").partners(np.zeros(50, np.int64), rng(2))[1]
    np.testing.assert_array_equal(held[:, [1, 3, 4]], plain)
    first, second = (data.factors(found) for found in sample_pairs(data, 500, rng(), changed=1))
    assert (first != second).any(axis=1).mean() > 0.4  # 1 - (1/4 + 1/3 + 1/2) / 3 = 0.64
    with pytest.raises(ArgumentError, match="k = 3: needs a whole number from 1 to 2"):
        Pairs(data, 3)
    with pytest.raises(ArgumentError, match="has fewer than two factors of more than one value"):
        Pairs(from_function(["a", "b"], [8, 1], lambda f: f), 1)


@pytest.mark.parametrize("k", [0, 4, 1.5, True, "rnd"])
def test_a_number_that_cannot_be_is_refused(k):
    with pytest.raises(ArgumentError, match=r"k = .*: needs a whole number from 1 to 3, or 'random'"):
        Pairs(grid(), k)


def test_data_without_pairs_is_refused():
    images = np.zeros((4, 2), np.float32)
    with pytest.raises(ArgumentError, match="has no factors"):
        Pairs(from_arrays(images), 1)
    with pytest.raises(ArgumentError, match=r"has continuous factors \(b\)"):
        Pairs(from_arrays(images, {"a": [0, 1, 2, 3], "b": [0.1, 0.2, 0.3, 0.4]}), 1)
    with pytest.raises(ArgumentError, match=r"has continuous factors \(a, b\)"):
        Pairs(from_function(["a", "b"], [(0.0, 1.0), (0.0, 1.0)], lambda f: f), 1)
    with pytest.raises(ArgumentError, match="has one factor"):
        Pairs(from_arrays(images, {"a": [0, 1, 2, 3]}), 1)
    with pytest.raises(ArgumentError, match="samples rows in its own way"):
        Pairs(correlate(grid(), "x", "y", 0.2), 1)
    with pytest.raises(ArgumentError, match="changed = 'random'"):
        sample_pairs(from_arrays(images, {"a": [0, 1, 2, 3]}), 3, rng(), changed="random")
