import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from unweave.errors import ArgumentError
from unweave.metrics.predictors.attribute_classification import attribute_classification, hinge_bias
from unweave.metrics.sample import check_sample


def draw(n, seed=0):
    random = np.random.default_rng(seed)
    factors = (random.random((n, 2)) < [0.3, 0.6]).astype(int)
    codes = factors @ np.array([[2.0, 1.0, 0.0], [0.0, -1.0, 1.0]]) + random.normal(size=(n, 3))
    return check_sample(codes, factors)


@pytest.mark.parametrize("seed", range(5))
def test_the_bias_minimises_the_hinge_loss(seed):
    random = np.random.default_rng(seed)
    positive = random.random(31) < 0.4
    positive[:2] = [True, False]
    x = 2 * random.normal(size=31) + positive

    def loss(b):
        return np.maximum(0, 1 - np.where(positive, 1, -1) * (x + b)).sum()

    found = hinge_bias(x, positive)
    assert loss(found) <= minimize_scalar(loss, bounds=(-20, 20), method="bounded").fun + 1e-9
    assert loss(found) <= min(loss(b) for b in np.linspace(-20, 20, 2001)) + 1e-9


def test_weights_are_differences_of_means():
    train, test = draw(500), draw(300, seed=1)
    score = attribute_classification.compute(train, test)
    for k in range(2):
        y = train.factors[:, k]
        w = train.codes[y == 1].mean(0) - train.codes[y == 0].mean(0)
        np.testing.assert_allclose(score.details["vectors"][:, k], w)
        predicted = test.codes @ w + score.details["biases"][k] > 0
        assert score.details["per_factor"][k] == np.mean(predicted == test.factors[:, k])
    assert score.value == score.details["per_factor"].mean() > 0.75


def test_separable_attributes_are_found():
    train = draw(100)
    clear = check_sample(5.0 * train.factors, train.factors)
    assert attribute_classification.compute(clear, clear).value == 1


def test_only_the_order_of_the_two_values_counts():
    train, test = draw(200), draw(100, seed=1)
    other = [check_sample(s.codes, 3 * s.factors + 4) for s in (train, test)]
    assert (
        attribute_classification.compute(*other).value == attribute_classification.compute(train, test).value
    )


def test_degenerate_samples():
    train, test = draw(60), draw(40, seed=1)
    same = check_sample(train.codes, train.factors * [1, 0])
    score = attribute_classification.compute(same, test)
    assert score.details["per_factor"][1] == np.mean(test.factors[:, 1] == 0)
    constant = check_sample(np.ones((60, 3)), train.factors)
    score = attribute_classification.compute(constant, constant)
    most = np.maximum(train.factors.mean(0), 1 - train.factors.mean(0))
    np.testing.assert_allclose(score.details["per_factor"], most)
    one = check_sample(train.codes[:1], train.factors[:1])
    assert attribute_classification.compute(one, one).value == 1


def test_more_than_two_values_are_refused():
    with pytest.raises(ArgumentError, match="3 values in column 0"):
        attribute_classification.compute(
            check_sample(np.zeros(3), np.arange(3)), check_sample(np.zeros(3), np.arange(3))
        )
