"""Downstream accuracies by a network, where they are known."""

import numpy as np
import pytest

import unweave as uw

RNG = np.random.default_rng(0)
QUICK = {"hidden": (20,), "steps": 300}


def test_what_no_line_separates():
    codes = RNG.uniform(-1, 1, (900, 2))
    checker = (codes[:, 0] > 0) ^ (codes[:, 1] > 0)
    other = RNG.integers(0, 2, 900)
    found = uw.metrics.downstream_mlp(codes, np.stack([checker, other], axis=1), hidden=(30,), steps=800)
    checked, guessed = found.details["per_factor"]
    assert checked > 0.9
    assert 0.4 < guessed < 0.6
    assert found.value == pytest.approx((checked + guessed) / 2)
    linear = uw.metrics.downstream(codes, checker, sizes=(600,)).value
    assert linear < 0.65


def test_complementary_codes_together_know_all_factors():
    factors = RNG.integers(0, 4, (900, 2))
    c, z = (factors[:, [k]] + 0.05 * RNG.normal(size=(900, 1)) for k in (0, 1))
    scores = {
        name: uw.metrics.downstream_mlp(codes, factors, hidden=(30,), steps=400)
        for name, codes in {"c": c, "z": z, "all": np.hstack([c, z])}.items()
    }
    assert scores["c"].details["per_factor"][0] > 0.95
    assert scores["c"].details["per_factor"][1] < 0.45
    assert scores["z"].details["per_factor"][1] > 0.95
    assert min(scores["all"].details["per_factor"]) > 0.95


def test_scale_and_constant_codes_do_not_matter():
    factors = RNG.integers(0, 3, (300, 1))
    codes = factors + 0.1 * RNG.normal(size=(300, 1))
    plain, scaled, padded = (
        uw.metrics.downstream_mlp(given, factors, **QUICK).value
        for given in (codes, 1e6 * codes + 5, np.hstack([codes, np.full((300, 1), 9.0)]))
    )
    assert plain == pytest.approx(scaled, abs=0.02)
    assert padded > 0.8


def test_the_seed_decides():
    factors = RNG.integers(0, 3, (200, 1))
    codes = factors + RNG.normal(size=(200, 2))
    test = codes[100:], factors[100:]
    values = [
        uw.metrics.downstream_mlp(codes[:100], factors[:100], test=test, seed=seed, **QUICK).details
        for seed in (1, 1)
    ]
    assert np.array_equal(values[0]["per_factor_train"], values[1]["per_factor_train"])


def test_one_value_only_and_values_that_are_lacking():
    codes = RNG.normal(size=(60, 2))
    train = np.zeros((60, 1), int)
    test = (codes[:10], np.array([[0]] * 7 + [[1]] * 3))
    found = uw.metrics.downstream_mlp(codes, train, test=test, **QUICK)
    assert found.value == pytest.approx(0.7)
    assert found.details["chance"][0] == pytest.approx(0.7)


def test_rows_are_named_by_factor():
    factors = RNG.integers(0, 2, (60, 2))
    found = uw.metrics.downstream_mlp(factors, factors, **QUICK)
    rows = uw.metrics.METRICS["downstream_mlp"].scalars(found, ("shape", "size"))
    assert set(rows) == {"shape", "size"}


def test_only_by_name():
    assert "downstream_mlp" not in uw.evaluation.metrics_of("all")
    assert "downstream_mlp" in uw.evaluation.evaluated_metrics()
