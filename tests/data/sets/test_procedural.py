import numpy as np
import pytest

import unweave as uw
from unweave.data.render import ROOMS_SIZES, SOLIDS_SIZES, render_rooms, render_solids
from unweave.data.sets import rooms3d, solids3d


@pytest.mark.parametrize(
    ("name", "size", "render"), [("rooms3d", 480_000, render_rooms), ("solids3d", 34_560, render_solids)]
)
def test_rendered_sets_are_drawn_on_demand_and_kept(name, size, render, data_folder):
    data = uw.data.load(name)
    assert len(data) == size
    assert data.image_shape == (64, 64, 3)
    rows = np.array([0, size - 1, size // 2])
    expected = render(data.factors(rows))
    np.testing.assert_array_equal(data.images(rows), expected)
    np.testing.assert_array_equal(data.images(data.factors(rows)), expected)
    del data
    kept = np.load(data_folder / name / "rendered-v1" / "images.npy", mmap_mode="r")
    np.testing.assert_array_equal(kept[rows], expected)
    assert not kept[1].any()


def test_they_train_like_any_other_set():
    batch = uw.data.load("solids3d").batch(0, batch_size=4)
    assert batch.images.shape == (4, 3, 64, 64)
    assert batch.factors.shape == (4, 4)


def test_the_factors_are_those_of_the_renderers():
    assert rooms3d.SPACE.sizes == tuple(ROOMS_SIZES)
    assert solids3d.SPACE.sizes == tuple(SOLIDS_SIZES)
