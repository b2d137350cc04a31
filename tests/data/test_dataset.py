import numpy as np
import pytest

from unweave.data import Dataset, FactorSpace
from unweave.data.dataset import from_grid, from_table
from unweave.errors import ArgumentError

SPACE = FactorSpace(["a", "b"], [3, 4])
IMAGES = np.arange(12 * 2 * 2 * 3, dtype=np.uint8).reshape(12, 2, 2, 3)
GRID = from_grid("grid", SPACE, IMAGES)


def add_random(images, rng):
    return images + rng.integers(0, 100, images.shape, dtype=np.uint8)


def test_images_by_row_and_by_factors_are_the_same():
    rows = np.array([11, 0, 5])
    np.testing.assert_array_equal(GRID.images(rows), IMAGES[rows])
    np.testing.assert_array_equal(GRID.images(GRID.factors(rows)), IMAGES[rows])
    assert GRID.images([]).shape == (0, 2, 2, 3)


def test_a_data_set_says_what_it_is():
    assert len(GRID) == 12
    assert GRID.image_shape == (2, 2, 3)
    assert GRID.finite
    assert GRID.is_images
    assert not GRID.stochastic
    assert repr(GRID) == "Dataset(grid: 12 of 2x2x3; a=3, b=4)"


def test_images_handed_out_are_copies():
    GRID.images([0])[:] = 7
    np.testing.assert_array_equal(GRID.images([0]), IMAGES[:1])


def test_a_function_is_called_with_checked_factors():
    data = Dataset("f", SPACE, (1,), GRID.index, function=lambda factors, rng: factors[:, :1] * 10)
    np.testing.assert_array_equal(data.images([[2, 3], [1, 0]]), [[20], [10]])
    np.testing.assert_array_equal(data.images([11, 4]), [[20], [10]])
    with pytest.raises(ArgumentError, match="factor 'a' = 3"):
        data.images([[3, 0]])


def test_noise_is_fresh_at_each_access_and_comes_from_the_rng_alone():
    noisy = GRID.with_parts(noise=add_random)
    assert noisy.stochastic
    rng = np.random.default_rng(0)
    first, second = noisy.images([0, 1], rng), noisy.images([0, 1], rng)
    assert (first != second).any()
    np.testing.assert_array_equal(noisy.images([0, 1], np.random.default_rng(0)), first)
    with pytest.raises(ArgumentError, match="draws noise at every access"):
        noisy.images([0])


def test_sampling_a_grid():
    rng = np.random.default_rng(0)
    assert set(GRID.sample_rows(500, rng)) == set(range(12))
    assert (GRID.sample_factors(50, rng, {"b": 3})[:, 1] == 3).all()


def test_sampling_a_table_gives_only_what_there_is():
    factors = np.array([[0, 0], [0, 0], [2, 3]])
    data = from_table("table", SPACE, IMAGES[:3], factors)
    drawn = data.sample_factors(3000, np.random.default_rng(0))
    assert {tuple(f) for f in drawn} == {(0, 0), (2, 3)}
    assert abs((drawn[:, 0] == 0).mean() - 2 / 3) < 0.03
    both = data.images(np.zeros((200, 2), int), np.random.default_rng(0))
    assert {bytes(image) for image in both} == {bytes(image) for image in IMAGES[:2]}


def test_an_own_sampler_replaces_uniform_sampling():
    data = GRID.with_parts(sampler=lambda n, rng: np.full(n, 7))
    rng = np.random.default_rng(0)
    assert set(data.sample_rows(5, rng)) == {7}
    np.testing.assert_array_equal(data.sample_factors(2, rng), [[1, 3], [1, 3]])
    assert set(data.batch(0).rows) == {7}
    with pytest.raises(ArgumentError, match="does not draw its rows uniformly"):
        data.sample_rows(5, rng, {"a": 0})


def test_an_endless_simulator_has_no_rows():
    space = FactorSpace(["angle"], [(0.0, 1.0)])
    data = Dataset("endless", space, (2,), None, function=lambda f, rng: np.repeat(f, 2, axis=1))
    assert not data.finite
    assert "endless" in repr(data)
    assert data.images(data.sample_factors(3, np.random.default_rng(0))).shape == (3, 2)
    for refused in (lambda: len(data), lambda: data.images([0]), lambda: data.factors([0])):
        with pytest.raises(ArgumentError, match="has no rows"):
            refused()


def test_lengths_must_agree():
    with pytest.raises(ArgumentError, match="has 12 rows"):
        from_grid("bad", SPACE, IMAGES[:5])
    with pytest.raises(ArgumentError, match="there are 12 images"):
        from_table("bad", SPACE, IMAGES, [[0, 0]])


@pytest.mark.parametrize("rows", [[12], [-1], [0.0], "ab", [[[0]]]])
def test_wrong_rows_are_refused(rows):
    with pytest.raises(ArgumentError, match="rows"):
        GRID.images(rows)
