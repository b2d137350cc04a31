"""Rankings of methods whose true order is known, and the tests behind them against other computations."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from unweave.analyses.ranking import holm, letters, mann_whitney, ranking
from unweave.errors import ArgumentError
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
    found = ranking(table)
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
    found = ranking(table, draws=20_000)
    assert found["letters"].tolist() == ["a"] * 4
    assert found["rank"].tolist() == [1] * 4
    assert found["best"].sum() == pytest.approx(1)
    np.testing.assert_allclose(found["best"], 0.25, atol=0.02)


def test_the_probability_of_being_best_is_that_of_two_independent_medians() -> None:
    # Medians of 3 values drawn from 3: all nine pairs of places, with the chances of each place.
    one, other = np.array([0.0, 2.0, 4.0]), np.array([1.0, 3.0, 5.0])
    every = np.median(list(itertools.product(range(3), repeat=3)), axis=1)
    chance = np.array([(every == place).mean() for place in range(3)])
    expected = (chance[:, None] * chance[None] * (other[None] > one[:, None])).sum()
    found = ranking(scores({("a", 1.0): one, ("b", 1.0): other}), draws=100_000).set_index("method")
    assert found.loc["b", "best"] == pytest.approx(expected, abs=0.005)
    assert found.loc["a", "best"] == pytest.approx(1 - expected, abs=0.005)


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
    best = ranking(table).set_index("method")
    assert best.loc[["a", "b"], "strength"].tolist() == [1.0, 2.0]
    assert best.loc["a", "rank"] == 1
    assert best["n"].tolist() == [15, 15]
    every = ranking(table, strengths="all").set_index("method")
    assert every.loc["b", "rank"] == 1
    assert every["strength"].isna().all()
    assert every["n"].tolist() == [30, 30]
    expected = np.median(table.loc[table["method"] == "b", "value"])
    assert every.loc["b", "value"] == pytest.approx(expected)


def test_a_choice_among_many_strengths_is_uncertain_too() -> None:
    # b's two strengths are alike: in each draw the better one counts, so b is above a single strength more often.
    base = np.linspace(0, 1, 11)
    one = ranking(scores({("a", 1.0): base, ("b", 1.0): base}), draws=20_000).set_index("method")
    two = ranking(scores({("a", 1.0): base, ("b", 1.0): base, ("b", 2.0): base}), draws=20_000).set_index(
        "method"
    )
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
    first = ranking(table).query("rank == 1")
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
    found = ranking(pd.concat([*parts, scores({("a", 1.0): few + 0.4}, data="x")]))
    assert found["method"].tolist() == ["ss_idvae, labelled 1000", "a", "ss_idvae, labelled 100"]
    assert found["n"].tolist() == [12] * 3
    assert found["letters"].tolist() == ["a", "b", "c"]


def test_two_seeds_can_never_be_told_apart() -> None:
    found = ranking(scores({("a", 1.0): np.array([0.0, 0.1]), ("b", 1.0): np.array([0.8, 0.9])}))
    assert found["tied"].all()
    assert found["letters"].tolist() == ["a", "a"]


def test_single_runs_are_ranked_without_probabilities() -> None:
    found = ranking(scores({("a", 1.0): np.array([0.5]), ("b", 1.0): np.array([0.7])}))
    assert found["method"].tolist() == ["b", "a"]
    assert found[["best", "rank_low", "rank_high", "low", "high"]].isna().all(axis=None)


def test_unequal_numbers_of_seeds_and_methods_without_strength_are_fine() -> None:
    rng = np.random.default_rng(2)
    found = ranking(scores({("vae", np.nan): rng.normal(size=4), ("a", 1.0): 9 + rng.normal(size=30)}))
    assert found["n"].tolist() == [30, 4]
    assert np.isnan(found["strength"].iloc[1])
    assert found["letters"].tolist() == ["a", "b"]


def test_a_study_that_cannot_be_ranked_says_so() -> None:
    with pytest.raises(NotInStudyError, match="two methods"):
        ranking(scores({("a", 1.0): np.ones(3)}))
    with pytest.raises(ArgumentError, match="strengths"):
        ranking(scores({("a", 1.0): np.ones(3)}), strengths="worst")


def test_many_mann_whitney_tests_are_those_of_scipy_one_by_one() -> None:
    rng = np.random.default_rng(3)
    pairs = [
        (rng.normal(size=n), rng.normal(0.5, size=m)) for n, m in [(3, 5), (3, 5), (20, 30), (9, 9), (20, 30)]
    ]
    pairs += [(np.round(one, 0), np.round(other, 0)) for one, other in pairs]
    expected = [stats.mannwhitneyu(one, other).pvalue for one, other in pairs]
    np.testing.assert_allclose(mann_whitney([*pairs, (np.empty(0), np.ones(3))]), [*expected, 1.0])


def test_exact_mann_whitney_by_counting_all_splits() -> None:
    one, other = np.array([0.1, 0.4, 0.2]), np.array([0.3, 0.6, 0.7, 0.5])
    pooled = np.concatenate([one, other])
    sums = [
        sum(a > b for a in split for b in pooled if b not in split)
        for split in itertools.combinations(pooled, 3)
    ]
    seen = sum(a > b for a in one for b in other)
    share = 2 * np.mean([value <= seen for value in sums])
    assert mann_whitney([(one, other)])[0] == pytest.approx(min(1, share))


def test_holm_by_its_step_down_procedure() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005, 0.6])
    np.testing.assert_allclose(holm(p), [0.04, 0.09, 0.09, 0.025, 0.6])
    rng = np.random.default_rng(4)
    p = rng.uniform(0, 0.2, 12)
    for level in np.linspace(0.01, 0.9, 30):
        rejected, order = set(), np.argsort(p)
        for step, place in enumerate(order):
            if p[place] >= level / (len(p) - step):
                break
            rejected.add(place)
        assert set(np.flatnonzero(holm(p) < level)) == rejected
    assert holm(np.empty(0)).shape == (0,)


def test_letters_say_exactly_which_pairs_differ() -> None:
    rng = np.random.default_rng(5)
    for size in (1, 2, 5, 8):
        for _ in range(30):
            different = np.triu(rng.random((size, size)) < rng.random(), 1)
            different |= different.T
            shown = letters(different)
            for i, j in itertools.combinations(range(size), 2):
                assert (not set(shown[i]) & set(shown[j])) == different[i, j]
            assert shown[0].startswith("a")


def test_letters_of_a_chain() -> None:
    different = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool)
    assert letters(different) == ["a", "ab", "b"]
