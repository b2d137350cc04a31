"""The rank of a prior's natural parameters, for priors whose rank is known."""

import numpy as np
import pytest
import torch
from torch.distributions import Normal

import unweave as uw
from unweave.errors import ArgumentError
from unweave.evaluation.identifiability import conditional_prior_rank, natural_parameters
from unweave.methods import Posterior

LATENTS = 3
RNG = np.random.default_rng(0)


class TablePrior(torch.nn.Module):
    """p(z|u) listed by segment; u is one-hot."""

    def __init__(self, mean, variance):
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean).float())
        self.register_buffer("log_variance", torch.as_tensor(variance).float().log())

    def given(self, u):
        return Posterior(u @ self.mean, u @ self.log_variance)


@pytest.fixture(autouse=True)
def _small_networks(monkeypatch):
    monkeypatch.setattr("unweave.methods.vae.conditional_prior.HIDDEN", (10, 10))


def data_of(segments):
    rows = np.repeat(np.arange(segments), 2)
    return uw.data.from_arrays(RNG.random((len(rows), 4)).astype(np.float32), {"segment": rows})


def rank_of(mean, variance, labels=None, **options):
    segments = len(mean)
    data = data_of(segments)
    method = uw.methods.create("ivae", data, latent_size=LATENTS, labels={"encoding": "one_hot"})
    method.prior = TablePrior(mean, variance)
    return conditional_prior_rank(method, data if labels is None else labels, **options)


def drawn(segments):
    return RNG.normal(size=(segments, LATENTS)), RNG.uniform(0.5, 3, (segments, LATENTS))


def test_natural_parameters_are_those_of_the_density():
    """log p(z) - lambda_1 z - lambda_2 z^2 does not depend on z."""
    mean, variance = drawn(5)
    first, second = np.split(natural_parameters(mean, variance), 2, axis=1)
    z = np.linspace(-2, 2, 9)[:, None, None]
    density = Normal(torch.as_tensor(mean), torch.as_tensor(variance).sqrt()).log_prob(torch.as_tensor(z))
    rest = density.numpy() - first * z - second * z**2
    np.testing.assert_allclose(rest, np.broadcast_to(rest[:1], rest.shape))


def test_a_constant_prior_has_rank_0():
    found = rank_of(np.tile(RNG.normal(size=3), (20, 1)), np.tile([0.5, 1, 2], (20, 1)))
    assert (found.rank, found.needed, found.num_labels) == (0, 6, 20)
    assert found.enough_labels
    assert not found.invertible
    assert found.condition == found.random_condition == np.inf


def test_modulated_variances_alone_have_half_the_rank():
    _, variance = drawn(20)
    assert rank_of(np.zeros((20, 3)), variance).rank == LATENTS
    assert rank_of(np.tile([1.0, -2.0, 3.0], (20, 1)), variance).rank == LATENTS
    assert rank_of(RNG.normal(size=(20, 3)), np.ones((20, 3))).rank == LATENTS


@pytest.mark.parametrize("segments", [7, 40])
def test_enough_segments_have_full_rank(segments):
    mean, variance = drawn(segments)
    found = rank_of(mean, variance)
    assert found.rank == found.needed == 6
    assert found.invertible
    assert found.labels.shape == (7, segments)
    assert len(np.unique(found.labels, axis=0)) == 7
    assert found.condition == pytest.approx(found.singular_values[0] / found.singular_values[-1])
    # The theorem's matrix in the latents' own units, at the labels that were chosen.
    own = natural_parameters(mean, variance)[found.labels.argmax(1)]
    assert np.linalg.matrix_rank((own[1:] - own[0]).T) == 6


@pytest.mark.parametrize("segments", [1, 2, 4, 6])
def test_too_few_segments_limit_the_rank(segments):
    found = rank_of(*drawn(segments))
    assert found.rank == segments - 1
    assert not found.enough_labels
    assert not found.invertible
    assert found.condition == np.inf
    assert len(found.labels) == segments


def test_a_latent_that_does_not_depend_on_u_is_missing():
    mean, variance = drawn(30)
    mean[:, 1], variance[:, 1] = 0.5, 2.0
    found = rank_of(mean, variance)
    assert found.rank == 4
    assert np.sum(found.singular_values > 1e-6) == 4


def test_the_tolerance_decides_what_counts_as_constant():
    mean, variance = drawn(30)
    mean[:, 1], variance[:, 1] = 1e-4 * mean[:, 1], 1 + 1e-4 * variance[:, 1]
    assert rank_of(mean, variance).rank == 6
    assert rank_of(mean, variance, tolerance=1e-2).rank == 4


