import numpy as np
import pytest

from unweave.data.factors import FactorSpace
from unweave.errors import ArgumentError
from unweave.metrics.interventions.factor_vae import count_votes, factor_vae
from unweave.metrics.interventions.votes import TableInterventions, vote_source
from unweave.metrics.sample import check_sample

SPACE = FactorSpace(["a", "b", "c", "d"], [4, 10, 3, 7])
SMALL = {"batch_size": 16, "num_train": 1000, "num_eval": 1000, "num_variance_estimate": 2000}


class Function:
    def __init__(self, function, space=SPACE):
        self.function, self.space = function, space

    def codes(self, factors, rng):
        return self.function(factors, rng)


def identity(factors, rng):
    return factors.astype(np.float64)


def noise(factors, rng):
    return rng.randn(len(factors), 5)


def test_identity_scores_one():
    score = factor_vae.compute(Function(identity), **SMALL)
    assert score.value == 1.0
    assert score.details["train_accuracy"] == 1.0
    assert score.details["num_active"] == 4
    matrix = score.details["matrix"]
    np.testing.assert_array_equal(matrix, np.diag(np.diag(matrix)))
    assert matrix.sum() == 1000
    assert score.details["eval_matrix"].sum() == 1000
    assert score.params == {"seed": 0, **SMALL, "prune": "variance", "threshold": 0.05}


def test_scale_and_order_of_codes_do_not_matter():
    def codes(factors, rng):
        return (factors * [1.0, -30.0, 0.5, 200.0])[:, [2, 0, 3, 1]]

    score = factor_vae.compute(Function(codes), **SMALL)
    assert score.value == 1.0
    np.testing.assert_array_equal(score.details["matrix"].argmax(axis=1), [2, 0, 3, 1])


def test_noise_scores_chance():
    assert factor_vae.compute(Function(noise), **SMALL).value == pytest.approx(1 / 4, abs=0.05)


@pytest.mark.parametrize("prune", ["std", "variance"])
def test_constant_codes_score_zero(prune):
    score = factor_vae.compute(Function(lambda f, rng: np.ones((len(f), 3))), prune=prune, **SMALL)
    assert score.value == 0.0
    assert score.details["num_active"] == 0
    assert score.details["matrix"].shape == (3, 4)
    assert not score.details["matrix"].any()


def test_without_pruning_a_constant_code_wins_every_vote():
    def codes(factors, rng):
        return np.column_stack([factors, np.ones(len(factors))]).astype(np.float64)

    score = factor_vae.compute(Function(codes), prune=None, **SMALL)
    assert score.value == pytest.approx(1 / 4, abs=0.05)
    assert score.details["matrix"][4].sum() == 1000
    assert factor_vae.compute(Function(codes), prune="std", threshold=0.0, **SMALL).value == score.value
    pruned = factor_vae.compute(Function(codes), **SMALL)
    assert pruned.value == 1.0
    assert pruned.details["num_active"] == 4
    assert not pruned.details["matrix"][4].any()


def test_std_and_variance_prune_differently():
    def codes(factors, rng):
        return np.column_stack([factors, 0.1 * (factors[:, 0] - 1.5) / np.sqrt(1.25)]).astype(np.float64)

    assert factor_vae.compute(Function(codes), prune="std", **SMALL).details["num_active"] == 5
    assert factor_vae.compute(Function(codes), prune="variance", **SMALL).details["num_active"] == 4


@pytest.mark.parametrize("drawing", [False, True])
def test_votes_are_those_of_a_plain_loop(drawing):
    mix = np.random.default_rng(0).normal(size=(4, 6))

    def codes(factors, rng):
        z = sum(factors[:, [k]] * mix[k] for k in range(4))
        return z + (rng.randn(len(factors), 6) if drawing else 0.0)

    score = factor_vae.compute(Function(codes), seed=3, **SMALL)
    rng = np.random.RandomState(3)

    def draw(n):
        return np.stack([rng.randint(size, size=n) for size in SPACE.sizes], axis=1)

    variance = np.var(codes(draw(2000), rng), axis=0, ddof=1)
    np.testing.assert_array_equal(score.details["variance"], variance)
    for name in ("matrix", "eval_matrix"):
        votes = np.zeros((6, 4), dtype=int)
        for _ in range(1000):
            label = rng.randint(4)
            factors = draw(16)
            factors[:, label] = factors[0, label]
            votes[np.argmin(np.var(codes(factors, rng), axis=0, ddof=1) / variance), label] += 1
        np.testing.assert_array_equal(score.details[name], votes)
    assert 0.3 < score.value < 1


def test_pruned_codes_keep_their_places():
    source = vote_source(Function(identity))
    active = np.array([False, True, True, False])
    counts = count_votes(source, 500, 16, np.ones(4), active, np.random.RandomState(0))
    assert counts.shape == (4, 4)
    assert not counts[~active].any()
    assert counts.sum() == 500


def test_as_in_the_tests_of_the_reference():
    """Ten factors of ten values: the ranges that disentanglement_lib asserts."""
    space = FactorSpace([f"f{k}" for k in range(10)], [10] * 10)
    sizes = {"batch_size": 5, "num_train": 3000, "num_eval": 2000, "num_variance_estimate": 2500}
    assert factor_vae.compute(Function(identity, space), prune=None, **sizes).value > 0.99
    zeros = Function(lambda f, rng: np.zeros((len(f), 10)), space)
    assert factor_vae.compute(zeros, prune=None, **sizes).value == pytest.approx(0.1, abs=0.03)


def test_excluded_factors():
    space = FactorSpace(["a", "b", "c"], [4, 1, 3])
    score = factor_vae.compute(Function(identity, space), **SMALL)
    assert score.details["excluded"].tolist() == [1]
    assert score.details["matrix"].shape == (3, 3)
    assert not score.details["matrix"][:, 1].any()
    assert score.value == 1.0


def test_table():
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(size, size=3000) for size in (3, 5, 4)], axis=1)
    good = TableInterventions(check_sample(factors * 1.0, factors))
    assert factor_vae.compute(good, **SMALL).value == 1.0
    bad = TableInterventions(check_sample(rng.normal(size=(3000, 4)), factors))
    assert factor_vae.compute(bad, **SMALL).value == pytest.approx(1 / 3, abs=0.08)


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": 1},
        {"num_train": 0},
        {"num_eval": 0},
        {"num_variance_estimate": 1},
        {"prune": "kl"},
        {"threshold": -0.1},
        {"threshold": float("nan")},
        {"seed": -1},
    ],
)
def test_arguments_that_are_not_allowed(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        factor_vae.compute(Function(identity), **wrong)
