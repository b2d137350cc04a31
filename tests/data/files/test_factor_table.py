import numpy as np
import pytest

from unweave.data.factors import FactorSpace
from unweave.data.files.factor_table import check_grid, checked_factors, ranks
from unweave.errors import DataError

SPACE = FactorSpace(["shape", "x"], [2, 3])


def test_ranks_follow_the_values():
    values = np.array([[1.5, 30], [-2, 10], [1.5, 20]])
    assert ranks("a.h5", SPACE, values).tolist() == [[1, 2], [0, 0], [1, 1]]


def test_errors_name_the_file():
    with pytest.raises(DataError, match=r"a.h5: factor 'x' = 3"):
        checked_factors("a.h5", SPACE, [[0, 3]])
    with pytest.raises(DataError, match=r"a.h5: .*full grid"):
        check_grid("a.h5", SPACE, SPACE.factors(np.arange(6))[::-1])
    with pytest.raises(DataError, match=r"a.h5: factor 'x' has 2 values; expected 3"):
        ranks("a.h5", SPACE, np.array([[0.0, 1], [1, 2]]))
    with pytest.raises(DataError, match=r"a.h5: .*NaN"):
        ranks("a.h5", SPACE, np.array([[0.0, np.nan]]))
    check_grid("a.h5", SPACE, SPACE.factors(np.arange(6)))
