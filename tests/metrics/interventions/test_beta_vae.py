import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from unweave.data.factors import FactorSpace
from unweave.errors import ArgumentError
from unweave.metrics.interventions.beta_vae import beta_vae, difference_points
from unweave.metrics.interventions.votes import TableInterventions, vote_source
from unweave.metrics.sample import check_sample

SPACE = FactorSpace(["a", "b", "c", "d"], [4, 10, 3, 7])
SMALL = {"batch_size": 16, "num_train": 1000, "num_eval": 1000}


class Function:
    def __init__(self, function, space=SPACE):
        self.function, self.space = function, space

    def codes(self, factors, rng):
        return self.function(factors, rng)


def identity(factors, rng):
    return factors.astype(np.float64)


def noise(factors, rng):
    return rng.randn(len(factors), 5)


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear_ovr"])
def test_identity_scores_one(solver):
    score = beta_vae.compute(Function(lambda f, rng: f / np.array(SPACE.sizes) * 10), solver=solver, **SMALL)
    assert score.value == 1.0
    assert score.details["train_accuracy"] == 1.0
    assert score.params == {"seed": 0, **SMALL, "solver": solver}


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear_ovr"])
def test_noise_scores_chance(solver):
    assert beta_vae.compute(Function(noise), solver=solver, **SMALL).value == pytest.approx(1 / 4, abs=0.05)


def test_constant_codes_score_the_most_frequent_factor():
    score = beta_vae.compute(Function(lambda f, rng: np.ones((len(f), 3))), **SMALL)
    _, labels = difference_points(vote_source(Function(identity)), 2000, 16, np.random.RandomState(0))
    guess = np.bincount(labels[:1000]).argmax()
    assert score.details["train_accuracy"] == np.mean(labels[:1000] == guess)
    assert score.value == np.mean(labels[1000:] == guess)


def test_two_factors_in_one_code_are_not_told_apart():
    space = FactorSpace(["a", "b"], [5, 5])
    score = beta_vae.compute(Function(lambda f, rng: f.sum(axis=1, keepdims=True) * 1.0, space), **SMALL)
    assert score.value == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("drawing", [False, True])
def test_points_are_those_of_a_plain_loop(drawing):
    mix = np.random.default_rng(0).normal(size=(4, 6))

    def codes(factors, rng):
        return factors @ mix + (rng.randn(len(factors), 6) if drawing else 0.0)

    points, labels = difference_points(vote_source(Function(codes)), 300, 32, np.random.RandomState(5))
    rng = np.random.RandomState(5)
    for point, label in zip(points, labels, strict=True):
        assert rng.randint(4) == label
        first, second = (np.stack([rng.randint(s, size=32) for s in SPACE.sizes], axis=1) for _ in range(2))
        second[:, label] = first[:, label]
        first, second = codes(first, rng), codes(second, rng)
        # Matrix products of other shapes may differ in the last bit.
        np.testing.assert_allclose(point, np.mean(np.abs(first - second), axis=0), rtol=1e-13)


def test_reduction_is_bit_for_bit_that_of_one_batch():
    rng = np.random.default_rng(1)
    for batch_size in (2, 5, 64, 200):
        for latents in (1, 2, 3, 10):
            blocks = rng.normal(size=(20, batch_size, latents)).astype(np.float32).astype(np.float64)
            np.testing.assert_array_equal(
                np.abs(blocks).mean(axis=1), [np.mean(np.abs(block), axis=0) for block in blocks]
            )
            np.testing.assert_array_equal(
                blocks.var(axis=1, ddof=1), [np.var(block, axis=0, ddof=1) for block in blocks]
            )


def test_two_solvers_nearly_agree():
    mix = np.random.default_rng(3).normal(size=(4, 4))
    one, other = (
        beta_vae.compute(Function(lambda f, rng: f @ mix), solver=solver, **SMALL).value
        for solver in ("lbfgs", "liblinear_ovr")
    )
    assert 0.5 < one < 1
    assert one == pytest.approx(other, abs=0.05)


def test_liblinear_of_two_factors_is_scikit_learns():
    space = FactorSpace(["a", "b"], [3, 4])
    representation = Function(lambda f, rng: f @ [[1.0, 0.5], [0.8, 1.0]], space)
    points, labels = difference_points(vote_source(representation), 1000, 16, np.random.RandomState(0))
    model = LogisticRegression(solver="liblinear").fit(points, labels)
    score = beta_vae.compute(representation, solver="liblinear_ovr", **SMALL)
    assert score.details["train_accuracy"] == model.score(points, labels)


def test_seeds():
    mix = np.random.default_rng(3).normal(size=(4, 4))
    values = [
        beta_vae.compute(Function(lambda f, rng: f @ mix), seed=seed, **SMALL).value for seed in (0, 0, 1)
    ]
    assert values[0] == values[1] != values[2]


def test_one_training_point_is_always_guessed():
    score = beta_vae.compute(Function(identity), batch_size=4, num_train=1, num_eval=400)
    assert score.details["train_accuracy"] == 1.0
    assert score.value == pytest.approx(1 / 4, abs=0.1)


def test_solver_that_does_not_converge_says_so():
    scale = np.array([1e-4, 1.0, 1e3, 1e2])
    score = beta_vae.compute(Function(lambda f, rng: f * scale), **SMALL)
    assert score.details["converged"] is False


def test_excluded_factors():
    space = FactorSpace(["a", "b", "c"], [4, 1, 3])
    score = beta_vae.compute(Function(identity, space), **SMALL)
    assert score.details["excluded"].tolist() == [1]
    assert score.value == 1.0


def test_table():
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(size, size=3000) for size in (3, 5, 4)], axis=1)
    good = TableInterventions(check_sample(factors * 1.0, factors))
    assert beta_vae.compute(good, **SMALL).value == 1.0
    bad = TableInterventions(check_sample(rng.normal(size=(3000, 4)), factors))
    assert beta_vae.compute(bad, **SMALL).value == pytest.approx(1 / 3, abs=0.06)


def test_table_does_not_tell_a_factor_by_how_few_rows_share_a_value():
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(2, size=3000), rng.integers(1000, size=3000)], axis=1)
    noise = TableInterventions(check_sample(rng.normal(size=(3000, 4)), factors))
    assert beta_vae.compute(noise, **SMALL).value == pytest.approx(1 / 2, abs=0.06)


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": 0},
        {"num_train": 0},
        {"num_eval": -1},
        {"batch_size": 2.5},
        {"solver": "sag"},
        {"seed": -1},
    ],
)
def test_arguments_that_are_not_allowed(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        beta_vae.compute(Function(identity), **wrong)
