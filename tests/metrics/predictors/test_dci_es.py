import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.predictors.dci_es import dci_es, explicitness_of_curves
from unweave.metrics.sample import check_sample


def draw(n, seed=0):
    random = np.random.default_rng(seed)
    factors = np.stack([random.integers(0, 2, n), random.integers(0, 4, n)], axis=1)
    return check_sample(np.hstack([factors, random.normal(size=(n, 2))]).astype(float), factors)


def test_explicitness_of_curves():
    capacities = np.array([1.0, 2.0, 5.0])
    at_once, straight, late = [0.0, 0.0, 0.0], [0.5, 0.375, 0.0], [0.5, 0.5, 0.5 - 1e-12]
    losses = np.array([at_once, straight, [0.5, 0.5, 0.0], [0.2, 0.4, 0.2], late]).T
    found = explicitness_of_curves(capacities, losses, np.full(5, 0.5))
    # The third: areas 0.5 over the first step and a triangle of 0.75 over the second, of 2 in all.
    np.testing.assert_allclose(found, [1, 0, 1 - 2 * (0.5 + 0.75) / 2, 1, 1], atol=1e-9)
    np.testing.assert_allclose(explicitness_of_curves(capacities, np.zeros((3, 1)), np.zeros(1)), 1)


def test_a_factor_read_by_one_split_is_more_explicit_than_one_that_needs_several():
    score = dci_es.compute(draw(400), draw(300, seed=1), depths=(1, 2, 4, 8), trees=20)
    assert score.value == score.details["explicitness"] == pytest.approx(score.details["per_factor"].mean())
    assert score.details["per_factor"][0] > score.details["per_factor"][1]
    assert score.details["informativeness"] > 0.95
    assert score.details["disentanglement"] > 0.5
    assert score.details["size"] == 0.5
    assert score.details["losses"].shape == (4, 2)
    assert score.details["matrix"].shape == (4, 2)
    assert score.params == {"depths": (1, 2, 4, 8), "trees": 20, "seed": 0}


def test_degenerate_samples():
    train = draw(60)
    same = check_sample(train.codes, train.factors * [0, 1])
    score = dci_es.compute(same, train, depths=(1, 3), trees=3)
    assert score.details["per_factor"][0] == 1
    constant = check_sample(np.ones((60, 3)), train.factors)
    score = dci_es.compute(constant, constant, depths=(1, 3), trees=3)
    assert score.value == 1
    assert score.details["disentanglement"] == pytest.approx(0)


@pytest.mark.parametrize(
    "arguments", [{"depths": (1,)}, {"depths": (2, 1)}, {"depths": (0, 1)}, {"trees": 0}]
)
def test_wrong_arguments_are_named(arguments):
    with pytest.raises(ArgumentError, match=next(iter(arguments))):
        dci_es.compute(draw(10), draw(10), **arguments)
