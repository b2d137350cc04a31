import numpy as np
import pytest
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from unweave.data.factors import FactorSpace
from unweave.errors import ArgumentError
from unweave.metrics.interventions.beta_vae import difference_points
from unweave.metrics.interventions.votes import TableInterventions, vote_source
from unweave.metrics.interventions.z_diff import z_diff
from unweave.metrics.sample import check_sample

SPACE = FactorSpace(["a", "b", "c", "d"], [4, 10, 3, 7])
SMALL = {"batch_size": 16, "num_train": 1000, "num_eval": 1000}


class Function:
    space = SPACE

    def __init__(self, function):
        self.function = function

    def codes(self, factors, rng):
        return self.function(factors, rng)


def identity(factors, rng):
    return (factors - np.array(SPACE.sizes) / 2) / np.array(SPACE.sizes) * 10


def test_identity_scores_one():
    score = z_diff.compute(Function(identity), **SMALL)
    assert score.value == 1.0
    assert score.details["converged"] is True
    assert score.params == {"seed": 0, **SMALL, "C": 0.01}


def test_noise_scores_chance():
    assert z_diff.compute(Function(lambda f, rng: rng.randn(len(f), 5)), **SMALL).value == pytest.approx(
        1 / 4, abs=0.05
    )


def test_constant_codes_score_chance():
    score = z_diff.compute(Function(lambda f, rng: np.ones((len(f), 3))), **SMALL)
    assert score.value == pytest.approx(1 / 4, abs=0.05)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_another_solver_of_the_same_machine_agrees(C):
    """libsvm leaves the intercept free, so accuracies are close but not the same."""
    mix = np.eye(4) + 0.4 * np.random.default_rng(3).normal(size=(4, 4))
    representation = Function(lambda f, rng: identity(f, rng) @ mix)
    points, labels = difference_points(vote_source(representation), 1000, 16, np.random.RandomState(0))
    other = OneVsRestClassifier(SVC(kernel="linear", C=C)).fit(points, labels).score(points, labels)
    score = z_diff.compute(representation, C=C, **SMALL)
    assert score.details["train_accuracy"] == pytest.approx(other, abs=0.05)


def test_table():
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(size, size=3000) for size in (3, 5, 4)], axis=1)
    score = z_diff.compute(TableInterventions(check_sample(factors * 2.0, factors)), **SMALL)
    assert score.value == 1.0


@pytest.mark.parametrize("wrong", [{"C": 0}, {"C": float("nan")}, {"batch_size": 0}, {"seed": -1}])
def test_arguments_that_are_not_allowed(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        z_diff.compute(Function(identity), **wrong)
