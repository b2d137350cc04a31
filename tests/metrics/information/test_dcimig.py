"""DCIMIG in closed form."""

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.information.dcimig import dcimig
from unweave.metrics.sample import check_sample

FACTORS = np.indices((2, 8)).reshape(2, -1).T


def test_perfect_and_duplicated_codes_score_one():
    assert dcimig.compute(check_sample(FACTORS, FACTORS)).value == pytest.approx(1)
    assert dcimig.compute(check_sample(np.hstack([FACTORS, FACTORS]), FACTORS)).value == pytest.approx(1)


def test_a_factor_that_no_code_chose_adds_nothing():
    score = dcimig.compute(check_sample(FACTORS[:, 1:], FACTORS))
    assert score.value == pytest.approx(np.log(8) / np.log(16))
    np.testing.assert_array_equal(score.details["chosen"], [1])
    mixed = dcimig.compute(check_sample(FACTORS @ [8, 1], FACTORS))
    assert mixed.value == pytest.approx((np.log(8) - np.log(2)) / np.log(16))


def test_degenerate():
    assert dcimig.compute(check_sample(np.ones((16, 2)), FACTORS)).value == 0
    with_constant = check_sample(FACTORS, np.hstack([FACTORS, np.zeros((16, 1), dtype=int)]))
    assert dcimig.compute(with_constant).value == pytest.approx(1)
    assert dcimig.compute(check_sample(FACTORS, FACTORS[:, 0])).value == pytest.approx(1)
    with pytest.raises(ArgumentError, match="at least 2 points"):
        dcimig.compute(check_sample([[0.0]], [[1]]))
