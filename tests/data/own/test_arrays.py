import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.data.own.arrays import from_arrays
from unweave.data.own.columns import parse_cells
from unweave.data.rows import Grid, Table
from unweave.errors import ArgumentError

IMAGES = np.arange(6 * 4 * 5, dtype=np.uint8).reshape(6, 4, 5)


class Frame:
    """What a data frame has: columns, and columns by name."""

    def __init__(self, columns):
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return self._columns[name]


# --- observations ------------------------------------------------------------------------------


def test_images_without_factors():
    data = from_arrays(IMAGES, name="plain")
    assert repr(data) == "Dataset(plain: 6 of 4x5x1; no factors)"
    assert data.images([4, 1]).dtype == np.uint8
    np.testing.assert_array_equal(data.images([4, 1])[..., 0], IMAGES[[4, 1]])
    assert data.factors([0, 5]).shape == (2, 0)
    batch = data.batch(0, batch_size=3)
    assert batch.images.shape == (3, 1, 4, 5)
    assert batch.factors.shape == (3, 0)
    assert len(from_arrays(IMAGES[:1])) == 1


@pytest.mark.parametrize("shape", [(6, 4, 5, 3), (6, 4, 5, 1)])
def test_images_with_channels(shape):
    assert from_arrays(np.zeros(shape, np.uint8)).image_shape == shape[1:]


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        (np.arange(12.0).reshape(6, 2), (2,)),
        (np.arange(12, dtype=np.float32).reshape(6, 2), (2,)),
        (np.arange(12, dtype=np.float16).reshape(6, 2), (2,)),
        (np.arange(12, dtype=np.uint8).reshape(6, 2), (2,)),  # bytes, but no image
        (np.arange(120).reshape(6, 4, 5), (4, 5)),
        (np.arange(12).reshape(6, 2) > 3, (2,)),
        ([[i, i + 1] for i in range(6)], (2,)),
    ],
)
def test_other_observations_are_float32(values, shape):
    data = from_arrays(values)
    assert data.image_shape == shape
    out = data.images(np.arange(6))
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, np.asarray(values, dtype=np.float32))
    assert data.batch(0, batch_size=2).images.dtype == torch.float32


def test_torch_tensors_are_taken():
    data = from_arrays(torch.from_numpy(IMAGES), torch.arange(6))
    np.testing.assert_array_equal(data.images([2])[..., 0], IMAGES[[2]])
    assert data.space.sizes == (6,)
    with pytest.raises(ArgumentError, match=r"images = 'Tensor': cannot be converted to a numpy array"):
        from_arrays(torch.zeros(6, 2, requires_grad=True))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_memory_maps_are_not_copied(tmp_path, dtype):
    np.save(tmp_path / "x.npy", IMAGES.astype(dtype))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    data = from_arrays(mapped)
    array = getattr(data.array, "array", data.array)
    assert np.shares_memory(array, mapped)
    assert data.images([3]).dtype == (np.uint8 if dtype == np.uint8 else np.float32)
    np.testing.assert_array_equal(data.images([3]).reshape(4, 5), IMAGES[3])


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((0, 4, 5), np.uint8), "images = .*at least one observation"),
        (np.zeros(6), r"images = .*shape \(6,\).*needs shape \(n, …\)"),
        (np.zeros((6, 0)), "images = .*empty"),
        (np.array([[None]]), "images = .*dtype object"),
        (np.ma.masked_equal([[1], [2]], 2), "images = .*dtype object"),
        (np.array([["x"]]), "images = .*needs numbers"),
        ([[1], [1, 2]], "images = 'list': cannot be converted to a numpy array"),
        (np.array([[1.0], [2.0], [np.nan]]), "images, row 2 = 'NaN or infinity': needs finite"),
        (np.array([[1.0], [1e300]]), "images, row 1 = "),
        (
            np.zeros((6, 3, 8, 8), np.uint8),
            r"images = .*\(6, 3, 8, 8\).*channels come last.*transpose\(0, 2, 3, 1\)",
        ),
        (torch.zeros(6, 1, 8, 8), "channels come last"),
    ],
)
def test_bad_images_are_refused(images, message):
    with pytest.raises(ArgumentError, match=message):
        from_arrays(images)


def test_a_nan_far_into_a_large_array_is_found(monkeypatch):
    monkeypatch.setattr("unweave.data.own.arrays._CHECKED_AT_A_TIME", 8)
    values = np.zeros((50, 3))
    values[37, 1] = np.inf
    with pytest.raises(ArgumentError, match="images, row 37"):
        from_arrays(values)


# --- factors -----------------------------------------------------------------------------------

