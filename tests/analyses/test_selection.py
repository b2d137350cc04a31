"""Unsupervised scores, transfer between data sets, and Table 1 on studies whose probabilities are known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from unweave.analyses.selection import (
    outperforming_random,
    setting_medians,
    transfer_correlations,
    unsupervised_correlations,
)
from unweave.study import NotInStudyError

METRICS, DATA = ("mig", "dci"), ("a", "b")


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
    found = unsupervised_correlations(table)
    assert found["row"].tolist() == ["gaussian_total_correlation", "unsupervised.kl"]
    assert found["column"].unique().tolist() == ["mig"]
    np.testing.assert_allclose(found["value"], -1)


def test_data_sets_are_compared_on_the_medians_of_settings(make_table):
    signs = {"a": 1, "b": 2, "c": -1}
    # The outlier of one seed would reverse the order of means, not of medians.
    table = make_table(
        lambda d, h, s, m: signs[d] * (100 - 100 * h if s == 0 else h), tuple(signs), settings=5, seeds=5
    )
    found = transfer_correlations(table).set_index(["row", "column"])
    assert found.loc[("a", "b"), "value"] == pytest.approx(1)
    assert found.loc[("a", "c"), "value"] == pytest.approx(-1)
    assert (found["n"] == 5).all()


def test_medians_keep_the_order_of_metrics_and_data(make_table):
    table = make_table(lambda d, h, s, m: h + s, ("z", "a"), settings=2, seeds=3, metrics=("sap", "mig"))
    found = setting_medians(table)
    assert found["metric"].unique().tolist() == ["mig", "sap"]
    assert found["data"].unique().tolist() == ["z", "a"]
    assert found["value"].tolist() == [1, 2] * 4
    assert found["setting"].tolist() == [0, 1] * 4


def test_settings_that_one_data_set_lacks_are_not_compared(make_table):
    table = make_table(lambda d, h, s, m: None if d == "b" and h == 0 else h, ("a", "b"), settings=4)
    found = transfer_correlations(table).set_index(["row", "column"])
    assert found.loc[("a", "b"), "n"] == 3
    assert found.loc[("a", "a"), "n"] == 4


def test_one_data_set_or_two_settings_are_too_few(make_table):
    with pytest.raises(NotInStudyError, match="one data set"):
        transfer_correlations(make_table(lambda d, h, s, m: h))
    with pytest.raises(NotInStudyError, match="fewer than three settings"):
        transfer_correlations(make_table(lambda d, h, s, m: h, ("a", "b"), settings=2))


def cells(table, chosen_by="metric", **arguments):
    found = outperforming_random(table, **arguments)
    found = found[found["chosen_by"] == chosen_by]
    return {
        (row.metric, row.data): (row.probability, row.standard_error) for row in found.itertuples(index=False)
    }


def test_a_setting_that_is_always_best_never_loses(make_table):
    found = cells(make_table(lambda d, h, s, m: h, DATA, 5, 4, METRICS))
    assert {key: p for key, (p, _) in found.items()} == dict.fromkeys(
        itertools.product(("same", "different"), repeat=2), 1.0
    )


def test_noise_wins_half_and_the_cases_in_which_the_random_setting_is_the_chosen_one(make_table, rng):
    settings = 4
    found = cells(make_table(lambda d, h, s, m: rng.random(), DATA, settings, 60, METRICS), draws=20_000)
    for p, _ in found.values():
        assert p == pytest.approx((1 + 1 / settings) / 2, abs=0.02)


def test_equal_scores_always_win(make_table):
    assert cells(make_table(lambda d, h, s, m: 0.5, settings=4)) == {("same", "same"): (1.0, 0.0)}


def test_a_reversed_data_set_or_metric_is_won_only_against_the_chosen_setting_itself(make_table):
    settings = 5

    def score(data, setting, seed, metric):
        return setting * (-1 if data == "b" else 1) * (-1 if metric == "dci" else 1)

    found = cells(make_table(score, DATA, settings, 3, METRICS))
    assert found["same", "same"][0] == found["different", "different"][0] == 1
    for key in (("same", "different"), ("different", "same")):
        p, error = found[key]
        assert error == pytest.approx(np.sqrt(p * (1 - p) / 10_000))
        assert p == pytest.approx(1 / settings, abs=4 * error)


def exact(table, other_metric, other_data):
    """The expected probability by going through every trial, each choice of equals in equal parts."""
    scores = table.set_index(["metric", "data", "seed", "strength"])["value"].unstack()
    metrics, data, seeds = (list(level) for level in scores.index.levels)
    shares = []
    for m, d, s in itertools.product(metrics, data, seeds):
        own = scores.loc[(m, d, s)]
        best = own.index[own == own.max()]
        for m2, d2, s2 in itertools.product(metrics, data, seeds):
            if (m2 != m) == other_metric and (d2 != d) == other_data and s2 != s:
                there = scores.loc[(m2, d2, s2)]
                shares.append(np.mean([there[h] >= there[r] for h in best for r in there.index]))
    return np.mean(shares)


def test_the_simulation_agrees_with_going_through_all_trials(make_table, rng):
    # Whole numbers, so that there are ties; the settings differ, so that choosing helps.
    table = make_table(
        lambda d, h, s, m: float(rng.integers(h + 3)), ("a", "b", "c"), 4, 3, ("mig", "dci", "sap")
    )
    for (metric, data), (p, error) in cells(table, draws=40_000).items():
        assert p == pytest.approx(exact(table, metric == "different", data == "different"), abs=4 * error)


def test_unsupervised_scores_choose_too(make_table):
    settings = 4
    table = pd.concat(
        [
            make_table(lambda d, h, s, m: h, DATA, settings, 3, METRICS),
            make_table(lambda d, h, s, m: h, DATA, settings, 3, ("udr",)),
            make_table(lambda d, h, s, m: -h, DATA, settings, 3, ("unsupervised.elbo",), "sampled"),
        ]
    )
    assert [p for p, _ in cells(table, "udr").values()] == [1, 1]
    for p, _ in cells(table, "unsupervised.elbo").values():
        assert p == pytest.approx(1 / settings, abs=0.02)
    # A random setting is at least another one in H (H + 1) / 2 of H^2 cases.
    for p, _ in cells(table, "chance").values():
        assert p == pytest.approx((1 + 1 / settings) / 2, abs=0.02)


def test_missing_runs_are_neither_chosen_nor_compared(make_table):
    # Setting 3 would be best, but has one seed only: a trial that chooses it is drawn anew.
    table = make_table(lambda d, h, s, m: None if h == 3 and s > 0 else h, ("a",), 4, 3)
    found = outperforming_random(table)
    assert found.loc[0, "draws"] == 10_000
    # Chosen: setting 2, by seeds 1 and 2. It loses to setting 3 only, on seed 0, which is s' in half of the trials
    # and is the random one of four there.
    assert found.loc[0, "probability"] == pytest.approx(1 - 1 / 8, abs=0.015)


def test_the_same_seed_gives_the_same_table_and_intervals_hold_the_probability(make_table, rng):
    table = make_table(lambda d, h, s, m: rng.random() + h / 4, DATA, 4, 20, METRICS)
    first, again = (outperforming_random(table, draws=2000) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    assert ((first["low"] < first["probability"]) & (first["probability"] < first["high"])).all()
    assert (first["high"] - first["low"] > 2 * first["standard_error"]).all()


def test_two_seeds_have_no_interval_and_one_seed_no_answer(make_table):
    assert outperforming_random(make_table(lambda d, h, s, m: h, seeds=2))["low"].isna().all()
    with pytest.raises(NotInStudyError, match="two seeds"):
        outperforming_random(make_table(lambda d, h, s, m: h, seeds=1))
