"""IRS: closed forms and degenerate input."""

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.interventions.irs import irs
from unweave.metrics.sample import check_sample

FACTORS = np.indices((3, 5)).reshape(2, -1).T


def test_perfect_codes_score_one():
    score = irs.compute(check_sample(FACTORS, FACTORS))
    assert score.value == pytest.approx(1)
    np.testing.assert_array_equal(score.details["parents"], [0, 1])
    np.testing.assert_allclose(score.details["max_deviations"], [1, 2])


def test_a_sum_of_factors():
    # z = u + v, u in {0, 1, 2}, v in {0, .., 4}: z - mean is at most 3; given u it deviates by at most 2.
    score = irs.compute(check_sample(FACTORS.sum(axis=1), FACTORS), diff_quantile=1.0)
    np.testing.assert_allclose(score.details["matrix"], [[1 - 2 / 3, 1 - 1 / 3]])


def test_factors_are_binned():
    factors = np.arange(40)[:, None]
    assert irs.compute(check_sample(factors, factors)).value < 1
    assert irs.compute(check_sample(factors, factors), num_bins=40).value == pytest.approx(1)


def test_constant_codes_do_not_count():
    score = irs.compute(check_sample(np.hstack([FACTORS, np.full((15, 1), 0.1)]), FACTORS))
    assert score.value == pytest.approx(1)
    np.testing.assert_array_equal(score.details["active"], [True, True, False])
    np.testing.assert_array_equal(score.details["matrix"][2], 0)
    assert irs.compute(check_sample(np.full((15, 2), 0.1), FACTORS)).value == 0


def test_one_point_per_value_is_perfectly_robust():
    assert irs.compute(check_sample([[0.3], [0.1], [0.8]], [[0], [1], [2]])).value == pytest.approx(1)


def test_refuses():
    with pytest.raises(ArgumentError, match="diff_quantile"):
        irs.compute(check_sample(FACTORS, FACTORS), diff_quantile=0)
    with pytest.raises(ArgumentError, match="at least 2 points"):
        irs.compute(check_sample([[0.0]], [[1]]))
