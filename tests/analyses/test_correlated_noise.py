"""The decline under correlated noise, on constructed studies."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from unweave.analyses.correlated_noise import (
    correlation_costs,
    correlation_decline,
    scores_by_correlation,
)
from unweave.analyses.runs import main_runs
from unweave.study import NotInStudyError
from unweave.study.results import as_table


def rows(
    values: dict[float, np.ndarray],
    metric: str = "mig",
    method: str = "vae",
    latents: int = 10,
    representation: str = "mean",
) -> pd.DataFrame:
    return as_table(
        [
            {
                "run": f"{method} {s} {latents} {seed}", "data": "d", "method": method, "strength_name": "",
                "strength": np.nan, "seed": seed, "correlation": s, "latent_size": latents, "steps": 1,
                "settings": "{}", "metric": metric, "representation": representation, "protocol": "p",
                "value": value, "seconds": 0.0,
            }
            for s, column in values.items()
            for seed, value in enumerate(column)
        ]
    )  # fmt: skip


def test_the_decline_is_the_difference_of_medians_with_its_test() -> None:
    rng = np.random.default_rng(0)
    plain, correlated = rng.normal(0.3, 0.05, 10), rng.normal(0.1, 0.05, 12)
    small = rng.normal(size=3)
    table = pd.concat(
        [
            rows({0.0: plain, 0.9: correlated}),
            rows({0.0: small, 0.9: small + 0.01}, method="beta_vae", latents=20),
        ]
    )
    found = correlation_decline(table, draws=4000).set_index("method")
    row = found.loc["vae"]
    assert row["difference"] == pytest.approx(np.median(correlated) - np.median(plain))
    assert row["low"] < row["difference"] < row["high"] < 0
    assert row["p"] == pytest.approx(stats.mannwhitneyu(plain, correlated).pvalue)
    assert row["p_holm"] == pytest.approx(2 * row["p"])
    assert found.loc["beta_vae", "p_holm"] == found.loc["beta_vae", "p"] > 0.5
    assert row[["n_independent", "n_correlated"]].tolist() == [10, 12]
    # An independent bootstrap of the same interval.
    draws = [np.median(rng.choice(correlated, 12)) - np.median(rng.choice(plain, 10)) for _ in range(4000)]
    np.testing.assert_allclose(
        row[["low", "high"]].astype(float), np.quantile(draws, [0.025, 0.975]), atol=0.01
    )


def test_each_correlation_is_compared_with_the_smallest() -> None:
    table = rows({0.9: np.array([0.1]), 0.0: np.array([0.5]), 0.5: np.array([0.4])})
    found = correlation_decline(table)
    assert found["correlation"].tolist() == [0.5, 0.9]
    np.testing.assert_allclose(found["difference"], [-0.1, -0.4])
    assert found[["low", "high"]].isna().all(axis=None)


def test_the_main_line_decides_the_latents_and_steps() -> None:
    values = np.linspace(0, 1, 4)
    both = [rows({0.0: values, 0.9: values}, latents=latents) for latents in (20, 10)]
    table = pd.concat([*both, rows({0.0: values, 0.9: values}).assign(steps=2, run="r" + both[1]["run"])])
    found = scores_by_correlation(table)
    main = main_runs(table)
    assert set(found["latent_size"]) == set(main["latent_size"]) == {10}
    assert set(found["steps"]) == set(main["steps"]) == {2}
    # Another data set has its own number of latents.
    other = rows({0.0: values, 0.9: values}, latents=5).assign(data="e", run="e" + both[1]["run"])
    sizes = scores_by_correlation(pd.concat([*both, other])).groupby("data")["latent_size"].unique()
    assert sizes.map(list).to_dict() == {"d": [10], "e": [5]}


def test_variants_of_a_method_are_compared_with_themselves() -> None:
    parts = []
    for part, shift in ((100, 0.0), (1000, 0.5)):
        values = rows({0.0: np.full(3, 0.4 + shift), 0.9: np.full(3, 0.1 + shift)})
        parts.append(values.assign(settings=f'{{"labelled": {part}}}', run=f"{part}" + values["run"]))
    found = correlation_decline(pd.concat(parts))
    assert found["method"].tolist() == ["vae", "vae"]
    assert found["variant"].tolist() == ["labelled 100", "labelled 1000"]
    np.testing.assert_allclose(found["difference"], -0.3)


def test_only_methods_with_two_correlations_are_shown() -> None:
    values = np.linspace(0, 1, 4)
    table = pd.concat(
        [
            rows({0.0: values, 0.9: values}),
            rows({0.0: values}, method="beta_vae"),
            rows({0.0: values[:2], 0.9: values[:2]}, latents=20),
        ]
    )
    assert set(scores_by_correlation(table)["method"]) == {"vae"}
    assert len(scores_by_correlation(table)) == 8
    assert scores_by_correlation(table, latent_size=20)["latent_size"].tolist() == [20] * 4
    with pytest.raises(NotInStudyError, match="30 latents"):
        scores_by_correlation(table, latent_size=30)


@pytest.mark.parametrize("analysis", [scores_by_correlation, correlation_decline, correlation_costs])
def test_a_study_without_correlation_says_so(analysis) -> None:
    with pytest.raises(NotInStudyError, match="correlation"):
        analysis(rows({0.0: np.ones(3)}))


def test_the_kl_term_is_without_the_constant_of_the_correlation() -> None:
    s, latents = 0.9, 10
    noise = np.full((latents, latents), s) + (1 - s) * np.eye(latents)
    constant = -0.5 * np.linalg.slogdet(noise)[1]
    parts = {"unsupervised.reconstruction": 50.0, "unsupervised.kl": 20.0}
    table = pd.concat(
        [
            *(
                rows({0.0: np.array([value]), s: np.array([value])}, name, representation="sampled")
                for name, value in parts.items()
            ),
            rows({0.0: np.array([1.0]), s: np.array([2.0])}, "gaussian_total_correlation"),
            rows(
                {0.0: np.array([3.0]), s: np.array([4.0])},
                "gaussian_total_correlation",
                representation="sampled",
            ),
        ]
    )
    found = correlation_costs(table).set_index("correlation")
    assert found.loc[0.0, ["reconstruction", "kl", "total_correlation"]].tolist() == [50.0, 20.0, 3.0]
    assert found.loc[s, "kl"] == pytest.approx(20.0 - constant)
    assert found.loc[s, "total_correlation"] == 4.0


def test_the_papers_estimator_of_total_correlation_goes_first() -> None:
    parts = ["unsupervised.reconstruction", "unsupervised.kl", "gaussian_total_correlation"]
    tables = [rows({0.0: np.array([1.0]), 0.5: np.array([1.0])}, name) for name in parts]
    tables.append(rows({0.0: np.array([7.0]), 0.5: np.array([8.0])}, "factorised_total_correlation"))
    assert correlation_costs(pd.concat(tables))["total_correlation"].tolist() == [7.0, 8.0]


def test_the_exact_total_correlation_is_without_that_of_the_noise() -> None:
    """Else 9.26 nats of the noise itself are shown as total correlation, next to a KL without them."""
    constant = -0.5 * np.linalg.slogdet(np.full((10, 10), 0.9) + 0.1 * np.eye(10))[1]
    parts = ["unsupervised.reconstruction", "unsupervised.kl"]
    tables = [rows({0.0: np.array([1.0]), 0.9: np.array([1.0])}, name) for name in parts]
    tables.append(rows({0.0: np.array([0.0]), 0.9: np.array([constant])}, "monte_carlo_total_correlation"))
    assert constant == pytest.approx(9.2575, abs=1e-3)
    assert correlation_costs(pd.concat(tables))["total_correlation"].tolist() == pytest.approx([0.0, 0.0])
