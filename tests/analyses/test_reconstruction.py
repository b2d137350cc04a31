"""The trade-off table of constructed studies."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unweave.analyses.reconstruction import reconstruction_trade_off
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
    found = reconstruction_trade_off(table, values_per_image={"d": 32}).set_index(["method", "strength"])
    assert found.loc[("a", 1.0), ["sap", "error", "n"]].tolist() == [0.2, 3.0, 3]
    assert found.loc[("a", 4.0), ["sap", "error"]].tolist() == [0.4, 20.0]
    assert found.loc[("vae", np.nan), ["sap", "error"]].tolist() == [0.1, 1.0]
    assert found["chosen"].tolist() == [False, True, True]
    assert "z_diff" not in found
    assert found[["sap_low", "error_high"]].isna().all(axis=None)  # of three seeds and fewer
    assert len(found.loc[("a", 1.0), "sap_values"]) == 3
    sums = reconstruction_trade_off(table)
    assert sums["error"].tolist() == [96.0, 640.0, 32.0]


def test_what_is_missing_is_named() -> None:
    with pytest.raises(NotInStudyError, match="sap, z_diff"):
        reconstruction_trade_off(rows("unsupervised.l2", ERROR))
    with pytest.raises(NotInStudyError, match=r"unsupervised\.l2"):
        reconstruction_trade_off(rows("sap", SAP))
