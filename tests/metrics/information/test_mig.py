"""MIG: closed forms and degenerate input."""

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.information.mig import mig
from unweave.metrics.sample import check_sample


def grid(*sizes):
    """Every combination of factors once."""
    return np.indices(sizes).reshape(len(sizes), -1).T


def test_one_code_per_factor_scores_one():
    factors = grid(3, 4, 5)
    score = mig.compute(check_sample(factors * [1.0, -2.0, 0.1], factors))
    assert score.value == pytest.approx(1)
    np.testing.assert_allclose(score.details["matrix"], np.diag(np.log([3, 4, 5])), atol=1e-12)
    assert score.params == {"num_bins": 20, "denominator": "factor", "rule": "histogram"}
    assert float(score) == score.value


def test_duplicated_codes_score_zero():
    factors = grid(3, 4)
    assert mig.compute(check_sample(np.hstack([factors, factors]), factors)).value == pytest.approx(0)


def test_more_values_than_bins_scores_below_one():
    factors = np.arange(40)[:, None]
    assert mig.compute(check_sample(factors, factors)).value == pytest.approx(np.log(20) / np.log(40))
    assert mig.compute(check_sample(factors, factors), num_bins=40).value == pytest.approx(1)


def test_one_code_has_no_rival():
    factors = grid(4, 3)
    score = mig.compute(check_sample(factors[:, :1], factors))
    np.testing.assert_allclose(score.details["per_factor"], [1, 0], atol=1e-12)


def test_constant_codes_score_zero():
    factors = grid(4, 3)
    assert mig.compute(check_sample(np.ones((12, 3)), factors)).value == 0


def test_factor_with_one_value_is_left_out():
    factors = grid(4, 1, 3)
    score = mig.compute(check_sample(factors, factors))
    assert score.value == pytest.approx(1)
    np.testing.assert_array_equal(score.details["excluded"], [1])
    np.testing.assert_array_equal(np.isnan(score.details["per_factor"]), [False, True, False])


def test_fewer_points_than_values():
    factors = np.array([[90], [3], [17]])
    assert mig.compute(check_sample([[0.0], [1.0], [5.0]], factors)).value == pytest.approx(1)


def test_refuses():
    with pytest.raises(ArgumentError, match="at least 2 points"):
        mig.compute(check_sample([[0.0]], [[1]]))
    with pytest.raises(ArgumentError, match="needs a factor that varies"):
        mig.compute(check_sample([[0.0], [1.0]], [[1], [1]]))
