import numpy as np
import pytest

from unweave.errors import ArgumentError
from unweave.metrics.unlabelled.information_invariance import information_invariance


def half_log_det(matrix):
    return 0.5 * np.linalg.slogdet(np.atleast_2d(matrix))[1]


def gaussian_case(mixing, variance, s, n=600, seed=0):
    """x ~ N(0, I), z = A x + noise: everything is Gaussian, with entropies in closed form."""
    rng = np.random.default_rng(seed)
    mixing = np.asarray(mixing)
    size = len(mixing)
    means = rng.normal(size=(n, mixing.shape[1])) @ mixing.T
    noise = variance * ((1 - s) * np.eye(size) + s)
    total = mixing @ mixing.T + noise

    def information(codes):
        chosen = np.ix_(codes, codes)
        return half_log_det(total[chosen]) - half_log_det(noise[chosen])

    every = list(range(size))
    closed = {
        "information": information(every),
        "per_code": [information([j]) for j in every],
        "per_code_given_others": [
            information(every) - (information([k for k in every if k != j]) if size > 1 else 0) for j in every
        ],
        "total_correlation": 0.5 * np.log(np.diag(total)).sum() - half_log_det(total),
        "conditional_total_correlation": 0.5 * np.log(np.diag(noise)).sum() - half_log_det(noise),
    }
    return means, np.full(means.shape, np.log(variance)), closed


@pytest.mark.parametrize("s", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("mixing", [[[1.0, 0.0], [0.0, 0.8]], [[1.0, 0.3], [0.4, 0.8]]])
def test_estimates_are_the_closed_forms_of_gaussians(mixing, s):
    mean, log_variance, closed = gaussian_case(mixing, 1.0, s)
    score = information_invariance(mean, log_variance, batch_size=600, samples=4, correlation=s)
    for name, value in closed.items():
        np.testing.assert_allclose(score.details[name], value, atol=0.1, err_msg=name)
    gap = np.array(closed["per_code_given_others"]) - closed["per_code"]
    assert score.value == pytest.approx(np.abs(gap).mean(), abs=0.12)
    np.testing.assert_allclose(score.details["gap"], gap, atol=0.15)


@pytest.mark.parametrize("s", [0.0, 0.9])
def test_the_two_sides_of_theorem_1_agree(s):
    mean, log_variance, _ = gaussian_case([[1.2, 0.2, 0.0], [0.0, 0.9, 0.1], [0.3, 0.0, 1.0]], 0.7, s, n=200)
    details = information_invariance(mean, log_variance, correlation=s).details
    assert details["left"] != details["right"]  # from other draws
    assert details["left"] == pytest.approx(details["right"], abs=4 * details["standard_error"])
    assert details["standard_error"] < 0.06


def test_independent_codes_with_independent_noise_keep_their_information():
    mean, log_variance, _ = gaussian_case(np.eye(2), 0.5, 0.0)
    independent = information_invariance(mean, log_variance, batch_size=600, samples=4)
    correlated = information_invariance(mean, log_variance, batch_size=600, samples=4, correlation=0.9)
    assert independent.value < 0.06
    assert correlated.value > 0.2
    assert independent.details["conditional_total_correlation"] == 0.0


def test_one_code_has_no_others():
    mean, log_variance, closed = gaussian_case([[1.0]], 1.0, 0.0)
    score = information_invariance(mean, log_variance, batch_size=600)
    assert score.value == pytest.approx(0.0, abs=1e-12)
    assert score.details["information"] == pytest.approx(closed["information"], abs=0.06)


def test_information_is_at_most_that_of_which_row():
    score = information_invariance(np.arange(8.0)[:, None] * 100 + np.zeros((8, 2)), np.zeros((8, 2)))
    assert score.details["information"] == pytest.approx(np.log(8), abs=1e-9)
    np.testing.assert_allclose(score.details["per_code"], np.log(8), atol=1e-9)
    np.testing.assert_allclose(score.details["per_code_given_others"], 0, atol=1e-9)


def test_the_same_seed_gives_the_same_bits():
    mean, log_variance, _ = gaussian_case(np.eye(2), 1.0, 0.0, n=50)
    one, again = (information_invariance(mean, log_variance, seed=4).details for _ in range(2))
    assert one["left"] == again["left"]
    assert one["left"] != information_invariance(mean, log_variance, seed=5).details["left"]


@pytest.mark.parametrize(
    "params", [{"batch_size": 0}, {"samples": 0}, {"correlation": 1.0}, {"correlation": -0.1}]
)
def test_parameters_are_checked(params):
    with pytest.raises(ArgumentError, match=next(iter(params))):
        information_invariance(np.zeros((4, 2)), np.zeros((4, 2)), **params)
