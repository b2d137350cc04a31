"""MIG-sup: both denominators in closed form."""

import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.information.mig_sup import mig_sup
from unweave.metrics.sample import check_sample

FACTORS = np.indices((2, 8)).reshape(2, -1).T


def test_perfect_codes():
    for denominator in ("factor", "code"):
        assert mig_sup.compute(
            check_sample(FACTORS, FACTORS), denominator=denominator
        ).value == pytest.approx(1)


def test_a_code_of_two_factors():
    sample = check_sample(FACTORS @ [8, 1], FACTORS)
    by_factor = mig_sup.compute(sample, denominator="factor")
    assert by_factor.value == pytest.approx(0, abs=1e-12)
    by_code = mig_sup.compute(sample, denominator="code")
    np.testing.assert_allclose(by_code.details["matrix"], [[0.25, 0.75]], atol=1e-12)
    assert by_code.value == pytest.approx(0.5)
    assert by_factor.params["rule"] == "histogram"
    assert by_code.params["rule"] == "min_max"


def test_degenerate():
    half = check_sample(np.hstack([FACTORS, np.ones((16, 2))]), FACTORS)
    for denominator in ("factor", "code"):
        assert mig_sup.compute(half, denominator=denominator).value == pytest.approx(0.5)
    with_constant = check_sample(FACTORS, np.hstack([FACTORS, np.zeros((16, 1), dtype=int)]))
    score = mig_sup.compute(with_constant, denominator="factor")
    assert score.value == pytest.approx(1)
    np.testing.assert_array_equal(score.details["excluded"], [2])
    assert mig_sup.compute(check_sample(FACTORS, FACTORS[:, 0])).value == pytest.approx(0.5)
    with pytest.raises(ArgumentError, match="known: code, factor"):
        mig_sup.compute(half, denominator="none")
    with pytest.raises(ArgumentError, match="at least 2 points"):
        mig_sup.compute(check_sample([[0.0]], [[1]]))
