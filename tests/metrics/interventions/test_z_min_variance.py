import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.interventions.factor_vae import factor_vae
from unweave.metrics.interventions.votes import TableInterventions
from unweave.metrics.interventions.z_min_variance import z_min_variance
from unweave.metrics.sample import check_sample


def table(codes_of):
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(size, size=4000) for size in (3, 1, 5, 4)], axis=1)
    return TableInterventions(check_sample(codes_of(factors, rng), factors))


def test_identity_scores_one():
    assert z_min_variance.compute(table(lambda factors, rng: factors * 1.0)).value == 1.0


def test_noise_scores_about_zero():
    score = z_min_variance.compute(table(lambda factors, rng: rng.normal(size=(len(factors), 5))))
    assert score.value == pytest.approx(0, abs=0.12)


def test_constant_codes_score_zero():
    assert z_min_variance.compute(table(lambda factors, rng: np.ones((len(factors), 2)))).value == 0.0


def test_three_of_the_four_factors_vary():
    representation = table(lambda factors, rng: factors @ rng.normal(size=(4, 4)))
    sizes = {"batch_size": 50, "num_train": 500, "num_eval": 500}
    accuracy = factor_vae.compute(representation, **sizes).value
    score = z_min_variance.compute(representation, **sizes)
    assert score.value == pytest.approx((accuracy - 1 / 3) / (2 / 3))
    assert score.details["eval_accuracy"] == accuracy


def test_arguments_that_are_not_allowed():
    with pytest.raises(ArgumentError, match="batch_size"):
        z_min_variance.compute(table(lambda factors, rng: factors * 1.0), batch_size=1)
