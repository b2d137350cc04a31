"""Rankings of methods whose true order is known."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from unweave.analyses.ranking import rank_methods
from unweave.errors import ArgumentError
from unweave.metrics import METRICS, register_metric
from unweave.study import NotInStudyError
from unweave.study.results import as_table


def scores(values: dict[tuple[str, float], np.ndarray], metric: str = "mig", data: str = "d") -> pd.DataFrame:
    rows = [
        {
            "run": f"{data} {method} {strength} {seed}", "data": data, "method": method, "strength_name": "beta",
            "strength": strength, "seed": seed, "correlation": 0.0, "latent_size": 10, "steps": 1, "settings": "{}",
            "metric": metric, "representation": "mean", "protocol": "p", "value": value, "seconds": 0.0,
        }
        for (method, strength), column in values.items()
        for seed, value in enumerate(column)
    ]  # fmt: skip
    return as_table(rows)


def test_methods_far_apart_are_ranked_with_certainty() -> None:
    rng = np.random.default_rng(0)
    table = scores({(name, 1.0): level + 0.01 * rng.normal(size=20) for level, name in enumerate("abc")})
    found = rank_methods(table)
    assert found["method"].tolist() == ["c", "b", "a"]
    assert found["rank"].tolist() == [1, 2, 3]
    assert found["best"].tolist() == [1, 0, 0]
    assert found["letters"].tolist() == ["a", "b", "c"]
    assert found["tied"].tolist() == [True, False, False]
    assert (found["rank_low"] == found["rank"]).all()
    assert (found["rank_high"] == found["rank"]).all()


def test_methods_of_one_distribution_share_a_letter_and_the_probability() -> None:
    base = np.linspace(0, 1, 21)
    table = scores({(name, 1.0): base for name in "abcd"})
    found = rank_methods(table, draws=20_000)
    assert found["letters"].tolist() == ["a"] * 4
    assert found["rank"].tolist() == [1] * 4
    assert found["best"].sum() == pytest.approx(1)
    np.testing.assert_allclose(found["best"], 0.25, atol=0.02)


def test_the_probability_of_being_best_is_that_of_two_independent_medians() -> None:
    # Medians of 5 values drawn from 5: all pairs of places, with the chances of each place.
    one, other = np.arange(0.0, 10, 2), np.arange(1.0, 11, 2)
    every = np.median(list(itertools.product(range(5), repeat=5)), axis=1)
    chance = np.array([(every == place).mean() for place in range(5)])
    expected = (chance[:, None] * chance[None] * (other[None] > one[:, None])).sum()
    found = rank_methods(scores({("a", 1.0): one, ("b", 1.0): other}), draws=100_000).set_index("method")
    assert found.loc["b", "best"] == pytest.approx(expected, abs=0.005)
    assert found.loc["a", "best"] == pytest.approx(1 - expected, abs=0.005)


def test_fewer_than_five_runs_have_values_and_no_probabilities() -> None:
    found = rank_methods(scores({("a", 1.0): np.array([0.4, 0.1, 0.2]), ("b", 1.0): np.arange(6.0)}))
    assert found[["best", "rank_low", "rank_high"]].isna().all(axis=None)
    assert dict(zip(found["method"], found["values"], strict=True)) == {"a": (0.1, 0.2, 0.4), "b": ()}


def test_best_takes_the_best_strength_and_all_takes_every_run() -> None:
    rng = np.random.default_rng(1)
    noise = 0.01 * rng.normal(size=(4, 15))
    table = scores(
        {
            ("a", 1.0): 0.9 + noise[0],
            ("a", 2.0): 0.1 + noise[1],
            ("b", 1.0): 0.6 + noise[2],
            ("b", 2.0): 0.7 + noise[3],
        }
    )
    best = rank_methods(table).set_index("method")
    assert best.loc[["a", "b"], "strength"].tolist() == [1.0, 2.0]
    assert best.loc["a", "rank"] == 1
    assert best["n"].tolist() == [15, 15]
    every = rank_methods(table, strengths="all").set_index("method")
    assert every.loc["b", "rank"] == 1
    assert every["strength"].isna().all()
    assert every["n"].tolist() == [30, 30]
    expected = np.median(table.loc[table["method"] == "b", "value"])
    assert every.loc["b", "value"] == pytest.approx(expected)


def test_a_choice_among_many_strengths_is_uncertain_too() -> None:
    # b's two strengths are alike: in each draw the better one counts, so b is above a single strength more often.
    base = np.linspace(0, 1, 11)
    one = rank_methods(scores({("a", 1.0): base, ("b", 1.0): base}), draws=20_000).set_index("method")
    two = rank_methods(
        scores({("a", 1.0): base, ("b", 1.0): base, ("b", 2.0): base}), draws=20_000
    ).set_index("method")
    assert one.loc["b", "best"] == pytest.approx(0.5, abs=0.02)
    assert two.loc["b", "best"] == pytest.approx(2 / 3, abs=0.03)


def test_each_data_set_and_metric_is_ranked_by_itself() -> None:
    low, high = np.linspace(0, 0.1, 12), np.linspace(0.8, 0.9, 12)
    table = pd.concat(
        [
            scores({("a", 1.0): low, ("b", 1.0): high}, "mig", "x"),
            scores({("a", 1.0): high, ("b", 1.0): low}, "sap", "x"),
            scores({("a", 1.0): high, ("b", 1.0): low}, "mig", "y"),
            scores({("a", 1.0): high}, "mig", "alone"),
        ]
    )
    first = rank_methods(table).query("rank == 1")
    assert first[["data", "metric", "method"]].to_numpy().tolist() == [
        ["x", "mig", "b"], ["y", "mig", "a"], ["x", "sap", "a"],
    ]  # fmt: skip


def test_label_fractions_are_ranked_as_methods_of_their_own() -> None:
    few, many = np.linspace(0, 0.1, 12), np.linspace(0.8, 0.9, 12)
    parts = [
        scores({("ss_idvae", 1.0): values}, data="x").assign(settings=f'{{"labels": {{"labelled": {n}}}}}')
        for n, values in ((100, few), (1000, many))
    ]
    parts = [part.assign(run=part["run"] + part["settings"]) for part in parts]
    found = rank_methods(pd.concat([*parts, scores({("a", 1.0): few + 0.4}, data="x")]))
    assert found["method"].tolist() == ["ss_idvae", "a", "ss_idvae"]
    assert found["variant"].tolist() == ["labelled 1000", "", "labelled 100"]
    assert found["n"].tolist() == [12] * 3
    assert found["letters"].tolist() == ["a", "b", "c"]


def test_two_seeds_can_never_be_told_apart() -> None:
    found = rank_methods(scores({("a", 1.0): np.array([0.0, 0.1]), ("b", 1.0): np.array([0.8, 0.9])}))
    assert found["tied"].all()
    assert found["letters"].tolist() == ["a", "a"]


def test_single_runs_are_ranked_without_probabilities() -> None:
    found = rank_methods(scores({("a", 1.0): np.array([0.5]), ("b", 1.0): np.array([0.7])}))
    assert found["method"].tolist() == ["b", "a"]
    assert found[["best", "rank_low", "rank_high", "low", "high"]].isna().all(axis=None)


def test_unequal_numbers_of_seeds_and_methods_without_strength_are_fine() -> None:
    rng = np.random.default_rng(2)
    found = rank_methods(scores({("vae", np.nan): rng.normal(size=4), ("a", 1.0): 9 + rng.normal(size=30)}))
    assert found["n"].tolist() == [30, 4]
    assert np.isnan(found["strength"].iloc[1])
    assert found["letters"].tolist() == ["a", "b"]


def test_a_study_that_cannot_be_ranked_says_so() -> None:
    with pytest.raises(NotInStudyError, match="two methods"):
        rank_methods(scores({("a", 1.0): np.ones(3)}))
    with pytest.raises(ArgumentError, match="strengths"):
        rank_methods(scores({("a", 1.0): np.ones(3)}), strengths="worst")


def test_the_direction_is_the_metrics_own() -> None:
    values = {("a", 1.0): np.linspace(0, 0.1, 12), ("b", 1.0): np.linspace(0.8, 0.9, 12)}
    up = rank_methods(scores(values, "mig"))
    assert up["method"].tolist() == ["b", "a"]
    down = rank_methods(scores(values, "gaussian_total_correlation"), ["gaussian_total_correlation"])
    assert down["method"].tolist() == ["a", "b"]
    columns = ["value", "low", "high"]
    np.testing.assert_allclose(down[columns], up.iloc[::-1][columns])
    assert (down["low"] <= down["value"]).all()
    assert down["best"].tolist() == [1.0, 0.0]


def test_a_study_is_ranked_by_all_its_metrics_of_factors() -> None:
    values = {("a", 1.0): np.linspace(0, 0.1, 12), ("b", 1.0): np.linspace(0.8, 0.9, 12)}
    names = ["users_own", "irs", "udr", "gaussian_total_correlation", "sap", "mig", "mig.detail"]
    register_metric("users_own")(lambda codes, factors: 0.0)
    try:
        found = rank_methods(pd.concat([scores(values, name) for name in names]))
    finally:
        METRICS.unregister("users_own")
    assert found["metric"].unique().tolist() == ["mig", "sap", "irs", "users_own"]
