"""InfoMEC: the estimate of information against scikit-learn, and degenerate input."""

import numpy as np
import pytest
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif

from unweave.errors import ArgumentError
from unweave.metrics.information.infomec import infomec, ross_information
from unweave.metrics.sample import check_sample

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers(0, [3, 4], (600, 2))


@pytest.mark.parametrize("neighbours", [1, 3, 10])
@pytest.mark.parametrize("values", [2, 7])
def test_information_is_that_of_scikit_learn(neighbours, values):
    labels = GENERATOR.integers(0, values, 500)
    code = GENERATOR.normal(size=500) + 0.02 * labels
    code /= code.std()
    noise = 1e-10 * np.random.RandomState(0).standard_normal((500, 1))[:, 0]
    expected = mutual_info_classif(
        code[:, None], labels, discrete_features=False, n_neighbors=neighbours, random_state=0
    )
    assert ross_information(code + noise, labels, neighbours) == pytest.approx(expected[0], abs=1e-9)


@pytest.mark.parametrize("neighbours", [1, 4])
def test_information_with_few_points_per_label(neighbours):
    # Not against scikit-learn: for small groups it finds neighbours by x^2 - 2xy + y^2, which rounds.
    labels = GENERATOR.integers(0, 60, 100)
    code = GENERATOR.normal(size=100) + 0.05 * labels
    kept = np.bincount(labels)[labels] > 1
    code, labels = code[kept], labels[kept]
    distance = np.abs(code[:, None] - code)
    expected = digamma(len(code))
    for own, label in zip(distance, labels, strict=True):
        near = np.sort(own[labels == label])[1:]
        k = min(neighbours, len(near))
        nearer = (own < near[k - 1]).sum()
        expected += (digamma(k) - digamma(len(near) + 1) - digamma(nearer)) / len(code)
    assert ross_information(code, labels, neighbours) == pytest.approx(expected)


def test_information_in_closed_form():
    labels = np.repeat([0, 1, 2], 200)
    assert ross_information(labels * 10 + GENERATOR.uniform(size=600), labels, 5) == pytest.approx(
        np.log(3), abs=0.01
    )
    assert ross_information(GENERATOR.normal(size=600), labels, 5) < 0.05
    assert ross_information(np.arange(4.0), np.arange(4), 5) == 0
    assert np.isfinite(ross_information(np.zeros(600), labels, 5))


@pytest.mark.parametrize("discrete", [False, True])
def test_perfect_codes(discrete):
    score = infomec.compute(check_sample(FACTORS, FACTORS), discrete_latents=discrete)
    for name in ("infom", "infoc", "infoe"):
        assert score.details[name] == pytest.approx(1, abs=0.05)
    assert score.value == score.details["infom"]
    np.testing.assert_allclose(np.diag(score.details["matrix"]), 1, atol=0.02)


def test_a_rotated_code_is_explicit_but_not_modular():
    rotated = FACTORS @ [[1.0, 1.0], [1.0, -1.0]]
    score = infomec.compute(check_sample(rotated, FACTORS))
    assert score.value < 0.6
    assert score.details["infoe"] > 0.95


def test_small_latents_are_not_active():
    codes = np.hstack([FACTORS, 0.01 * GENERATOR.uniform(size=(600, 1))])
    np.testing.assert_array_equal(
        infomec.compute(check_sample(codes, FACTORS)).details["active"], [True, True, False]
    )


def test_seeds():
    sample = check_sample(FACTORS, FACTORS)
    assert infomec.compute(sample, seed=3).value == infomec.compute(sample, seed=3).value


def test_degenerate():
    one_latent = infomec.compute(check_sample(FACTORS[:, :1], FACTORS))
    assert np.isnan(one_latent.details["infoc"])
    assert np.isfinite(one_latent.value)
    assert infomec.compute(check_sample(FACTORS, FACTORS[:, 0])).value == 1
    for discrete in (False, True):
        constant = infomec.compute(check_sample(np.full((600, 2), 0.1), FACTORS), discrete_latents=discrete)
        assert constant.value == 0
        assert constant.details["infoe"] == pytest.approx(0, abs=1e-6)
    with_constant = np.hstack([FACTORS, np.zeros((600, 1), dtype=int)])
    score = infomec.compute(check_sample(FACTORS, with_constant))
    np.testing.assert_array_equal(score.details["excluded"], [2])
    assert np.isnan(score.details["per_factor"][2])
    assert score.value == infomec.compute(check_sample(FACTORS, FACTORS)).value
    few = infomec.compute(check_sample([[0.1, 1.0], [0.2, 0.5], [0.9, 0.1]], [[0], [1], [2]]))
    assert np.isfinite(few.value)
    with pytest.raises(ArgumentError, match="num_neighbors"):
        infomec.compute(check_sample(FACTORS, FACTORS), num_neighbors=0)
    with pytest.raises(ArgumentError, match="at least 2 points"):
        infomec.compute(check_sample([[0.0]], [[1]]))
