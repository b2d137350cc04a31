import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy

from unweave.metrics.predictors.dci import (
    completeness,
    completeness_per_factor,
    disentanglement,
    disentanglement_per_code,
)


def test_a_diagonal_is_perfect_and_empty_codes_do_not_count():
    matrix = np.vstack([np.diag([1.0, 2.0, 3.0]), np.zeros((2, 3))])
    assert disentanglement(matrix) == pytest.approx(1)
    assert completeness(matrix) == pytest.approx(1)


def test_redundant_codes_lower_completeness_only():
    matrix = np.vstack([np.eye(5), np.eye(5)])
    assert disentanglement(matrix) == pytest.approx(1)
    assert completeness(matrix) == pytest.approx(1 - np.log(2) / np.log(10))


def test_codes_that_serve_two_factors():
    matrix = np.hstack([np.eye(5), np.eye(5)])
    assert disentanglement(matrix) == pytest.approx(1 - np.log(2) / np.log(10))
    assert completeness(matrix) == pytest.approx(1)


def test_uniform_and_zero_importances():
    for matrix in (np.ones((4, 3)), np.zeros((4, 3))):
        assert disentanglement(matrix) == pytest.approx(0)
        assert completeness(matrix) == pytest.approx(0)


def test_a_single_factor_or_code():
    assert disentanglement(np.ones((3, 1))) == 1
    assert completeness(np.ones((1, 3))) == 1


@given(arrays(float, (5, 3), elements=st.floats(0, 10)))
def test_entropies_are_those_of_scipy(matrix):
    np.testing.assert_allclose(
        disentanglement_per_code(matrix), 1 - entropy(matrix.T + 1e-11, base=3), atol=1e-9
    )
    np.testing.assert_allclose(
        completeness_per_factor(matrix), 1 - entropy(matrix + 1e-11, base=5), atol=1e-9
    )
    assert -1e-9 <= disentanglement(matrix) <= 1 + 1e-9


@given(arrays(float, (4, 3), elements=st.floats(0.01, 10)), st.permutations(range(4)), st.floats(0.1, 10))
def test_order_and_scale_do_not_matter(matrix, order, scale):
    other = scale * matrix[order]
    assert disentanglement(other) == pytest.approx(disentanglement(matrix), abs=1e-8)
    assert completeness(other) == pytest.approx(completeness(matrix), abs=1e-8)
