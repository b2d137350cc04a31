"""JEMMIG in closed form."""

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.information.jemmig import jemmig
from unweave.metrics.sample import check_sample

FACTORS = np.indices((2, 8)).reshape(2, -1).T


def test_perfect_codes_score_one():
    assert jemmig.compute(check_sample(FACTORS, FACTORS)).value == pytest.approx(1)


def test_a_code_that_tells_more_is_punished():
    score = jemmig.compute(check_sample(FACTORS @ [8, 1], FACTORS))
    expected = [1 - (np.log(16) - np.log(size)) / (np.log(size) + np.log(20)) for size in (2, 8)]
    np.testing.assert_allclose(score.details["per_factor"], expected)
    assert score.value == pytest.approx(np.mean(expected))


def test_of_equal_codes_the_simplest_is_taken():
    both = np.stack([FACTORS @ [8, 1], FACTORS[:, 0]], axis=1)
    score = jemmig.compute(check_sample(both, FACTORS[:, 0]))
    np.testing.assert_array_equal(score.details["best"], [1])
    assert score.value == pytest.approx(1 - np.log(2) / np.log(40))


def test_degenerate():
    constant = jemmig.compute(check_sample(np.ones((16, 2)), FACTORS[:, 0]))
    assert constant.value == pytest.approx(1 - np.log(2) / np.log(40))
    with_constant = check_sample(FACTORS, np.hstack([FACTORS, np.zeros((16, 1), dtype=int)]))
    score = jemmig.compute(with_constant)
    assert score.value == pytest.approx(1)
    np.testing.assert_array_equal(score.details["excluded"], [2])
    with pytest.raises(ArgumentError, match="num_bins"):
        jemmig.compute(with_constant, num_bins=1)
    with pytest.raises(ArgumentError, match="at least 2 points"):
        jemmig.compute(check_sample([[0.0]], [[1]]))
