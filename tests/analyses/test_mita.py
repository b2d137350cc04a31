"""Scores and medians that never mix codes or protocols."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unweave.analyses.mita import medians, scores
from unweave.study import NotInStudyError
from unweave.study.results import as_table


def study() -> pd.DataFrame:
    return as_table(
        [
            {
                "run": f"{method} {strength} {seed}", "data": "d", "method": method, "strength_name": "beta",
                "strength": strength, "seed": seed, "correlation": 0.0, "latent_size": 5, "steps": 1,
                "settings": "{}", "metric": metric, "representation": representation, "protocol": protocol,
                "value": strength + seed + 100 * (representation != "mean") + 1000 * (protocol != "dlib"),
                "seconds": 0.0,
            }
            for method in ("beta_vae", "ivae")
            for strength in (1.0, 4.0)
            for seed in range(3)
            for metric in ("beta_vae", "explicitness")
            for representation in ("mean", "sampled")
            for protocol in ("dlib", "u unknown")
        ]
    )  # fmt: skip


def test_codes_and_protocols_are_not_mixed() -> None:
    found = scores(study())
    assert len(found) == 2 * 2 * 3 * 2
    assert found["representation"].unique().tolist() == ["mean"]
    assert found["protocol"].unique().tolist() == ["dlib"]
    assert found["value"].max() == 6.0
    other = scores(study(), representation="sampled", protocol="u unknown")
    assert other["value"].min() == 1101.0


def test_medians_are_over_seeds() -> None:
    found = medians(study(), ["explicitness", "mig"])
    assert found[["metric", "method", "strength", "value", "n"]].to_numpy().tolist() == [
        ["explicitness", "beta_vae", 1.0, 2.0, 3],
        ["explicitness", "beta_vae", 4.0, 5.0, 3],
        ["explicitness", "ivae", 1.0, 2.0, 3],
        ["explicitness", "ivae", 4.0, 5.0, 3],
    ]
    assert np.all(found["low"] < found["high"])


def test_a_study_without_the_metrics_says_so() -> None:
    with pytest.raises(NotInStudyError, match="none of the metrics"):
        scores(study(), ["mig"])
