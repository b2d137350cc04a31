"""The trade-off table, the attribute table and the best runs of constructed studies."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unweave.analyses.intervals import bootstrap_interval
from unweave.analyses.kumar import attribute_accuracy, best_runs, trade_off
from unweave.study import NotInStudyError
from unweave.study.results import as_table


def rows(metric: str, values: dict[tuple[str, float], list[float]], correlation: float = 0.0) -> pd.DataFrame:
    return as_table(
        [
            {
                "run": f"{method} {strength} {seed} {correlation}", "data": "d", "method": method,
                "strength_name": "beta", "strength": strength, "seed": seed, "correlation": correlation,
                "latent_size": 10, "steps": 1, "settings": "{}", "metric": metric, "representation": "mean",
                "protocol": "p", "value": value, "seconds": 0.0,
            }
            for (method, strength), column in values.items()
            for seed, value in enumerate(column)
        ]
    )  # fmt: skip


SAP = {("a", 1.0): [0.1, 0.2, 0.9], ("a", 4.0): [0.4, 0.5, 0.3], ("vae", np.nan): [0.2, 0.1, 0.0]}
ERROR = {("a", 1.0): [64.0, 128.0, 96.0], ("a", 4.0): [640.0] * 3, ("vae", np.nan): [32.0, 32.0, 48.0]}


def test_medians_are_joined_per_strength_and_the_error_is_per_value() -> None:
    table = pd.concat(
        [rows("sap", SAP), rows("unsupervised.l2", ERROR), rows("sap", {("a", 1.0): [1.0]}, 0.9)]
    )
    found = trade_off(table, values_per_image={"d": 32}).set_index(["method", "strength"])
    assert found.loc[("a", 1.0), ["sap", "error", "n"]].tolist() == [0.2, 3.0, 3]
    assert found.loc[("a", 4.0), ["sap", "error"]].tolist() == [0.4, 20.0]
    assert found.loc[("vae", np.nan), ["sap", "error"]].tolist() == [0.1, 1.0]
    assert found["chosen"].tolist() == [False, True, True]
    assert "z_diff" not in found
    assert (found["sap_low"] <= found["sap"]).all()
    assert (found["error_high"] >= found["error"]).all()
    sums = trade_off(table)
    assert sums["error"].tolist() == [96.0, 640.0, 32.0]


def test_what_is_missing_is_named() -> None:
    with pytest.raises(NotInStudyError, match="sap, z_diff"):
        trade_off(rows("unsupervised.l2", ERROR))
    with pytest.raises(NotInStudyError, match=r"unsupervised\.l2"):
        trade_off(rows("sap", SAP))
    with pytest.raises(NotInStudyError, match="attribute"):
        attribute_accuracy(rows("sap", SAP))


def test_attributes_that_differ_most_come_first() -> None:
    same = {("a", 1.0): [0.5, 0.7, 0.9], ("b", 2.0): [0.7]}
    other = {("a", 1.0): [0.5, 0.6, 0.6], ("b", 2.0): [0.8]}
    table = pd.concat(
        [rows("attribute_classification.hat", same), rows("attribute_classification.big_smile", other)]
    )
    found = attribute_accuracy(table)
    assert found.columns.tolist() == [
        "data", "method", "strength_name", "strength", "n",
        "big_smile", "big_smile_low", "big_smile_high", "hat", "hat_low", "hat_high",
    ]  # fmt: skip
    assert found[["big_smile", "hat", "n"]].to_numpy().tolist() == [[0.6, 0.7, 3], [0.8, 0.7, 1]]
    for name, values in (("hat", same), ("big_smile", other)):
        ends = found.loc[0, [f"{name}_low", f"{name}_high"]].tolist()
        assert tuple(ends) == bootstrap_interval(np.array(values[("a", 1.0)]))
        assert found.loc[1, [f"{name}_low", f"{name}_high"]].isna().all()  # a single run


def test_the_best_run_has_the_largest_score() -> None:
    found = best_runs(rows("sap", SAP)).set_index("method")
    assert found.loc["a", ["strength", "seed", "value"]].tolist() == [1.0, 2, 0.9]
    assert found.loc["vae", "run"] == "vae nan 0 0.0"
