import numpy as np
import pytest
import torch

from unweave.data.own.functions import from_function
from unweave.data.rows import Grid
from unweave.errors import ArgumentError

NAMES, SIZES = ["a", "b"], [3, 4]


def picture(factors):
    """Each factor is the grey of one half of an image (4, 6)."""
    images = np.zeros((len(factors), 4, 6), np.uint8)
    images[:, :, :3] = factors[:, 0, None, None]
    images[:, :, 3:] = factors[:, 1, None, None] * 10
    return images


def test_discrete_factors_are_a_grid_of_images():
    data = from_function(NAMES, SIZES, picture, categorical=["a"], name="halves")
    assert isinstance(data.index, Grid)
    assert (data.name, len(data), data.image_shape, data.is_images) == ("halves", 12, (4, 6, 1), True)
    assert data.space.categorical == {"a"}
    rows = np.array([11, 0, 5])
    images = data.images(rows)
    assert images.dtype == np.uint8
    np.testing.assert_array_equal(images[..., 0], picture(data.factors(rows)))
    np.testing.assert_array_equal(data.images([[2, 3]]), data.images([11]))
    batch = data.batch(0, batch_size=7)
    assert batch.images.shape == (7, 1, 4, 6)
    np.testing.assert_allclose(batch.images[:, 0, 0, 5].numpy() * 255, batch.factors[:, 1] * 10, rtol=1e-6)


def test_images_with_channels_stay_as_they_are():
    data = from_function(NAMES, SIZES, lambda f: np.repeat(picture(f)[..., None], 3, axis=3))
    assert data.image_shape == (4, 6, 3)


def test_continuous_factors_are_endless_floats():
    data = from_function(NAMES, [3, (0.0, 2.0)], lambda f: f * 0.5)
    assert not data.finite
    assert data.index is None
    factors = data.sample_factors(5, np.random.default_rng(0))
    assert ((factors[:, 1] >= 0) & (factors[:, 1] <= 2)).all()
    out = data.images(factors)
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, (factors * 0.5).astype(np.float32))
    assert data.batch(1, batch_size=3).images.shape == (3, 2)


@pytest.mark.parametrize(
    ("fn", "shape"),
    [
        (lambda f: f[:, :1] > 1, (1,)),  # booleans
        (lambda f: f, (2,)),  # integers
        (lambda f: np.zeros((len(f), 5), np.uint8), (5,)),  # bytes that are no image
        (lambda f: np.zeros((len(f), 2, 3, 4, 5)), (2, 3, 4, 5)),
        (lambda f: np.zeros((len(f), 3, 9, 9)), (3, 9, 9)),  # not bytes: any shape is taken as it is
        (lambda f: torch.zeros(len(f), 7), (7,)),
        (lambda f: [[1.0, 2]] * len(f), (2,)),
    ],
)
def test_other_observations_become_float32(fn, shape):
    data = from_function(NAMES, SIZES, fn)
    assert data.image_shape == shape
    assert data.images([0, 1]).dtype == np.float32
    assert data.images(np.empty(0, np.int64)).shape == (0, *shape)


def test_one_observation_at_a_time():
    data = from_function(NAMES, SIZES, lambda f: picture(f[None])[0], vectorized=False)
    rows = np.arange(12)
    np.testing.assert_array_equal(data.images(rows)[..., 0], picture(data.factors(rows)))


@pytest.mark.parametrize("vectorized", [True, False])
def test_a_stochastic_function_draws_from_the_given_source_only(vectorized):
    def fn(factors, rng):
        return factors + rng.normal(size=factors.shape)

    data = from_function(NAMES, SIZES, fn, stochastic=True, vectorized=vectorized)
    assert data.stochastic
    first, again, other = (data.images([3, 3], np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()
    assert (first[0] != first[1]).all()
    with pytest.raises(ArgumentError, match="rng = None"):
        data.images([0])


def test_it_is_called_once_at_construction():
    calls = []
    from_function(NAMES, SIZES, lambda f: calls.append(len(f)) or f)
    assert len(calls) == 1


def test_the_function_may_write_into_its_argument_and_reuse_its_result():
    shared = np.zeros((100, 2), np.float32)

    def fn(factors):
        factors += 1
        shared[: len(factors)] = factors
        return shared[: len(factors)]

    data = from_function(NAMES, SIZES, fn)
    asked = np.array([[0, 0], [2, 3]])
    first = data.images(asked)
    data.images([[1, 1], [1, 1]])
    np.testing.assert_array_equal(first, [[1, 1], [3, 4]])
    np.testing.assert_array_equal(asked, [[0, 0], [2, 3]])
    assert first.flags.writeable


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda f: np.zeros((2, 5)), r"fn = .*shape \(2, 5\).*: needs 3 observations for 3 rows"),
        (lambda f: 1.0, r"fn = .*shape \(\)"),
        (lambda f: np.zeros(len(f)), r"fn returned = .*shape \(3,\).*\(n, 1\)"),
        (lambda f: np.zeros((len(f), 0)), "fn returned = .*empty"),
        (lambda f: None, "fn = .*returned None"),
        (lambda f: [{}] * len(f), "fn returned = .*dtype object"),
        (lambda f: [[1], [1, 2], [3]], "fn returned = .*cannot be converted to a numpy array"),
        (lambda f: [["x"]] * len(f), "fn returned = .*dtype <U1"),
        (lambda f: f * 1j, "fn returned = .*dtype complex128"),
        (lambda f: np.full((len(f), 2), np.nan), r"fn = .*NaN or infinity for factors \[\d, \d\]"),
        (lambda f: np.full((len(f), 2), 1e300), "fn = .*NaN or infinity"),  # too large for float32
        (lambda f: np.zeros((len(f), 3, 8, 8), np.uint8), "channels come last"),
        (
            lambda f: torch.zeros(len(f), 2, requires_grad=True),
            "fn returned = .*cannot be converted to a numpy array",
        ),
        (3, "fn = 3: needs a function"),
    ],
)
def test_what_is_wrong_with_the_function_is_said_at_once(fn, message):
    with pytest.raises(ArgumentError, match=message):
        from_function(NAMES, SIZES, fn)


def test_a_changing_shape_or_type_is_refused_later():
    data = from_function(NAMES, SIZES, lambda f: np.zeros((len(f), 2 if len(f) == 3 else 4)))
    with pytest.raises(ArgumentError, match=r"shape \(1, 4\).*it was float32 of shape \(n, 2\)"):
        data.images([0])
    data = from_function(NAMES, SIZES, lambda f: np.zeros((len(f), 4, 4), np.uint8 if len(f) == 3 else float))
    with pytest.raises(ArgumentError, match=r"returned float32.*it was uint8"):
        data.images([0])
    data = from_function(NAMES, SIZES, lambda f: np.zeros(2 if f[1] < 3 else 3), vectorized=False)
    with pytest.raises(ArgumentError, match=r"shape \(3,\) for factors \[0, 3\].*\(2,\) before"):
        data.images([0, 3])


@pytest.mark.parametrize(
    ("names", "sizes"), [(["a"], [3, 4]), (["a", "a"], [3, 4]), (["a", "b"], [0, 1]), ([], [])]
)
def test_bad_factors_are_refused_before_the_function_is_called(names, sizes):
    with pytest.raises(ArgumentError, match=r"names|sizes|size of"):
        from_function(names, sizes, lambda f: pytest.fail("called"))
