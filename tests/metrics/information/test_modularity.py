"""Modularity: the published formula cases, and its oddities."""

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.information.modularity import modularity, modularity_per_code
from unweave.metrics.sample import check_sample


def test_formula():
    np.testing.assert_allclose(modularity_per_code(np.diag([1.0, 2.0, 3.0])), 1)
    np.testing.assert_array_equal(modularity_per_code(np.zeros((4, 3))), 0)
    assert modularity_per_code(np.array([[1.0, 0], [0, 1], [0, 0]])).mean() == pytest.approx(2 / 3)
    two_of_ten = np.repeat(np.eye(5), 2, axis=1)
    np.testing.assert_allclose(modularity_per_code(two_of_ten), 1 - 1 / 9)


def test_pure_noise_scores_high():
    generator = np.random.default_rng(0)
    factors = generator.integers(0, [5, 10, 9, 18, 6], (10_000, 5))
    score = modularity.compute(check_sample(generator.normal(size=(10_000, 8)), factors))
    assert score.value == pytest.approx(0.82, abs=0.03)


def test_degenerate():
    factors = np.indices((3, 4)).reshape(2, -1).T
    half = modularity.compute(check_sample(np.hstack([factors, np.ones((12, 2))]), factors))
    assert half.value == pytest.approx(0.5)
    np.testing.assert_allclose(half.details["per_code"], [1, 1, 0, 0])
    alone = modularity.compute(check_sample(np.hstack([factors[:, :1], np.ones((12, 1))]), factors[:, 0]))
    np.testing.assert_array_equal(alone.details["per_code"], [1, 0])
    with pytest.raises(ArgumentError, match="needs a factor that varies"):
        modularity.compute(check_sample(factors, np.zeros(12, dtype=int)))
    with pytest.raises(ArgumentError, match="at least 2 points"):
        modularity.compute(check_sample([[0.0]], [[1]]))
