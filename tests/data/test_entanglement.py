import itertools

import numpy as np
import pytest
import torch
from scipy.stats import beta, chisquare, gamma, kstest, laplace, lognorm, norm, ortho_group, poisson, uniform

import unweave as uw
from unweave.data.entanglement import Entanglement, entangle, householder
from unweave.data.own.arrays import from_arrays
from unweave.data.own.functions import from_function
from unweave.data.supervision.weak import correlate
from unweave.errors import ArgumentError

MIXED = [uniform(-2, 3), gamma(2), beta(0.5, 2), laplace(1, 2)]


def draw(priors, n, seed=0):
    return np.stack([p.rvs(n, random_state=100 * seed + i) for i, p in enumerate(priors)], axis=1)


def grid(sizes=(10, 10, 10, 10)):
    return from_function([f"f{i}" for i in range(len(sizes))], list(sizes), lambda f: f, name="grid")


def all_factors(data):
    return data.factors(np.arange(len(data)))


# --- the matrix ----------------------------------------------------------------------------------


def test_matrix_of_two_in_numbers():
    # v = (1/2, √3/2)
    root = np.sqrt(0.75)
    np.testing.assert_allclose(householder(2, 0.25), [[0.5, -root], [-root, -0.5]], atol=1e-15)


@pytest.mark.parametrize(("d", "alpha"), [(2, None), (3, None), (5, None), (40, None), (2, 0.01), (7, 0.49)])
def test_matrix_is_a_reflection_without_zeros(d, alpha):
    matrix = householder(d, alpha)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(d), atol=1e-14)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.abs(matrix).min() > 1e-3
    # A reflection turns v, and nothing orthogonal to it, around: v is the eigenvector of -1.
    values, vectors = np.linalg.eigh(matrix)
    np.testing.assert_allclose(values, [-1] + [1] * (d - 1), atol=1e-12)
    squares = vectors[:, 0] ** 2
    if alpha is not None:
        np.testing.assert_allclose(squares, [alpha] + [(1 - alpha) / (d - 1)] * (d - 1), atol=1e-12)


@pytest.mark.parametrize("d", [2, 3, 4, 5, 8])
def test_default_alpha_has_the_smallest_largest_entry(d):
    best = min(np.abs(householder(d, alpha)).max() for alpha in np.linspace(0.001, 0.499, 999))
    assert np.abs(householder(d)).max() <= best + 1e-12


@pytest.mark.parametrize("alpha", [0, 0.5, -1, float("nan"), "0.2"])
def test_alpha_outside_the_proof_is_refused(alpha):
    with pytest.raises(ArgumentError, match="alpha"):
        householder(3, alpha)


@pytest.mark.parametrize("d", [1, 0, 2.5, True, "2"])
def test_one_dimension_cannot_be_rotated(d):
    with pytest.raises(ArgumentError, match="d = "):
        householder(d)


# --- the map -------------------------------------------------------------------------------------


def test_closed_form_for_normal_priors():
    location, scale = np.array([1.0, -2.0, 0.5]), np.array([0.1, 3.0, 1.0])
    f = Entanglement([norm(m, s) for m, s in zip(location, scale, strict=True)])
    z = draw(f.priors, 50)
    expected = location + scale * (((z - location) / scale) @ householder(3).T)
    np.testing.assert_allclose(f.forward(z), expected, rtol=1e-9, atol=1e-9)


def test_closed_form_for_lognormal_priors():
    f = Entanglement([lognorm(1)] * 2, householder(2, 0.3))
    z = draw(f.priors, 50)
    np.testing.assert_allclose(f.forward(z), np.exp(np.log(z) @ householder(2, 0.3)), rtol=1e-9)


def test_marginals_stay():
    moved = Entanglement(MIXED).forward(draw(MIXED, 5_000))
    for column, prior in zip(moved.T, MIXED, strict=True):
        assert kstest(column, prior.cdf).pvalue > 0.01


def test_entangled_factors_are_jointly_independent():
    """No total correlation: cells of equal probability, over all four factors at once, are equally filled."""
    moved = Entanglement(MIXED).forward(draw(MIXED, 20_000))
    cells = np.stack([4 * p.cdf(c) for c, p in zip(moved.T, MIXED, strict=True)], axis=1).astype(int)
    counts = np.bincount(np.ravel_multi_index(cells.T, (4,) * 4), minlength=4**4)
    assert chisquare(counts).pvalue > 0.01
    # The same test sees that true and moved factors are dependent.
    first = (4 * MIXED[0].cdf(draw(MIXED, 20_000)[:, 0])).astype(int)
    assert chisquare(np.bincount(4 * first + cells[:, 1], minlength=16)).pvalue < 1e-100


