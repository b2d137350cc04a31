import numpy as np
import pandas as pd
import pytest

from unweave.analyses.downstream import (
    attribute_accuracy,
    downstream_correlations,
    statistical_efficiency,
)
from unweave.study import NotInStudyError
from unweave.study.results import as_table


def test_tasks_are_correlated_with_metrics(make_table):
    signs = {
        "mig": 1,
        "downstream_logistic.10": 1,
        "downstream_gbt.efficiency": -1,
        "downstream_gbt.10000": 1,
    }
    found = downstream_correlations(
        make_table(lambda d, h, s, m: signs[m] * (10 * h + s), metrics=tuple(signs))
    )
    assert found["row"].unique().tolist() == ["mig"]
    assert found["column"].tolist() == [
        "downstream_logistic.10",
        "downstream_gbt.10000",
        "downstream_gbt.efficiency",
    ]
    np.testing.assert_allclose(found["value"], [1, 1, -1])


def test_a_run_without_efficiency_is_left_out(make_table):
    table = make_table(lambda d, h, s, m: np.nan if s == 0 else h, metrics=("downstream_gbt.efficiency",))
    runs, metrics = statistical_efficiency(
        pd.concat([make_table(lambda d, h, s, m: h), table]), "downstream_gbt"
    )
    assert metrics == ["mig"]
    assert runs["seed"].unique().tolist() == [1]
    assert runs["efficiency"].tolist() == runs["mig"].tolist()


def test_a_study_without_downstream_tasks_is_refused(make_table):
    table = make_table(lambda d, h, s, m: h)
    with pytest.raises(NotInStudyError, match="none of the metrics downstream_logistic"):
        downstream_correlations(table)
    nothing = make_table(lambda d, h, s, m: np.nan, metrics=("downstream_gbt.efficiency",))
    with pytest.raises(NotInStudyError, match="100 and 10,000"):
        statistical_efficiency(pd.concat([table, nothing]), "downstream_gbt")


def accuracies(attribute, values):
    """Accuracies of one attribute: per method and strength one value per seed."""
    return as_table(
        [
            {
                "run": f"{method} {strength} {seed}", "data": "d", "method": method, "strength_name": "beta",
                "strength": strength, "seed": seed, "correlation": 0.0, "latent_size": 10, "steps": 1,
                "settings": "{}", "metric": f"attribute_classification.{attribute}", "representation": "mean",
                "protocol": "p", "value": value, "seconds": 0.0,
            }
            for (method, strength), column in values.items()
            for seed, value in enumerate(column)
        ]
    )  # fmt: skip


def test_attributes_that_differ_most_come_first():
    same = {("a", 1.0): [0.5, 0.7, 0.9], ("vae", np.nan): [0.7]}
    other = {("a", 1.0): [0.5, 0.6, 0.6], ("vae", np.nan): [0.8]}
    found = attribute_accuracy(pd.concat([accuracies("hat", same), accuracies("big_smile", other)]))
    assert found.columns.tolist() == [
        "data", "method", "variant", "strength_name", "strength", "attribute", "value", "low", "high", "n", "values",
    ]  # fmt: skip
    assert found[["attribute", "method", "value", "n"]].to_numpy().tolist() == [
        ["big_smile", "a", 0.6, 3],
        ["big_smile", "vae", 0.8, 1],
        ["hat", "a", 0.7, 3],
        ["hat", "vae", 0.7, 1],
    ]
    for name, values in (("hat", same), ("big_smile", other)):
        rows = found[found["attribute"] == name].set_index("method")
        assert rows[["low", "high"]].isna().all(axis=None)  # of three runs and of one
        assert rows.loc["a", "values"] == tuple(values["a", 1.0])


def test_a_study_without_attributes_is_refused(make_table):
    with pytest.raises(NotInStudyError, match="attribute"):
        attribute_accuracy(make_table(lambda d, h, s, m: h))
