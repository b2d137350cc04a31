"""Mean mutual information of codes in closed form."""

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.sample import check_sample
from unweave.metrics.unlabelled.code_mutual_information import code_mutual_information

CODES = np.indices((2, 8)).reshape(2, -1).T
NO_FACTORS = np.zeros(16, dtype=int)


def test_closed_forms():
    assert code_mutual_information.compute(check_sample(CODES, NO_FACTORS)).value == pytest.approx(
        0, abs=1e-12
    )
    one_pair_of_three = check_sample(np.hstack([CODES, CODES[:, 1:]]), NO_FACTORS)
    score = code_mutual_information.compute(one_pair_of_three)
    assert score.value == pytest.approx(np.log(8) / 3)
    np.testing.assert_allclose(np.diag(score.details["code_matrix"]), np.log([2, 8, 8]))


def test_degenerate():
    assert code_mutual_information.compute(check_sample(CODES[:, 1:], NO_FACTORS)).value == 0
    assert code_mutual_information.compute(check_sample(np.ones((16, 3)), NO_FACTORS)).value == 0
    with pytest.raises(ArgumentError, match="at least 2 points"):
        code_mutual_information.compute(check_sample([[0.0]], [[1]]))
