import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unweave.data import FactorSpace
from unweave.errors import ArgumentError

SPACE = FactorSpace(["shape", "scale", "x"], [3, 2, 4], categorical=["shape"])
MIXED = FactorSpace(["kind", "angle"], [3, (-1.0, 2.0)])


def test_rows_number_the_grid_like_nested_loops():
    every = np.array(list(itertools.product(range(3), range(2), range(4))))
    np.testing.assert_array_equal(SPACE.factors(np.arange(24)), every)
    np.testing.assert_array_equal(SPACE.rows(every), np.arange(24))


@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.data())
def test_rows_and_factors_are_inverse(sizes, data):
    space = FactorSpace([f"f{i}" for i in range(len(sizes))], sizes)
    rows = np.array(data.draw(st.lists(st.integers(0, len(space) - 1), max_size=20)), dtype=np.int64)
    np.testing.assert_array_equal(space.rows(space.factors(rows)), rows)


def test_a_space_knows_its_factors():
    assert len(SPACE) == 24
    assert SPACE.num_factors == 3
    assert SPACE.position("x") == 2
    assert SPACE.size("scale") == 2
    assert not SPACE.is_ordered("shape")
    assert SPACE.is_ordered("x")
    assert SPACE.discrete
    assert SPACE.empty(2).dtype == np.int64
    assert MIXED.empty(2).dtype == np.float64
    assert not FactorSpace([], [])
    assert len(FactorSpace([], [])) == 1
    assert FactorSpace([], []).factors([0, 0]).shape == (2, 0)
    assert FactorSpace([], []).rows(np.empty((2, 0), int)).tolist() == [0, 0]


def test_sampling_is_uniform_over_all_combinations():
    drawn = SPACE.rows(SPACE.sample(48_000, np.random.default_rng(0)))
    counts = np.bincount(drawn, minlength=24)
    chi_square = ((counts - 2000) ** 2 / 2000).sum()
    assert chi_square < 49.7  # 0.1 % quantile of chi-square with 23 degrees of freedom


def test_sampling_with_some_factors_fixed():
    rng = np.random.default_rng(0)
    x = np.array([0, 1, 2, 3, 3])
    drawn = SPACE.sample(5, rng, {"shape": 2, "x": x})
    assert (drawn[:, 0] == 2).all()
    np.testing.assert_array_equal(drawn[:, 2], x)
    free = SPACE.sample(1000, rng, {"shape": 1, "x": 0})[:, 1]
    assert set(free) == {0, 1}


def test_a_randomstate_gives_one_draw_per_factor_in_order():
    drawn = SPACE.sample(6, np.random.RandomState(5))
    reference = np.random.RandomState(5)
    expected = np.stack([reference.randint(size, size=6) for size in (3, 2, 4)], axis=1)
    np.testing.assert_array_equal(drawn, expected)


def test_continuous_factors_are_uniform_in_their_interval():
    drawn = MIXED.sample(20_000, np.random.default_rng(0))
    assert drawn.dtype == np.float64
    assert set(drawn[:, 0]) == {0.0, 1.0, 2.0}
    assert drawn[:, 1].min() >= -1
    assert drawn[:, 1].max() <= 2
    assert abs(drawn[:, 1].mean() - 0.5) < 0.02
    assert abs(drawn[:, 1].var() - 9 / 12) < 0.02


def test_continuous_factors_have_no_rows():
    assert MIXED.continuous == ("angle",)
    for refused in (lambda: len(MIXED), lambda: MIXED.rows([[0, 0.5]]), lambda: MIXED.factors([0])):
        with pytest.raises(ArgumentError, match=r"continuous factors have no grid"):
            refused()
    with pytest.raises(ArgumentError, match="is continuous"):
        MIXED.size("angle")


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([[0, 0]], r"needs shape \(n, 3\)"),
        ([0, 0, 0], r"needs shape \(n, 3\)"),
        ([[0, 0, 4]], r"factor 'x' = 4: needs 0 <= value <= 3"),
        ([[-1, 0, 0]], r"factor 'shape' = -1"),
        ([[0.5, 0, 0]], r"factor 'shape' = 0.5: is discrete"),
        ([[np.nan, 0, 0]], "needs finite values"),
        ([["a", "b", "c"]], "needs integers or floats"),
    ],
)
def test_wrong_factors_are_refused_by_name(factors, message):
    with pytest.raises(ArgumentError, match=message):
        SPACE.rows(factors)


@pytest.mark.parametrize("rows", [[24], [-1], [[0]], [0.5], 3])
def test_wrong_rows_are_refused(rows):
    with pytest.raises(ArgumentError, match="rows"):
        SPACE.factors(rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a", "a"], [2, 2]), "must differ"),
        ((["a", ""], [2, 2]), "list of factor names"),
        (("ab", [2, 2]), "list of factor names"),
        ((["a"], [2, 3]), "one entry for each"),
        ((["a"], [0]), "at least one value"),
        ((["a"], [True]), "whole number"),
        ((["a"], [2.5]), "whole number"),
        ((["a"], [(1.0, 1.0)]), "low < high"),
        ((["a"], [(0.0, np.inf)]), "low < high"),
        ((["a"], [2], ["b"]), "factor = 'b'"),
        ((["a"], [(0, 1)], ["a"]), "cannot be categorical"),
        ((["a"], [2], [], {"a": ["x"]}), "has 2 values"),
    ],
)
def test_wrong_spaces_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        FactorSpace(*arguments)


def test_wrong_fixed_values_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ArgumentError, match=r"did you mean 'scale'"):
        SPACE.sample(2, rng, {"scal": 0})
    with pytest.raises(ArgumentError, match=r"needs 0 <= value <= 1"):
        SPACE.sample(2, rng, {"scale": 2})
    with pytest.raises(ArgumentError, match="2 numbers"):
        SPACE.sample(2, rng, {"scale": [0, 1, 0]})
    with pytest.raises(ArgumentError, match="n = -1"):
        SPACE.sample(-1, rng)
