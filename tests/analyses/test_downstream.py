import numpy as np
import pandas as pd
import pytest

from unweave.analyses.downstream import efficiency, with_downstream
from unweave.study import NotInStudyError


def test_tasks_are_correlated_with_metrics(make_table):
    signs = {
        "mig": 1,
        "downstream_logistic.10": 1,
        "downstream_gbt.efficiency": -1,
        "downstream_gbt.10000": 1,
    }
    found = with_downstream(make_table(lambda d, h, s, m: signs[m] * (10 * h + s), metrics=tuple(signs)))
    assert found["row"].unique().tolist() == ["mig"]
    assert found["column"].tolist() == [
        "downstream_logistic.10",
        "downstream_gbt.10000",
        "downstream_gbt.efficiency",
    ]
    np.testing.assert_allclose(found["value"], [1, 1, -1])


def test_a_run_without_efficiency_is_left_out(make_table):
    table = make_table(lambda d, h, s, m: np.nan if s == 0 else h, metrics=("downstream_gbt.efficiency",))
    runs, metrics = efficiency(pd.concat([make_table(lambda d, h, s, m: h), table]), "downstream_gbt")
    assert metrics == ["mig"]
    assert runs["seed"].unique().tolist() == [1]
    assert runs["efficiency"].tolist() == runs["mig"].tolist()


def test_a_study_without_downstream_tasks_is_refused(make_table):
    table = make_table(lambda d, h, s, m: h)
    with pytest.raises(NotInStudyError, match="none of the metrics downstream_logistic"):
        with_downstream(table)
    nothing = make_table(lambda d, h, s, m: np.nan, metrics=("downstream_gbt.efficiency",))
    with pytest.raises(NotInStudyError, match="100 and 10,000"):
        efficiency(pd.concat([table, nothing]), "downstream_gbt")
