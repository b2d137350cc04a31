"""Binning agrees with numpy.histogram and numpy.digitize to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import minmax_scale

from unweave.errors import ArgumentError
from unweave.metrics.information.discretise import discretise


def by_numpy(codes, num_bins):
    columns = [np.digitize(c, np.histogram(c, num_bins)[1][:-1]) - 1 for c in codes.T]
    return np.stack(columns, axis=1)


@settings(deadline=None, max_examples=100)
@given(
    arrays(
        np.float64, st.tuples(st.integers(1, 40), st.integers(1, 4)), elements=st.floats(-1e6, 1e6, width=32)
    ),
    st.integers(1, 25),
)
def test_any_codes(codes, num_bins):
    try:
        expected = by_numpy(codes, num_bins)
    except ValueError:  # numpy refuses ranges that are too narrow for so many bins
        assert (discretise(codes, num_bins) < num_bins).all()
        return
    np.testing.assert_array_equal(discretise(codes, num_bins), expected)


@pytest.mark.parametrize("values", [3, 5, 6, 11, 21, 41])
@pytest.mark.parametrize("scale", [1.0, 0.1, -3.3, 1e-5])
def test_codes_on_bin_edges(values, scale):
    codes = np.random.default_rng(0).integers(0, values, (500, 3)) * scale + np.array([0, 0.3, -7])
    np.testing.assert_array_equal(discretise(codes), by_numpy(codes, 20))
    scaled = np.digitize(minmax_scale(codes), np.linspace(0, 1, 21)[:-1]) - 1
    np.testing.assert_array_equal(discretise(codes, rule="min_max"), scaled)


def test_constant_codes_fill_one_bin():
    codes = np.full((7, 2), [2.5, 0.0])
    np.testing.assert_array_equal(discretise(codes), np.full((7, 2), 10))
    np.testing.assert_array_equal(discretise(codes, 3), np.full((7, 2), 1))
    np.testing.assert_array_equal(discretise(codes, rule="min_max"), np.zeros((7, 2)))
    assert len(np.unique(discretise(np.full((5, 1), 1e20)))) == 1


def test_range_of_one_rounding_step():
    codes = np.array([[1.0], [np.nextafter(1, 2)]])
    assert (discretise(codes) >= 0).all()
    assert (discretise(codes) < 20).all()


def test_refuses():
    with pytest.raises(ArgumentError, match="num_bins = 0"):
        discretise(np.zeros((3, 1)), 0)
    with pytest.raises(ArgumentError, match="did you mean 'histogram'"):
        discretise(np.zeros((3, 1)), rule="histogramm")
