"""Entropies and mutual information against closed forms and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mutual_info_score

from unweave.errors import ArgumentError
from unweave.metrics.information import mutual_information
from unweave.metrics.information.mutual_information import (
    entropy,
    gap_of_two_largest,
    joint_entropy_matrix,
    mutual_information_matrix,
    varying_factors,
)
from unweave.metrics.sample import check_sample


def by_sklearn(first, second):
    return np.array([[mutual_info_score(b, a) for b in second.T] for a in first.T])


def test_fair_bits():
    bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    np.testing.assert_allclose(mutual_information_matrix(bits, bits), np.log(2) * np.eye(2), atol=1e-15)
    np.testing.assert_allclose(entropy(bits), np.log([2, 2]))
    np.testing.assert_allclose(joint_entropy_matrix(bits, bits), np.log([[2, 4], [4, 2]]))


def test_entropy_of_three_equal_values():
    assert entropy(np.array([[4], [7], [9]]))[0] == pytest.approx(np.log(3))


@settings(deadline=None, max_examples=50)
@given(
    st.integers(1, 50).flatmap(
        lambda n: st.tuples(
            arrays(np.int64, (n, 3), elements=st.integers(0, 6)),
            arrays(np.int64, (n, 2), elements=st.integers(-3, 100_000)),
        )
    )
)
def test_any_integers(columns):
    first, second = columns
    np.testing.assert_allclose(
        mutual_information_matrix(first, second), by_sklearn(first, second), atol=1e-12
    )


def test_many_columns_are_taken_in_turns(monkeypatch):
    generator = np.random.default_rng(0)
    first, second = generator.integers(0, 20, (300, 9)), generator.integers(0, 5, (300, 4))
    whole = mutual_information_matrix(first, second)
    monkeypatch.setattr(mutual_information, "INDICES_AT_ONCE", 2500)
    np.testing.assert_array_equal(mutual_information_matrix(first, second), whole)


def test_constant_columns_have_exactly_no_information():
    generator = np.random.default_rng(0)
    for rows in (3, 7, 1000, 9999):
        noise = generator.integers(0, 9, (rows, 2))
        constant = np.full((rows, 1), 5)
        assert entropy(constant)[0] == 0
        assert (mutual_information_matrix(noise, constant) == 0).all()
        assert (mutual_information_matrix(constant, noise) == 0).all()


def test_gap():
    matrix = np.array([[3.0, 1.0], [5.0, 1.0], [4.0, 2.0]])
    np.testing.assert_array_equal(gap_of_two_largest(matrix, axis=0), [1, 1])
    np.testing.assert_array_equal(gap_of_two_largest(matrix, axis=1), [2, 4, 2])
    np.testing.assert_array_equal(gap_of_two_largest(matrix[:1], axis=0), [3, 1])


def test_varying_factors():
    sample = check_sample(np.zeros((3, 1)), [[0, 1], [0, 2], [0, 1]])
    np.testing.assert_array_equal(varying_factors(sample), [False, True])
    with pytest.raises(ArgumentError, match="at least 2 points"):
        varying_factors(check_sample([[1.0]], [[1]]))
    with pytest.raises(ArgumentError, match="needs a factor that varies"):
        varying_factors(check_sample([[1.0], [2.0]], [[1], [1]]))
