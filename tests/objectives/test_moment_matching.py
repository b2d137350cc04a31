import itertools

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from unweave.errors import ArgumentError
from unweave.objectives.gaussian import reparameterise, standard_noise
from unweave.objectives.moment_matching import (
    covariance,
    dip_i_covariance,
    dip_ii_covariance,
    dip_penalty,
    third_central_moments,
    third_moment_penalty,
)

CORRELATIONS = [0.0, 0.3, 0.9]


def posteriors(count=6, size=3, seed=0):
    """Skewed means and variances that depend on them: every term of the moments is far from zero."""
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(count, size, generator=generator, dtype=torch.float64).exp()
    noise = torch.randn(count, size, generator=generator, dtype=torch.float64)
    return mean, 0.7 * mean.log() + 0.5 * noise


def exact_nodes(mean, log_variance, s):
    """Points and weights that integrate polynomials up to degree 5 over the mixture without error.

    Gauss-Hermite quadrature with 3 nodes per latent, mixed by a Cholesky factor of the correlation.
    """
    count, size = mean.shape
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    weights = weights / weights.sum()
    noise = np.array(list(itertools.product(nodes, repeat=size)))
    weight = np.prod(list(itertools.product(weights, repeat=size)), axis=1)
    mixed = noise @ np.linalg.cholesky(np.where(np.eye(size) == 1, 1.0, s)).T
    sigma = np.sqrt(np.exp(log_variance.numpy()))
    points = mean.numpy()[:, None] + sigma[:, None] * mixed
    return points.reshape(-1, size), np.tile(weight / count, count)


def third_of(points, weights):
    centred = points - weights @ points
    return np.einsum("n,ni,nj,nk->ijk", weights, centred, centred, centred)


def test_covariance_is_numpys_biased_one():
    mean, _ = posteriors()
    for ours in (covariance(mean), dip_i_covariance(mean)):
        np.testing.assert_allclose(ours.numpy(), np.cov(mean.numpy().T, bias=True), rtol=1e-12)


