import numpy as np
import pytest

from unweave.analyses.agreement import metric_correlations
from unweave.study import NotInStudyError


def test_metrics_that_rank_alike_correlate_by_1_and_opposite_ones_by_minus_1(make_table):
    signs = {"mig": 1, "dci": 3, "sap": -1}
    table = make_table(lambda d, h, s, m: signs[m] * (10 * h + s), ("a", "b"), 3, 4, tuple(signs))
    found = metric_correlations(table)
    assert found["data"].unique().tolist() == ["a", "b"]
    assert found["row"].unique().tolist() == ["mig", "dci", "sap"]  # the paper's order
    expected = np.sign(found["row"].map(signs) * found["column"].map(signs))
    np.testing.assert_allclose(found["value"], expected)
    with pytest.raises(NotInStudyError, match="at least 2"):
        metric_correlations(table[table["metric"] == "mig"])