COLUMNS = {
    "integer": np.array([30, 10, 20, 10, 30, 30]),
    "text": ["cube", "ball", "cube", "ball", "ball", "cube"],
    "boolean": [True, False, True, True, False, False],
    "whole": [2.0, -1.0, 2.0, 2.0, 7.0, 7.0],
    "constant": [0.5] * 6,
    "real": [0.5, 0.25, 1.5, 1.0, 2.0, 0.75],
    "bytes": np.array([b"x", b"y", b"x", b"x", b"y", b"y"]),
}


@pytest.mark.parametrize("wrap", [dict, Frame])
def test_columns_become_factors_by_their_type(wrap):
    data = from_arrays(IMAGES, wrap(COLUMNS), categorical=["boolean"])
    assert data.space.names == tuple(COLUMNS)
    assert data.space.sizes == (3, 2, 2, 3, 1, (0.25, 2.0), 2)
    assert data.space.categorical == {"text", "boolean", "bytes"}
    assert data.space.value_names == {
        "integer": ("10", "20", "30"),
        "text": ("ball", "cube"),
        "boolean": ("False", "True"),
        "whole": ("-1", "2", "7"),
        "constant": ("0.5",),
        "bytes": ("x", "y"),
    }
    factors = data.factors(np.arange(6))
    np.testing.assert_array_equal(factors[:, 0], [2, 0, 1, 0, 2, 2])
    np.testing.assert_array_equal(factors[:, 1], [1, 0, 1, 0, 0, 1])
    np.testing.assert_array_equal(factors[:, 2], [1, 0, 1, 1, 0, 0])
    np.testing.assert_array_equal(factors[:, 3], [1, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(factors[:, 4], 0)
    np.testing.assert_array_equal(factors[:, 5], COLUMNS["real"])


def test_a_categorical_float_is_discrete():
    data = from_arrays(IMAGES, {"real": COLUMNS["real"]}, categorical=["real"])
    assert data.space.sizes == (6,)
    assert data.space.value_names["real"] == ("0.25", "0.5", "0.75", "1.0", "1.5", "2.0")


def test_missing_and_repeated_combinations():
    data = from_arrays(IMAGES, [[0, 5], [1, 7], [0, 5], [1, 5], [0, 5], [1, 7]], names=["a", "b"])
    assert isinstance(data.index, Table)
    rng = np.random.default_rng(0)
    assert set(data.rows(np.tile([0, 0], (50, 1)), rng)) == {0, 2, 4}
    with pytest.raises(ArgumentError, match="no image of this combination"):
        data.rows([[0, 1]], rng)


def test_a_full_grid_in_order_is_recognised():
    grid = np.array([[a, b] for a in (3, 8) for b in (1, 2, 4)])
    assert isinstance(from_arrays(IMAGES, grid).index, Grid)
    assert isinstance(from_arrays(IMAGES, grid[::-1]).index, Table)
    np.testing.assert_array_equal(from_arrays(IMAGES, grid[::-1]).factors([0]), [[1, 2]])


def test_names_of_array_columns():
    assert from_arrays(IMAGES, np.zeros((6, 2), int)).space.names == ("factor_0", "factor_1")
    assert from_arrays(IMAGES, np.arange(6), names=["row"]).space.names == ("row",)
    mixed = [["a", 1, 0.5], ["b", 10, 1.5]] * 3
    space = from_arrays(IMAGES, mixed).space
    assert space.sizes == (2, 2, (0.5, 1.5))
    assert space.value_names["factor_1"] == ("1", "10")
    record = np.array([(i, i / 2) for i in range(6)], dtype=[("id", int), ("half", float)])
    assert from_arrays(IMAGES, record).space.sizes == (6, (0.0, 2.5))


def test_names_choose_columns_of_a_mapping():
    assert from_arrays(IMAGES, COLUMNS, names=["text", "integer"]).space.names == ("text", "integer")
    with pytest.raises(ArgumentError, match="names = 'txt': did you mean 'text'"):
        from_arrays(IMAGES, COLUMNS, names=["txt"])


class NotAvailable:
    """Like pandas.NA: a comparison with it has no truth value."""

    def __ne__(self, other):
        return self

    def __bool__(self):
        raise TypeError

    __hash__ = object.__hash__


ROWS = range(6)


NAN = np.nan


@pytest.mark.parametrize(
    ("column", "size", "expected"),
    [
        ([0.5, 1, 2, NAN, 0, 1], (0.0, 2.0), [0.5, 1, 2, NAN, 0, 1]),
        (np.array([4.0, NAN, 7, 4, NAN, 9]), 3, [0, NAN, 1, 0, NAN, 2]),
        (["a", "b", None, "a", "b", "a"], 2, [0, 1, NAN, 0, 1, 0]),
        (["a", "b", "a", "a", float("nan"), "a"], 2, [0, 1, 0, 0, NAN, 0]),
        (["a", "b", "a", "a", NotAvailable(), "a"], 2, [0, 1, 0, 0, NAN, 0]),
        (np.array(["a", " ", "a", "", "b", "a"]), 2, [0, NAN, 0, NAN, 1, 0]),
        (np.ma.masked_equal([1, 2, 3, 4, 5, 6], 3), 5, [0, 1, NAN, 2, 3, 4]),
        ([True, None, False, True, True, True], 2, [1, NAN, 0, 1, 1, 1]),
    ],
)
def test_missing_values_are_unknown(column, size, expected):
    data = from_arrays(IMAGES, {"x": column, "known": ROWS})
    assert data.space.sizes == (size, 6)
    assert data.partly_labelled
    np.testing.assert_array_equal(data.factors(np.arange(6))[:, 0], expected)
    np.testing.assert_array_equal(data.factors(np.arange(6))[:, 1], np.arange(6))
    np.testing.assert_array_equal(data.labelled_rows(), np.flatnonzero(~np.isnan(expected)))
    np.testing.assert_array_equal(data.labelled_rows(["known"]), np.arange(6))


def test_a_data_set_without_unknown_values_is_as_before():
    data = from_arrays(IMAGES, {"x": ROWS})
    assert not data.partly_labelled
    assert data.factors([0]).dtype == np.int64
    np.testing.assert_array_equal(data.labelled_rows(), np.arange(6))


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({"x": np.array([0.5, np.inf, 2, 1, 0, 1])}, r"factors\['x'\], row 1 = inf: needs finite"),
        ({"x": np.array([np.nan, np.inf, 2, 1, 0, 1])}, r"factors\['x'\], row 1 = inf: needs finite"),
        ({"x": [None] * 6}, r"factors\['x'\] = 'no value': needs a value for at least one row"),
        ({"x": np.full(6, np.nan)}, r"factors\['x'\] = 'no value'"),
        ({"x": ["", " ", "", "", "", ""]}, r"factors\['x'\] = 'no value'"),
        ({"x": ["a", 1, "a", "a", "b", "a"]}, r"factors\['x'\] = 'values of type int, str': needs only"),
        ({"x": np.zeros(6, complex)}, r"factors\['x'\] = .*complex128"),
        ({"x": np.zeros(6, "M8[s]")}, r"factors\['x'\] = .*datetime64"),
        ({"x": np.zeros((6, 2))}, r"factors\['x'\] = .*\(6, 2\).*one value for each row"),
        ({"x": [1, 2]}, r"factors\['x'\] = '2 values': there are 6 images"),
        ({"x": 3}, r"factors\['x'\] = 'one value': there are 6 images"),
        (np.zeros((5, 2)), r"factors\['factor_0'\] = '5 values': there are 6 images"),
        (np.zeros((6, 2, 2)), r"factors = .*needs shape \(n,\) or \(n, K\)"),
        ({"": ROWS}, "names"),
    ],
)
def test_bad_factors_are_refused(factors, message):
    with pytest.raises(ArgumentError, match=message):
        from_arrays(IMAGES, factors)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factors": None, "names": ["x"]}, "names = .*no factors"),
        ({"factors": np.zeros((6, 2)), "names": ["x"]}, "names = .*2 names"),
        ({"factors": np.zeros((6, 1)), "names": "x"}, "names = 'x': needs a list"),
        ({"factors": np.zeros((6, 2)), "names": ["x", "x"]}, "names = .*must differ"),
        ({"factors": np.zeros((6, 2)), "categorical": ["shape"]}, "factor = 'shape'"),
    ],
)
def test_bad_names_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        from_arrays(IMAGES, **options)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.integers(-5, 5), st.sampled_from([2**40, -(2**40)])), min_size=1, max_size=30))
def test_value_names_give_back_the_column(values):
    data = from_arrays(np.zeros((len(values), 2)), {"x": values})
    texts = data.space.value_names["x"]
    indices = data.factors(np.arange(len(values)))[:, 0]
    assert [int(texts[i]) for i in indices] == values
    assert list(map(int, texts)) == sorted(set(values))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", "+3"], np.array([1, -2, 3])),
        (["1", "2.5", "1e3", ".5", "2."], np.array([1, 2.5, 1000, 0.5, 2])),
        (["1", "two"], np.array(["1", "two"])),
        (["1_000", "2"], np.array(["1_000", "2"])),
        (["9" * 30, "8" * 30], np.array(["9" * 30, "8" * 30])),
    ],
)
def test_cells_of_text_are_parsed(cells, expected):
    found = parse_cells(cells)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
