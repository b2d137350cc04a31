import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from unweave.metrics.solvers.l1_svm import _mersenne_twister, _next_word, _random_below, fit_l1_svm


def draw(n, classes, latents=6, seed=0, noise=0.3):
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, n)
    labels[:classes] = np.arange(classes)
    mixing = random.normal(size=(2, latents))
    codes = np.stack([labels / classes, random.normal(size=n)], axis=1) @ mixing
    return codes + noise * random.normal(size=(n, latents)), labels


def fit(codes, labels, seed, C=1.0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearSVC(penalty="l1", dual=False, C=C, random_state=seed).fit(codes, labels)


@pytest.mark.parametrize("classes", [2, 3, 12, 40])
@pytest.mark.parametrize("n", [90, 500, 3000])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_weights_and_iterations_are_liblinears(classes, n, seed):
    codes, labels = draw(n, classes, seed=seed)
    weights, iterations = fit_l1_svm(codes, labels, classes, seed)
    model = fit(codes, labels, seed)
    np.testing.assert_allclose(weights[:, :-1], model.coef_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(weights[:, -1], model.intercept_, rtol=1e-6, atol=1e-6)
    assert iterations == model.n_iter_


@pytest.mark.parametrize("C", [0.01, 100.0])
def test_any_weight_of_the_loss(C):
    codes, labels = draw(400, 4)
    weights, iterations = fit_l1_svm(codes, labels, 4, 3, C)
    model = fit(codes, labels, 3, C)
    np.testing.assert_allclose(weights[:, :-1], model.coef_, rtol=1e-5, atol=1e-6)
    assert iterations == model.n_iter_


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_codes_of_any_scale_that_moved_and_some_that_are_constant(scale):
    codes, labels = draw(300, 5)
    codes = scale * codes + np.array([0, 3, 0, 0, -2, 0])
    codes[:, 2] = 0.0
    weights, iterations = fit_l1_svm(codes, labels, 5, 0)
    model = fit(codes, labels, 0)
    np.testing.assert_allclose(weights[:, :-1], model.coef_, rtol=1e-5, atol=1e-5 / scale)
    assert iterations == model.n_iter_
    assert (weights[:, 2] == 0).all()


def test_the_draws_are_those_of_the_standard_generator():
    state = _mersenne_twister(5489)
    words = [_next_word(state) for _ in range(10_000)]
    assert words[0] == 3499211612
    assert words[-1] == 4123659995  # the 10,000th, which the C++ standard names


def test_draws_below_a_number_are_uniform():
    state = _mersenne_twister(1)
    counts = np.bincount([_random_below(7, state) for _ in range(70_000)], minlength=7)
    assert len(counts) == 7
    assert np.abs(counts - 10_000).max() < 5 * np.sqrt(10_000 * 6 / 7)
