"""Correlations of latents and factors against scipy."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

import unweave as uw
from unweave.errors import ArgumentError

RNG = np.random.default_rng(0)
FACTORS = RNG.uniform(size=(200, 2))
CODES = np.stack([-(FACTORS[:, 1] ** 5) + 0.05 * RNG.normal(size=200), RNG.normal(size=200)], axis=1)


@pytest.mark.parametrize(("method", "reference"), [("spearman", spearmanr), ("pearson", pearsonr)])
def test_correlations_are_those_of_scipy(method, reference):
    score = uw.metrics.latent_factor_correlation(CODES, FACTORS, method=method)
    expected = np.array([[reference(code, factor).statistic for factor in FACTORS.T] for code in CODES.T])
    np.testing.assert_allclose(score.details["matrix"], expected, atol=1e-12)
    np.testing.assert_allclose(score.details["per_factor"], np.abs(expected).max(0), atol=1e-12)
    assert score.details["codes"][1] == 0
    assert score.value == pytest.approx(np.abs(expected).max(0).mean())


def test_each_factor_has_a_row_by_name():
    metric = uw.metrics.latent_factor_correlation
    score = metric(CODES, FACTORS)
    rows = metric.scalars(score, ["length", "mass"])
    assert rows == {"length": score.details["per_factor"][0], "mass": score.details["per_factor"][1]}
    assert rows["mass"] > 0.8


def test_on_an_endless_simulator():
    data = uw.data.load("pendulum")
    scores = uw.evaluate(
        lambda images: images[:, :2], data, "latent_factor_correlation", num_train=50, num_test=20
    )
    assert len(scores["latent_factor_correlation"].details["per_factor"]) == 3


def test_constants_and_too_few_points():
    assert uw.metrics.latent_factor_correlation(np.ones((5, 1)), FACTORS[:5]).value == 0
    with pytest.raises(ArgumentError):
        uw.metrics.latent_factor_correlation(CODES[:1], FACTORS[:1])
