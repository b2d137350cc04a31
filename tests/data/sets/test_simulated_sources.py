import math

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm
from sklearn.decomposition import FastICA

import unweave as uw
from unweave.data.sets.simulated_sources import Mixing, simulate_sources
from unweave.errors import ArgumentError
from unweave.metrics import Sample
from unweave.metrics.predictors.mcc import mcc

SMALL = {"num_sources": 3, "num_segments": 4, "points_per_segment": 50}


def by_segment(made):
    return made.sources.reshape(len(made.means), -1, made.sources.shape[1])


# --- sources -------------------------------------------------------------------------------------


def test_shapes_of_the_published_protocol():
    made = simulate_sources()
    assert made.observations.shape == made.sources.shape == (40_000, 5)
    assert made.means.shape == made.variances.shape == (40, 5)
    np.testing.assert_array_equal(made.segments, np.arange(40_000) // 1_000)
    assert len(made.mixing.matrices) == 3


@pytest.mark.parametrize("means", [None, (-5, 5)])
def test_moments_of_each_segment_are_those_drawn(means):
    n = 2_000
    made = simulate_sources(4, 10, n, means=means)
    points = by_segment(made)
    # (n - 1) sample variance / variance is chi-squared, and the standardised mean normal: both for 40 draws.
    scaled = (n - 1) * points.var(axis=1, ddof=1) / made.variances
    assert kstest(scaled.ravel(), chi2(n - 1).cdf).pvalue > 0.01
    standard = (points.mean(axis=1) - made.means) / np.sqrt(made.variances / n)
    assert kstest(standard.ravel(), norm.cdf).pvalue > 0.01


def test_sources_are_normal_and_independent_given_the_segment():
    made = simulate_sources(4, 10, 2_000, means=(-5, 5))
    standard = (made.sources - made.means[made.segments]) / np.sqrt(made.variances[made.segments])
    assert kstest(standard.ravel(), norm.cdf).pvalue > 0.01
    assert np.abs(np.corrcoef(standard.T) - np.eye(4)).max() < 4 / math.sqrt(len(standard))


@pytest.mark.parametrize(("modulated", "power"), [("variance", 1.0), ("deviation", 0.5)])
def test_modulation_is_uniform_in_its_range(modulated, power):
    made = simulate_sources(5, 400, 1, modulated=modulated, means=(-5, 5))
    drawn = made.variances**power
    assert kstest(drawn.ravel(), "uniform", (0.5, 2.5)).pvalue > 0.01
    assert kstest(made.means.ravel(), "uniform", (-5, 10)).pvalue > 0.01


def test_means_are_zero_unless_asked_for():
    assert not simulate_sources(**SMALL).means.any()


# --- mixing --------------------------------------------------------------------------------------


def test_mixing_in_numbers():
    mixing = Mixing((np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([[2.0, 0.0], [1.0, 1.0]])), 0.2)
    # A_1 s = (3, -1); leaky: (3, -0.2); A_2: (6, 2.8)
    np.testing.assert_allclose(mixing.forward([[1.0, 2.0]]), [[6.0, 2.8]])
    np.testing.assert_allclose(mixing.inverse([[6.0, 2.8]]), [[1.0, 2.0]])


@pytest.mark.parametrize("matrices", ["uniform", "orthogonal"])
@pytest.mark.parametrize("num_layers", [1, 2, 5])
@pytest.mark.parametrize("num_observed", [None, 7])
def test_sources_are_recovered_from_observations(matrices, num_layers, num_observed):
    made = simulate_sources(
        5, 10, 100, num_layers, num_observed=num_observed, matrices=matrices, means=(-5, 5)
    )
    assert made.observations.shape == (1_000, num_observed or 5)
    np.testing.assert_allclose(made.mixing.inverse(made.observations), made.sources, rtol=1e-7, atol=1e-8)


def test_one_layer_is_linear_and_more_are_not():
    for num_layers, linear in ((1, True), (2, False)):
        made = simulate_sources(**SMALL, num_layers=num_layers)
        left = np.linalg.lstsq(made.sources, made.observations, rcond=None)[0]
        assert np.allclose(made.sources @ left, made.observations) is linear


def test_slope_one_is_linear():
    made = simulate_sources(**SMALL, num_layers=3, slope=1)
    product = np.linalg.multi_dot(made.mixing.matrices[::-1])
    np.testing.assert_allclose(made.observations, made.sources @ product.T, atol=1e-12)


def test_orthogonal_matrices():
    first, second = simulate_sources(
        3, 2, 5, num_layers=2, num_observed=4, matrices="orthogonal"
    ).mixing.matrices
    np.testing.assert_allclose(first.T @ first, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(second.T @ second, np.eye(4), atol=1e-14)


def test_uniform_matrices_are_well_conditioned():
    rng = np.random.default_rng(0)
    others = rng.uniform(-1, 1, (4_000, 5, 5))
    others /= np.linalg.norm(others, axis=2, keepdims=True)
    limit = np.quantile(np.linalg.cond(others), 0.3)
    for seed in range(5):
        for matrix in simulate_sources(5, 2, 5, seed=seed).mixing.matrices:
            assert np.linalg.cond(matrix) < limit
            np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1)


def test_noise_has_its_deviation():
    clean, noisy = (simulate_sources(5, 10, 1_000, noise=noise) for noise in (0.0, 0.3))
    np.testing.assert_array_equal(clean.sources, noisy.sources)
    added = noisy.observations - noisy.mixing.forward(noisy.sources)
    np.testing.assert_allclose(clean.observations + added, noisy.observations, atol=1e-12)
    assert kstest(added.ravel() / 0.3, norm.cdf).pvalue > 0.01


# --- everything from one seed --------------------------------------------------------------------


def test_the_seed_decides_everything():
    one, same, other = (simulate_sources(**SMALL, means=(-1, 1), noise=0.1, seed=s) for s in (3, 3, 4))
    for name in ("observations", "sources", "segments", "means", "variances"):
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
    for name in ("observations", "sources", "means", "variances"):
        assert not np.isclose(getattr(one, name), getattr(other, name)).all()


def test_more_points_come_from_the_same_model():
    few, many = simulate_sources(3, 4, 50), simulate_sources(3, 4, 500)
    np.testing.assert_array_equal(few.variances, many.variances)
    for one, other in zip(few.mixing.matrices, many.mixing.matrices, strict=True):
        np.testing.assert_array_equal(one, other)


# --- what it is for ------------------------------------------------------------------------------


def test_dataset_is_for_training():
    made = simulate_sources(**SMALL, num_observed=6)
    data = made.dataset
    assert data is made.dataset
    assert data.image_shape == (6,)
    assert data.space.sizes == (4,)
    assert not data.space.is_ordered("segment")
    rows = np.arange(len(data))
    np.testing.assert_allclose(data.images(rows), made.observations, rtol=1e-6)
    np.testing.assert_array_equal(data.factors(rows)[:, 0], made.segments)
    method = uw.methods.create("vae", data, latent_size=3, reconstruction="gaussian")
    run = uw.train(method, data, steps=2, batch_size=8, device="cpu")
    codes = uw.evaluate(run, data, ["gaussian_total_correlation"], num_train=20, num_test=20)
    assert math.isfinite(codes["gaussian_total_correlation"].value)


def test_mcc_of_the_sources_with_themselves():
    made = simulate_sources(num_layers=2, points_per_segment=200)
    assert mcc.compute(Sample(made.sources, made.sources)).value == pytest.approx(1)
    ranks = made.sources.argsort(0).argsort(0)
    told = uw.metrics.score("mcc", made.sources[:, ::-1] ** 3, ranks, method="spearman").value
    assert told == pytest.approx(1)
    assert mcc.compute(Sample(made.observations, made.sources)).value < 0.95


def test_linear_ica_undoes_one_layer_but_not_three():
    """Over all segments the sources are scale mixtures of normals: not normal, so linear ICA can find them."""
    scores = []
    for num_layers in (1, 3):
        made = simulate_sources(3, 40, 500, num_layers, modulated="deviation", matrices="orthogonal")
        found = FastICA(random_state=0, whiten="unit-variance", max_iter=1_000).fit_transform(
            made.observations
        )
        scores.append(mcc.compute(Sample(found, made.sources)).value)
    assert scores[0] > 0.99
    assert scores[1] < 0.95


# --- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_sources": 0},
        {"num_segments": 2.5},
        {"points_per_segment": True},
        {"num_layers": 0},
        {"num_observed": 4},
        {"modulation": (0.0, 1.0)},
        {"modulation": (3.0, 0.5)},
        {"modulation": (0.5,)},
        {"modulation": "ab"},
        {"modulated": "scale"},
        {"means": (0.0, math.inf)},
        {"means": (1.0, math.nan)},
        {"noise": -0.1},
        {"noise": "0"},
        {"slope": 0},
        {"slope": 1.5},
        {"matrices": "gaussian"},
        {"seed": -1},
        {"seed": 1.5},
    ],
)
def test_bad_arguments_are_refused(arguments):
    (name,) = arguments
    with pytest.raises(ArgumentError, match=name):
        simulate_sources(**arguments)
