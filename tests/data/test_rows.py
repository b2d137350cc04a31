import numpy as np
import pytest

from unweave.data import FactorSpace
from unweave.data.rows import Grid, Table
from unweave.errors import ArgumentError

SPACE = FactorSpace(["object", "view"], [4, 3])
# object 3 has no view 0; object 0 is shown twice in view 1
FACTORS = np.array([[0, 0], [0, 1], [0, 1], [1, 0], [1, 2], [2, 2], [3, 1], [3, 2]])
TABLE = Table(SPACE, FACTORS)


def test_grid_agrees_with_its_space():
    grid = Grid(SPACE)
    rows = grid.sample(500, np.random.default_rng(0), {"view": 2})
    assert len(grid) == 12
    assert (grid.factors(rows)[:, 1] == 2).all()
    assert set(grid.factors(rows)[:, 0]) == {0, 1, 2, 3}


def test_table_gives_back_its_factors():
    np.testing.assert_array_equal(TABLE.factors([6, 0]), FACTORS[[6, 0]])
    unique = [0, 3, 4, 5, 6, 7]
    np.testing.assert_array_equal(TABLE.rows(FACTORS[unique], np.random.default_rng(0)), unique)


def test_table_chooses_uniformly_among_rows_with_the_same_factors():
    assert TABLE.ambiguous
    chosen = TABLE.rows(np.tile([0, 1], (10_000, 1)), np.random.default_rng(0))
    assert set(chosen) == {1, 2}
    assert abs((chosen == 1).mean() - 0.5) < 0.02
    with pytest.raises(ArgumentError, match="pass a random source"):
        TABLE.rows([[0, 1]])


def test_table_without_repeats_needs_no_random_source():
    table = Table(SPACE, FACTORS[[0, 3, 6]])
    assert not table.ambiguous
    np.testing.assert_array_equal(table.rows([[3, 1], [0, 0]]), [2, 0])


def test_table_refuses_what_it_does_not_hold():
    with pytest.raises(ArgumentError, match=r"\{'object': 3, 'view': 0\}: the data set has no image"):
        TABLE.rows([[0, 0], [3, 0]], np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="no image"):
        Table(SPACE, FACTORS[:4]).rows([[3, 2]], np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="no image"):
        Table(SPACE, np.empty((0, 2), int)).rows([[3, 2]])


def test_sampling_a_table_is_uniform_over_its_rows():
    counts = np.bincount(TABLE.sample(16_000, np.random.default_rng(0)), minlength=8)
    assert ((counts - 2000) ** 2 / 2000).sum() < 24.3  # 0.1 % quantile, 7 degrees of freedom


def test_sampling_a_table_with_fixed_factors():
    rng = np.random.default_rng(0)
    assert set(TABLE.sample(500, rng, {"view": 2})) == {4, 5, 7}
    objects = np.tile([0, 3], 250)
    rows = TABLE.sample(500, rng, {"object": objects})
    np.testing.assert_array_equal(FACTORS[rows, 0], objects)
    assert set(rows[1::2]) == {6, 7}


def test_partners_share_the_named_factors():
    rng = np.random.default_rng(0)
    rows = TABLE.sample(2000, rng)
    partners = TABLE.partners(rows, ("object",), rng)
    np.testing.assert_array_equal(FACTORS[partners, 0], FACTORS[rows, 0])
    assert (FACTORS[partners, 1] != FACTORS[rows, 1]).any()
    assert set(TABLE.partners(rows, (), rng)) == set(range(8))


def test_many_binary_attributes_can_be_held_and_fixed():
    rng = np.random.default_rng(0)
    space = FactorSpace([f"a{i}" for i in range(70)], [2] * 70)
    values = rng.integers(0, 2, (50, 70))
    table = Table(space, values)
    rows = table.sample(200, rng, {"a3": 1, "a69": 0})
    assert (values[rows][:, [3, 69]] == [1, 0]).all()
    with pytest.raises(ArgumentError, match="too many combinations"):
        table.rows(values, rng)


def test_continuous_tables_are_read_by_row():
    table = Table(FactorSpace(["angle"], [(0.0, 1.0)]), [[0.25], [0.5]])
    np.testing.assert_array_equal(table.factors([1]), [[0.5]])
    assert set(table.sample(50, np.random.default_rng(0))) == {0, 1}
    with pytest.raises(ArgumentError, match="asked for by row"):
        table.rows([[0.25]])
    with pytest.raises(ArgumentError, match="continuous"):
        table.sample(2, np.random.default_rng(0), {"angle": 0.25})


def test_copies_are_equally_many_or_none():
    assert TABLE.copies is None
    table = Table(SPACE, np.repeat(FACTORS[[0, 3, 4]], 3, axis=0))
    assert table.copies == 3
    np.testing.assert_array_equal(table.copy([[1, 2], [0, 0]], np.array([2, 1])), [8, 1])


def test_a_nuisance_factor_is_drawn_as_the_reference_does():
    table = Table(SPACE, np.repeat(FACTORS[[0, 3, 4]], 5, axis=0))
    wanted = np.tile([[1, 0]], (40, 1))
    chosen = table.rows(wanted, np.random.RandomState(3))
    np.testing.assert_array_equal(chosen, 5 + np.random.RandomState(3).randint(5, size=40))


def test_what_training_draws_stays_the_same():
    table = Table(SPACE, np.repeat(FACTORS[[0, 3, 4]], 5, axis=0))
    chosen = table.rows(np.tile([[1, 0]], (40, 1)), np.random.default_rng(3))
    drawn = np.floor(5 * np.random.default_rng(3).random(40)).astype(int)
    np.testing.assert_array_equal(chosen, 5 + drawn)
