import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import KFold

from unweave.errors import ArgumentError
from unweave.metrics.predictors.downstream import downstream
from unweave.metrics.sample import check_sample
from unweave.metrics.solvers.boosted_trees import fit_boosted_trees
from unweave.metrics.solvers.logistic_regression import one_thread


def draw(n, seed=0, sizes=(2, 3), noise=0.6):
    random = np.random.default_rng(seed)
    factors = np.stack([random.integers(0, size, n) for size in sizes], axis=1)
    return check_sample(factors + noise * random.normal(size=factors.shape), factors)


def test_logistic_regression_is_that_of_scikit_learn():
    train, test = draw(120), draw(200, seed=1)
    score = downstream.compute(train, test, sizes=(120,))
    for j in range(2):
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore", (ConvergenceWarning, FutureWarning))
            model = LogisticRegressionCV(Cs=10, cv=KFold(5)).fit(train.codes, train.factors[:, j])
        expected = np.mean(model.predict(test.codes) == test.factors[:, j])
        assert score.details["per_factor"][j] == pytest.approx(expected, abs=0.011)


def test_boosted_trees_see_the_first_points_only():
    train, test = draw(120), draw(200, seed=1)
    score = downstream.compute(train, test, learner="gbt", sizes=(30, 60), seed=2)
    for row, size in enumerate((30, 60)):
        models = fit_boosted_trees(train.codes[:size], train.factors[:size], seed=2)
        expected = [
            np.mean(model.predict(test.codes) == test.factors[:, j]) for j, model in enumerate(models)
        ]
        assert score.details["accuracy"][row].tolist() == expected
    assert score.value == np.mean(score.details["accuracy"][1])
    assert score.details["accuracy_train"][0].mean() > 0.9


@pytest.mark.parametrize("learner", ["logistic", "gbt"])
def test_more_points_help_and_sizes_are_cut(learner):
    train, test = draw(300, noise=0.3), draw(200, seed=1, noise=0.3)
    score = downstream.compute(train, test, learner=learner, sizes=(5, 100, 1000, 10_000))
    assert score.details["sizes"].tolist() == [5, 100, 300]
    assert score.params["sizes"] == (5, 100, 300)
    accuracy = score.details["accuracy"].mean(axis=1)
    assert accuracy[-1] > max(0.8, accuracy[0])
    assert np.isnan(score.details["efficiency"])


def test_efficiency():
    random = np.random.default_rng(0)
    factors = random.integers(0, 2, (10_000, 1))
    codes = factors + 0.5 * random.normal(size=(10_000, 1))
    sample = check_sample(codes, factors)
    score = downstream.compute(sample, sample, sizes=(100, 10_000))
    accuracy = score.details["accuracy"].mean(axis=1)
    assert score.details["efficiency"] == accuracy[0] / accuracy[1]
    assert 0.9 < score.details["efficiency"] <= 1.05


@pytest.mark.parametrize("learner", ["logistic", "gbt"])
def test_few_points_and_rare_values(learner):
    random = np.random.default_rng(0)
    factors = np.stack([np.arange(10), np.zeros(10, int), [0] * 9 + [1]], axis=1)
    train = check_sample(random.normal(size=(10, 2)), factors)
    score = downstream.compute(train, train, learner=learner, sizes=(1, 3, 10))
    assert score.details["accuracy"][:, 1].tolist() == [1, 1, 1]
    assert score.details["accuracy"][0].tolist() == pytest.approx([0.1, 1, 0.9])
    other = check_sample(train.codes, factors + 20)
    assert downstream.compute(train, other, learner=learner, sizes=(10,)).value == 0


def test_constant_codes():
    train = draw(50)
    constant = check_sample(np.ones((50, 2)), train.factors)
    for learner in ("logistic", "gbt"):
        most = np.mean([np.bincount(column).max() / 50 for column in train.factors.T])
        assert downstream.compute(constant, constant, learner=learner, sizes=(50,)).value == pytest.approx(
            most, abs=0.05
        )


@pytest.mark.parametrize("arguments", [{"learner": "svm"}, {"sizes": ()}, {"sizes": (0, 10)}])
def test_wrong_arguments_are_named(arguments):
    with pytest.raises(ArgumentError, match=next(iter(arguments))):
        downstream.compute(draw(20), draw(20), **arguments)


def test_many_values_of_few_points_are_no_warning():
    """More values than half the points, as of an angle."""
    train = draw(60, sizes=(72,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = downstream.compute(train, draw(40, seed=1, sizes=(72,)), sizes=(10, 60))
    assert score.details["sizes"].tolist() == [10, 60]
    assert 0 < score.value < 1