@pytest.mark.parametrize("matrix", [None, ortho_group.rvs(4, random_state=3)], ids=["paper", "random"])
def test_inverse_in_both_directions(matrix):
    f, z = Entanglement(MIXED, matrix), draw(MIXED, 1_000)
    np.testing.assert_allclose(f.inverse(f.forward(z)), z, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(f.forward(f.inverse(z)), z, rtol=1e-7, atol=1e-9)


def test_the_papers_map_is_its_own_inverse():
    f, z = Entanglement(MIXED), draw(MIXED, 100)
    np.testing.assert_allclose(f.forward(f.forward(z)), z, rtol=1e-7, atol=1e-9)


def test_jacobian_is_that_of_finite_differences_and_has_no_zero():
    f, z = Entanglement(MIXED), draw(MIXED, 200)
    # Central differences need room on both sides.
    z = z[np.all([np.abs(p.cdf(c) - 0.5) < 0.45 for c, p in zip(z.T, MIXED, strict=True)], axis=0)]
    step = 1e-6
    columns = [(f.forward(z + step * e) - f.forward(z - step * e)) / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(f.jacobian(z), np.stack(columns, axis=2), rtol=1e-4, atol=1e-6)
    assert len(z) > 50
    assert np.abs(f.jacobian(draw(MIXED, 5_000))).min() > 0


def test_density_stays():
    """p(z) = p(f(z)) |det ∂f/∂z|: the change of variables of a map that keeps the distribution."""
    f, z = Entanglement(MIXED), draw(MIXED, 500)

    def density(points):
        return np.prod([p.pdf(c) for c, p in zip(points.T, MIXED, strict=True)], axis=0)

    volume = np.abs(np.linalg.det(f.jacobian(z)))
    np.testing.assert_allclose(density(f.forward(z)) * volume, density(z), rtol=1e-6)


def test_tails_and_edges():
    f = Entanglement([norm(), norm()])
    far = np.array([[20.0, 30.0], [-20.0, 30.0]])
    np.testing.assert_allclose(f.forward(far), far @ householder(2), rtol=1e-9)
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    moved = Entanglement([uniform(0, 1)] * 2).forward(corners)
    assert np.isfinite(moved).all()
    assert ((moved >= 0) & (moved <= 1)).all()
    assert f.forward(np.empty((0, 2))).shape == (0, 2)


@pytest.mark.parametrize(
    ("priors", "matrix", "told"),
    [
        ([norm()], None, "two or more"),
        ([norm(), poisson(3)], None, r"priors\[1\].*frozen continuous"),
        ([norm(), norm()], np.eye(3), "shape"),
        ([norm(), norm()], [[1.0, 0.0], [0.0, 1.0]], "without zeros"),
        ([norm(), norm()], [[1.0, 0.5], [0.5, 1.0]], "orthogonal"),
        ([norm(), norm()], [[np.nan, 0.5], [0.5, 1.0]], "orthogonal"),
    ],
)
def test_what_is_no_entanglement_is_refused(priors, matrix, told):
    with pytest.raises(ArgumentError, match=told):
        Entanglement(priors, matrix)


@pytest.mark.parametrize("z", [[0.5, 0.5], [[0.5]], [[0.5, 1.1]], [[0.5, np.nan]]])
def test_points_outside_the_support_are_refused(z):
    with pytest.raises(ArgumentError, match="z"):
        Entanglement([uniform(0, 1)] * 2).forward(z)


# --- data sets -----------------------------------------------------------------------------------


def test_a_grid_stays_a_grid():
    data = grid((3, 6, 8, 5))
    other = entangle(data)
    assert other.index.complete
    assert len(other) == len(data)
    assert other.space.sizes == data.space.sizes
    assert other.space.names == ("entangled_f0", "entangled_f1", "entangled_f2", "entangled_f3")


def test_images_stay_with_their_rows():
    data = grid((4, 5, 6))
    other, rows = entangle(data), np.arange(120)
    np.testing.assert_array_equal(other.images(rows), data.images(rows))
    # Asked by its entangled factors, an image is that of the row which has them.
    np.testing.assert_array_equal(other.images(other.factors(rows)), data.images(rows))
    np.testing.assert_array_equal(other.rows(other.factors(rows)), rows)
    stored = from_arrays(np.arange(120)[:, None], all_factors(data))
    np.testing.assert_array_equal(entangle(stored).images(rows), stored.images(rows))
    np.testing.assert_array_equal(all_factors(entangle(stored)), all_factors(other))


def test_stochastic_simulators_draw_as_before():
    data = from_function(["a", "b"], [4, 5], lambda f, rng: f + rng.random(f.shape), stochastic=True)
    rows = np.arange(20)
    images = [d.images(rows, np.random.default_rng(5)) for d in (data, entangle(data))]
    np.testing.assert_array_equal(*images)


def test_training_cannot_tell_the_difference():
    data = grid((4, 5, 6))
    other = entangle(data)
    for step in range(3):
        assert torch.equal(data.batch(step, 32).images, other.batch(step, 32).images)


def test_uneven_tables_keep_their_joint_distribution():
    rng = np.random.default_rng(0)
    factors = np.stack(
        [rng.binomial(5, 0.3, 3_000), rng.integers(0, 7, 3_000), rng.integers(0, 3, 3_000)], axis=1
    )
    factors[:, 2] = (factors[:, 2] + factors[:, 0]) % 3  # not independent
    data = from_arrays(np.zeros((3_000, 1)), factors)
    before, after = all_factors(data), all_factors(entangle(data))
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(after[np.lexsort(after.T)], before[np.lexsort(before.T)])


def test_fine_grids_follow_the_map():
    """With many values the noise within a value matters little: compare with f at the values' centres."""
    data = grid((150, 150))
    expected = Entanglement([uniform(0, 1)] * 2).forward((all_factors(data) + 0.5) / 150)
    error = np.abs((all_factors(entangle(data)) + 0.5) / 150 - expected)
    assert error[:, 0].mean() < 0.01
    assert error[:, 1].mean() < 0.04  # ranks among the 150 rows that share the first value


def test_given_matrix_is_used():
    data, matrix = grid((150, 150)), householder(2, 0.45)
    expected = Entanglement([uniform(0, 1)] * 2, matrix).forward((all_factors(data) + 0.5) / 150)
    error = np.abs((all_factors(entangle(data, matrix=matrix)) + 0.5) / 150 - expected)
    assert error.mean() < 0.03


def test_constant_factors_stay():
    data = from_function(["a", "one", "b"], [6, 1, 7], lambda f: f)
    other = entangle(data)
    assert other.space.names == ("entangled_a", "one", "entangled_b")
    assert (all_factors(other)[:, 1] == 0).all()
    pair = from_function(["a", "b"], [6, 7], lambda f: f)
    np.testing.assert_array_equal(all_factors(other)[:, [0, 2]], all_factors(entangle(pair)))


def test_the_seed_decides():
    data = grid((4, 5, 6))
    np.testing.assert_array_equal(all_factors(entangle(data, 3)), all_factors(entangle(data, 3)))
    assert not np.array_equal(all_factors(entangle(data, 3)), all_factors(entangle(data, 4)))


def test_categories_become_ordered():
    data = from_arrays(np.zeros((4, 1)), {"shape": ["ball", "cube", "ball", "cube"], "x": [0, 0, 1, 1]})
    other = entangle(data)
    assert other.space.is_ordered("entangled_shape")
    assert not other.space.value_names


def test_endless_data_goes_through_the_map_itself():
    data = from_function(["a", "b", "c"], [(0, 1), (-2, 2), (5, 6)], lambda factors: factors)
    entangled = entangle(data)
    assert entangled.space.names == ("entangled_a", "entangled_b", "entangled_c")
    factors = entangled.sample_factors(4_000, np.random.default_rng(0))
    seen = entangled.images(factors)  # the true factors, in float32
    priors = [uniform(0, 1), uniform(-2, 4), uniform(5, 1)]
    np.testing.assert_allclose(
        Entanglement(priors).forward(seen.astype(float)), factors, atol=1e-3
    )  # images are float32
    for column, prior in zip(seen.T, priors, strict=True):
        assert kstest(column, prior.cdf).pvalue > 0.01
    correlations = np.corrcoef(factors.T, seen.T)
    assert np.abs(correlations[3:, 3:] - np.eye(3)).max() < 0.06
    assert np.abs(correlations[:3, 3:]).min() > 0.2
    with pytest.raises(ArgumentError, match="1 of"):
        entangle(from_function(["a"], [(0, 1)], lambda factors: factors))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (from_function(["a", "b"], [3, (0, 1)], lambda f: f), "endless"),
        (from_arrays(np.zeros((3, 1)), {"a": [0, 1, 2], "b": [0.1, 0.2, 0.7]}), "continuous"),
        (from_arrays(np.zeros((3, 1))), "0 of the factors"),
        (from_function(["a", "b"], [3, 1], lambda f: f), "1 of the factors"),
        (correlate(grid((4, 4)), "f0", "f1", 0.3), "uniform sampling"),
        (from_function(["a", "b"], [2**13, 2**13], lambda f: f), "at most"),
    ],
)
def test_what_cannot_be_entangled_is_refused(data, told):
    with pytest.raises(ArgumentError, match=told):
        entangle(data)


@pytest.mark.parametrize("seed", [-1, 0.5, True, None])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(ArgumentError, match="seed"):
        entangle(grid((4, 4)), seed)


# --- what it is for ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::unweave.evaluation.points.SharedPointsWarning")
def test_a_code_is_perfect_for_one_and_entangled_for_the_other():
    data = grid()
    other = entangle(data)
    lookup = all_factors(other)
    codes = {
        "true": lambda images: images,
        "entangled": lambda images: lookup[data.rows(images.astype(int))],
    }
    options = {"protocol": "dlib", "num_train": 1_500, "num_test": 500}
    for own, foreign, code in ((data, other, codes["true"]), (other, data, codes["entangled"])):
        good = uw.evaluate(code, own, ["mig", "dci", "factor_vae"], **options)
        bad = uw.evaluate(code, foreign, ["mig", "dci", "factor_vae"], **options)
        assert good["mig"].value > 0.98
        assert good["dci"].value > 0.98
        assert good["factor_vae"].value == 1
        assert bad["mig"].value < 0.03
        assert bad["dci"].value < 0.03
        assert bad["factor_vae"].value < 0.35