def test_units_of_the_latents_do_not_matter():
    mean, variance = drawn(30)
    scale, shift = np.array([100.0, 0.01, 1.0]), np.array([5.0, 0.0, -1.0])
    found, scaled = rank_of(mean, variance), rank_of(scale * mean + shift, scale**2 * variance)
    np.testing.assert_allclose(found.singular_values, scaled.singular_values, rtol=1e-3)
    np.testing.assert_array_equal(found.labels, scaled.labels)


def test_chosen_labels_are_better_than_random_ones():
    found = rank_of(*drawn(200))
    assert found.condition < found.random_condition < np.inf


def test_labels_of_ones_own_and_limits():
    mean, variance = drawn(40)
    assert rank_of(mean, variance, np.eye(40)[[0, 0, 1, 2, 2]]).rank == 2
    few, again = (rank_of(mean, variance, num_labels=9, seed=3) for _ in range(2))
    assert few.num_labels == 9
    np.testing.assert_array_equal(few.labels, again.labels)
    assert few.random_condition == again.random_condition
    assert not np.array_equal(few.labels, rank_of(mean, variance, num_labels=9, seed=4).labels)


def test_networks_as_they_are_made(monkeypatch):
    rows = np.arange(64)
    values = {"a": rows // 8, "b": rows % 8}
    data = uw.data.from_arrays(RNG.random((64, 4)).astype(np.float32), values)
    for name in ("ivae", "ss_idvae"):
        method = uw.methods.create(name, data, latent_size=2, seed=0)
        before = method.prior.encoder.heads.mean.weight.dtype
        found = conditional_prior_rank(method, data)
        assert (found.num_labels, found.needed) == (64, 4)
        assert method.prior.encoder.heads.mean.weight.dtype == before
    few = uw.methods.create("ss_ivae", data, latent_size=2, labels={"labelled": 5})
    assert conditional_prior_rank(few, data).num_labels == 5
    monkeypatch.setattr("unweave.evaluation.identifiability._MOST_ROWS", 20)
    assert conditional_prior_rank(method, data).num_labels == 20
    endless = uw.data.from_function(["a"], [(0.0, 1.0)], lambda f: np.repeat(f, 4, axis=1))
    simulated = uw.methods.create("ivae", endless, latent_size=1)
    assert conditional_prior_rank(simulated, endless, num_labels=50).num_labels == 50


def test_a_run_is_as_good_as_its_method():
    data = data_of(6)
    run = uw.train(uw.methods.create("ivae", data, latent_size=1), data, steps=2, batch_size=4)
    of_run, of_method = conditional_prior_rank(run, data), conditional_prior_rank(run.method, data)
    assert of_run.num_labels == 6
    np.testing.assert_array_equal(of_run.singular_values, of_method.singular_values)


def test_refuses():
    data = data_of(4)
    with pytest.raises(ArgumentError, match="method = 'vae': has no prior given labels"):
        conditional_prior_rank(uw.methods.create("vae", data), data)
    method = uw.methods.create("ivae", data, latent_size=2)
    with pytest.raises(ArgumentError, match=r"needs numbers of shape \(M, 1\)"):
        conditional_prior_rank(method, np.zeros((3, 2)))
    with pytest.raises(ArgumentError, match="none that are known"):
        conditional_prior_rank(method, [[np.nan]])
    with pytest.raises(ArgumentError, match="tolerance = 0"):
        conditional_prior_rank(method, data, tolerance=0)
    with pytest.raises(ArgumentError, match="num_labels = 0"):
        conditional_prior_rank(method, data, num_labels=0)
    with pytest.raises(ArgumentError, match="seed = -1: needs a whole number"):
        conditional_prior_rank(method, data, seed=-1)
    with pytest.raises(ArgumentError, match="method = 'ivae': needs a method, or a run"):
        conditional_prior_rank("ivae", data)
    for wrong in (np.inf, -np.inf, 1e300):
        with pytest.raises(ArgumentError, match=r"labels = \[-?(inf|1e\+300)\]: p\(z\|u\) is not finite"):
            conditional_prior_rank(method, [[0.5], [wrong]])
    with pytest.raises(ArgumentError, match="cannot be converted to a numpy array"):
        conditional_prior_rank(method, [[0.5], [0.5, 1.0]])