@pytest.mark.parametrize("s", CORRELATIONS)
def test_dip_ii_covariance_is_that_of_the_mixture(s):
    mean, log_variance = posteriors()
    points, weights = exact_nodes(mean, log_variance, s)
    expected = np.cov(points.T, aweights=weights, bias=True)
    np.testing.assert_allclose(dip_ii_covariance(mean, log_variance, s).numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("s", CORRELATIONS)
def test_dip_ii_covariance_by_sampling(s):
    mean, log_variance = posteriors()
    copies = 50_000
    many = mean.repeat(copies, 1), log_variance.repeat(copies, 1)
    z = reparameterise(*many, standard_noise(many[0], s, torch.Generator().manual_seed(1)))
    centred = (z - mean.mean(0)).numpy()
    products = np.einsum("ni,nj->nij", centred, centred)
    error = products.std(0) / np.sqrt(len(z))
    expected = dip_ii_covariance(mean, log_variance, s).numpy()
    assert (np.abs(products.mean(0) - expected) < 5 * error).all()


def test_dip_ii_adds_each_latents_own_mean_variance_to_the_diagonal_only():
    mean, log_variance = posteriors()
    added = dip_ii_covariance(mean, log_variance) - dip_i_covariance(mean)
    variance = np.exp(log_variance.numpy()).mean(0)
    np.testing.assert_allclose(added.numpy(), np.diag(variance), atol=1e-12)
    assert np.ptp(variance) > 0.1  # one scalar for all latents would not have passed


def test_penalty_weighs_diagonal_and_off_diagonal_apart():
    matrix = torch.tensor([[3.0, 0.5, -1.0], [0.5, 1.0, 2.0], [-1.0, 2.0, 0.0]], dtype=torch.float64)
    off = 2 * (0.25 + 1 + 4)
    on = 4 + 0 + 1
    assert dip_penalty(matrix, 1.0, 0.0).item() == pytest.approx(off)
    assert dip_penalty(matrix, 0.0, 1.0).item() == pytest.approx(on)
    assert dip_penalty(matrix, 5.0, 50.0).item() == pytest.approx(5 * off + 50 * on)
    assert dip_penalty(torch.eye(4), 5.0, 50.0).item() == 0


def test_third_moments_of_mean_codes_on_a_tiny_discrete_distribution():
    # Two latents: (0, 0) three times and (4, 8) once. Deviations are (-1, -2) and (3, 6).
    mean = torch.tensor([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [4.0, 8.0]], dtype=torch.float64)
    cube = (3 * (-1) ** 3 + 3**3) / 4
    expected = cube * torch.tensor([[[1.0, 2.0], [2.0, 4.0]], [[2.0, 4.0], [4.0, 8.0]]]).double()
    torch.testing.assert_close(third_central_moments(mean), expected)
    assert third_moment_penalty(mean).item() == pytest.approx(cube**2 * (1 + 4) ** 3)


@pytest.mark.parametrize("s", CORRELATIONS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_third_moments_are_those_of_the_mixture(s, size):
    mean, log_variance = posteriors(size=size)
    expected = third_of(*exact_nodes(mean, log_variance, s))
    ours = third_central_moments(mean, log_variance, s)
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-9, atol=1e-10)
    penalty = third_moment_penalty(mean, log_variance, s)
    assert penalty.item() == pytest.approx((expected**2).sum())


@pytest.mark.parametrize("s", CORRELATIONS)
def test_third_moments_by_sampling(s):
    mean, log_variance = posteriors()
    copies = 50_000
    many = mean.repeat(copies, 1), log_variance.repeat(copies, 1)
    z = reparameterise(*many, standard_noise(many[0], s, torch.Generator().manual_seed(2)))
    centred = (z - mean.mean(0)).numpy()
    expected = third_central_moments(mean, log_variance, s).numpy()
    for i, j, k in itertools.combinations_with_replacement(range(3), 3):
        product = centred[:, i] * centred[:, j] * centred[:, k]
        assert abs(product.mean() - expected[i, j, k]) < 5 * product.std() / np.sqrt(len(z))


@pytest.mark.parametrize("s", CORRELATIONS)
def test_third_moments_are_symmetric(s):
    moments = third_central_moments(*posteriors(), s)
    for order in itertools.permutations(range(3)):
        torch.testing.assert_close(moments.permute(order), moments)


def test_a_symmetric_mixture_has_no_third_moments():
    mean, log_variance = posteriors()
    both = torch.cat([mean, -mean]), torch.cat([log_variance, log_variance])
    assert third_moment_penalty(*both, 0.5).item() < 1e-20


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_type_is_kept(dtype):
    mean, log_variance = (x.to(dtype) for x in posteriors())
    assert dip_ii_covariance(mean, log_variance, 0.5).dtype == dtype
    assert third_moment_penalty(mean, log_variance, 0.5).dtype == dtype


@pytest.mark.parametrize("s", CORRELATIONS)
def test_gradients(s):
    inputs = [x.requires_grad_() for x in posteriors(4, 2)]
    assert gradcheck(covariance, inputs[:1])
    assert gradcheck(lambda mean: dip_penalty(dip_i_covariance(mean), 2.0, 3.0), inputs[:1])
    assert gradcheck(lambda *x: dip_penalty(dip_ii_covariance(*x, s), 2.0, 3.0), inputs)
    assert gradcheck(lambda *x: third_central_moments(*x, s), inputs)
    assert gradcheck(lambda *x: third_moment_penalty(*x, s), inputs)
    assert gradcheck(third_moment_penalty, inputs[:1])


def test_bad_arguments_are_refused():
    mean, log_variance = posteriors()
    for function in (dip_ii_covariance, third_central_moments):
        with pytest.raises(ArgumentError, match="correlation"):
            function(mean, log_variance, 1.0)
        with pytest.raises(ArgumentError, match="at least 2"):
            function(mean[:1], log_variance[:1])
        with pytest.raises(ArgumentError, match="log_variance"):
            function(mean, log_variance[:, :1])
    with pytest.raises(ArgumentError, match="shape"):
        covariance(mean[0])
