from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unweave.study.grid import GridError, expand

VALUES = st.lists(st.integers() | st.text(max_size=3) | st.none() | st.booleans(), min_size=1, max_size=4)


def axes(prefix="", most=3):
    return st.lists(VALUES, min_size=1, max_size=most).map(
        lambda lists: {f"{prefix}{i}": values for i, values in enumerate(lists)}
    )


GRIDS = st.recursive(
    axes(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.builds(lambda parts: {"chain": parts}, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=5,
)


def named(grid, prefix):
    """The same grid with other axes."""
    if isinstance(grid, list):
        return [named(part, prefix) for part in grid]
    return {
        key if key == "chain" else prefix + key: named(part, prefix) if key == "chain" else part
        for key, part in grid.items()
    }


@given(axes())
def test_axes_are_all_combinations_the_last_fastest(grid):
    points = expand(grid)
    assert len(points) == prod(len(values) for values in grid.values())
    for i, point in enumerate(points):
        assert list(point) == list(grid)
        for name in reversed(grid):  # the digits of i, the last axis being the lowest
            i, digit = divmod(i, len(grid[name]))
            assert point[name] is grid[name][digit]


@given(GRIDS, GRIDS)
def test_the_size_of_a_product_is_the_product_of_sizes(first, second):
    first, second = named(first, "a"), named(second, "b")
    points = expand({"product": [first, second]})
    one, two = expand(first), expand(second)
    assert len(points) == len(one) * len(two)
    assert points == [{**a, **b} for a in one for b in two]


@given(st.lists(GRIDS, min_size=1, max_size=4))
def test_a_chain_is_one_after_the_other_and_a_list_is_a_chain(grids):
    points = expand({"chain": grids})
    assert len(points) == sum(len(expand(grid)) for grid in grids)
    assert points == expand(grids) == [point for grid in grids for point in expand(grid)]


@given(GRIDS, GRIDS)
def test_zip_pairs_grids_of_one_length_and_refuses_others(first, second):
    first, second = named(first, "a"), named(second, "b")
    one, two = expand(first), expand(second)
    if len(one) == len(two):
        assert expand({"zip": [first, second]}) == [{**a, **b} for a, b in zip(one, two, strict=True)]
    else:
        with pytest.raises(GridError, match="zip needs grids of one length"):
            expand({"zip": [first, second]})


@given(GRIDS)
def test_a_product_or_a_zip_of_one_changes_nothing(grid):
    assert expand({"product": [grid]}) == expand({"zip": [grid]}) == expand(grid)


@given(st.integers(1, 20), st.integers(-5, 5))
def test_ranges(n, start):
    assert [point["s"] for point in expand({"s": {"range": n}})] == list(range(n))
    assert len(expand({"s": {"range": [start, start + n]}})) == n
    assert [point["s"] for point in expand({"s": {"range": [start, start + 2 * n, 2]}})] == [
        start + 2 * i for i in range(n)
    ]


def test_zip_of_named_axes():
    points = expand({"zip": {"lambda_od": [1, 2], "lambda_d": [10, 20]}})
    assert points == [{"lambda_od": 1, "lambda_d": 10}, {"lambda_od": 2, "lambda_d": 20}]


def test_a_mapping_is_a_value():
    assert expand({"capacity": {"c_max": 5}}) == [{"capacity": {"c_max": 5}}]
    assert expand({"capacity": [None, {"c_max": 5}]})[1] == {"capacity": {"c_max": 5}}


@pytest.mark.parametrize(
    ("grid", "path", "told"),
    [
        (5, (), "a grid is a mapping"),
        ({}, (), "a grid is a mapping"),
        ([], (), "a grid is a mapping"),
        ([{"a": 1}, "b"], (1,), "a grid is a mapping"),
        ({"product": [{"a": 1}, []]}, ("product", 1), "a grid is a mapping"),
        ({"product": []}, ("product",), "needs a list of grids"),
        ({"chain": {"a": 1}}, ("chain",), "needs a list of grids"),
        ({"product": [{"a": 1}], "b": 2}, (), "product stands alone"),
        ({"zip": [{"a": 1}], "chain": [{"b": 1}]}, (), "stands alone"),
        (
            {"product": [{"a": 1}, {"chain": [{"a": []}]}]},
            ("product", 1, "chain", 0, "a"),
            "at least one value",
        ),
        ({"a": {"range": 0}}, ("a",), "at least one value"),
        ({"a": {"range": "x"}}, ("a",), "one to three whole numbers"),
        ({"a": {"range": [1, 2, 3, 4]}}, ("a",), "one to three whole numbers"),
        ({"a": {"range": True}}, ("a",), "one to three whole numbers"),
        ({"a": {"range": [0, 5, 0]}}, ("a",), "must not be zero"),
        ({"zip": {"a": [1, 2], "b": [1]}}, ("zip",), r"these have \[2, 1\]"),
        ({"product": [{"a": 1}, {"b": 1, "a": 2}]}, ("product",), "'a' is set by two of its parts"),
    ],
)
def test_a_grid_at_fault_says_where(grid, path, told):
    with pytest.raises(GridError, match=told) as caught:
        expand(grid)
    assert caught.value.path == path
