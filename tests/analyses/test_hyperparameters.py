"""Scores by method and strength, which never mix codes or protocols."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unweave.analyses.hyperparameters import (
    method_scores,
    score_distributions,
    scores_by_strength,
    strength_medians,
)
from unweave.study import NotInStudyError
from unweave.study.results import as_table

METRICS = ("beta_vae", "mig", "sap", "modularity", "explicitness")


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
    found = method_scores(study(), METRICS)
    assert len(found) == 2 * 2 * 3 * 2
    assert found["representation"].unique().tolist() == ["mean"]
    assert found["protocol"].unique().tolist() == ["dlib"]
    assert found["value"].max() == 6.0
    other = method_scores(study(), METRICS, representation="sampled", protocol="u unknown")
    assert other["value"].min() == 1101.0


def test_medians_of_strengths_are_over_seeds() -> None:
    found = strength_medians(method_scores(study(), ["explicitness", "mig"]))
    assert found[["metric", "method", "strength", "value", "n"]].to_numpy().tolist() == [
        ["explicitness", "beta_vae", 1.0, 2.0, 3],
        ["explicitness", "beta_vae", 4.0, 5.0, 3],
        ["explicitness", "ivae", 1.0, 2.0, 3],
        ["explicitness", "ivae", 4.0, 5.0, 3],
    ]
    assert found["low"].isna().all()  # of three seeds
    assert found["values"].tolist()[0] == (1.0, 2.0, 3.0)


def test_a_study_without_the_metrics_says_so() -> None:
    with pytest.raises(NotInStudyError, match="none of the metrics"):
        method_scores(study(), ["mig"])


def test_medians_are_over_seeds(make_table):
    found = scores_by_strength(make_table(lambda d, h, s, m: 10 * h + s, settings=2, seeds=5))
    assert found["value"].tolist() == [2, 12]
    assert found["strength_index"].tolist() == [1, 2]
    assert ((found["low"] <= found["value"]) & (found["value"] <= found["high"])).all()


def test_distributions_are_over_strengths_and_seeds(make_table):
    found = score_distributions(make_table(lambda d, h, s, m: 10 * h + s, settings=2, seeds=10)).iloc[0]
    assert found["n"] == 20
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    quantiles = found[["q05", "q25", "q50", "q75", "q95"]].astype(float)
    np.testing.assert_allclose(quantiles, np.quantile(np.arange(20), levels))
