import numpy as np
import pandas as pd
import pytest

from unweave.analyses.agreement import (
    against_strength,
    between_metrics,
    distributions,
    scores,
    with_unsupervised_scores,
)
from unweave.study import NotInStudyError


def test_metrics_that_rank_alike_correlate_by_1_and_opposite_ones_by_minus_1(make_table):
    signs = {"mig": 1, "dci": 3, "sap": -1}
    table = make_table(lambda d, h, s, m: signs[m] * (10 * h + s), ("a", "b"), 3, 4, tuple(signs))
    found = between_metrics(table)
    assert found["data"].unique().tolist() == ["a", "b"]
    assert found["row"].unique().tolist() == ["mig", "dci", "sap"]  # the paper's order
    expected = np.sign(found["row"].map(signs) * found["column"].map(signs))
    np.testing.assert_allclose(found["value"], expected)
    with pytest.raises(NotInStudyError, match="at least 2"):
        between_metrics(table[table["metric"] == "mig"])


def test_unsupervised_scores_are_those_of_the_sampled_codes(make_table):
    table = pd.concat(
        [
            make_table(lambda d, h, s, m: h + s / 10, seeds=4),
            make_table(lambda d, h, s, m: h + s / 10, seeds=4, metrics=("gaussian_total_correlation",)),
            make_table(
                lambda d, h, s, m: -h - s / 10,
                seeds=4,
                metrics=("gaussian_total_correlation", "unsupervised.kl"),
                representation="sampled",
            ),
        ]
    )
    found = with_unsupervised_scores(table)
    assert found["row"].tolist() == ["gaussian_total_correlation", "unsupervised.kl"]
    assert found["column"].unique().tolist() == ["mig"]
    np.testing.assert_allclose(found["value"], -1)


def test_medians_are_over_seeds(make_table):
    found = against_strength(make_table(lambda d, h, s, m: 10 * h + s, settings=2, seeds=3))
    assert found["value"].tolist() == [1, 11]
    assert found["strength_index"].tolist() == [1, 2]
    assert ((found["low"] <= found["value"]) & (found["value"] <= found["high"])).all()


def test_distributions_are_over_strengths_and_seeds(make_table):
    found = distributions(make_table(lambda d, h, s, m: 10 * h + s, settings=2, seeds=10)).iloc[0]
    assert found["n"] == 20
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    quantiles = found[["q05", "q25", "q50", "q75", "q95"]].astype(float)
    np.testing.assert_allclose(quantiles, np.quantile(np.arange(20), levels))


def test_scores_lack_what_a_run_lacks(make_table):
    table = make_table(lambda d, h, s, m: None if m == "sap" and h == 0 else h, metrics=("mig", "sap"))
    runs, metrics = scores(table)
    assert metrics == ["mig", "sap"]
    assert runs["sap"].isna().sum() == 2
    assert runs["mig"].notna().all()
