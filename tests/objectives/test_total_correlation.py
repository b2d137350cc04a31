import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp
from torch.autograd import gradcheck

from unweave.errors import ArgumentError
from unweave.objectives.total_correlation import (
    aggregate_log_densities,
    minibatch_logsumexp,
    minibatch_stratified,
    minibatch_weighted,
    stratified_log_weights,
)


def posteriors(count=5, size=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mean, log_variance, noise = torch.randn(3, count, size, generator=generator, dtype=torch.float64)
    log_variance = 0.5 * log_variance - 1
    return mean + log_variance.exp().sqrt() * noise, mean, log_variance


def densities(z, mean, log_variance, s=0.0):
    """q(z_i|x_j) (n, n) and q(z_id|x_j) (n, n, D), one scipy call per pair."""
    z, mean, sigma = z.numpy(), mean.numpy(), np.exp(log_variance.numpy() / 2)
    count, size = z.shape
    correlation = np.where(np.eye(size) == 1, 1.0, s)
    joint = np.empty((count, count))
    for i, j in itertools.product(range(count), repeat=2):
        cov = np.diag(sigma[j]) @ correlation @ np.diag(sigma[j])
        joint[i, j] = stats.multivariate_normal(mean[j], cov).pdf(z[i])
    return joint, stats.norm.pdf(z[:, None], mean[None], sigma[None])


def reference(z, mean, log_variance, weights, s=0.0):
    joint, marginals = densities(z, mean, log_variance, s)
    log_joint = np.log((weights * joint).sum(1))
    log_marginals = np.log((weights[:, :, None] * marginals).sum(1))
    return (log_joint - log_marginals.sum(1)).mean()


def column_weights(batch_size, dataset_size):
    """The weights of much public code, as if written for the diagonal: 1/N fills a column."""
    others = batch_size - 1
    weights = np.full((batch_size, batch_size), 1 / others)
    weights[:, 0] = 1 / dataset_size
    weights[:, 1] = (dataset_size - others) / (dataset_size * others)
    weights[others - 1, 0] = (dataset_size - others) / (dataset_size * others)
    return weights


@pytest.mark.parametrize("s", [0.0, 0.6])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_estimators_agree_with_their_definition(s, size):
    batch, total = posteriors(size=size), 9
    ones = np.ones((5, 5))
    stratified = np.full((5, 5), 1 / 4)
    for i in range(5):
        stratified[i, i] = 1 / total
        stratified[i, (i + 1) % 5] = (total - 4) / (total * 4)
    for value, weights in [
        (minibatch_logsumexp(*batch, s), ones),
        (minibatch_weighted(*batch, total, s), ones / (total * 5)),
        (minibatch_stratified(*batch, total, s), stratified),
    ]:
        assert value.item() == pytest.approx(reference(*batch, weights, s), rel=1e-9, abs=1e-12)
    if size > 1:
        wrong = reference(*batch, column_weights(5, total), s)
        assert abs(minibatch_stratified(*batch, total, s).item() - wrong) > 0.01


def expected_densities(weights, size, total, s):
    """The mean estimate of q(z_i), for each row i and each own sample, over all ordered minibatches.

    Shapes (size, total) for the joint and (size, total, 2) for the latents; then the true densities.
    """
    z, mean, log_variance = posteriors(total)
    joint, marginals = np.zeros((size, total)), np.zeros((size, total, 2))
    batches = list(itertools.permutations(range(total), size))
    row = np.arange(size)
    for batch in map(list, batches):
        estimate = aggregate_log_densities(z[batch], mean[batch], log_variance[batch], weights, s)
        joint[row, batch] += estimate[0].exp().numpy()
        marginals[row, batch] += estimate[1].exp().numpy()
    repeats = len(batches) / total  # how often a given sample stands in a given row
    true_joint, true_marginals = densities(z, mean, log_variance, s)
    return joint / repeats, marginals / repeats, true_joint.mean(1), true_marginals.mean(1)


@pytest.mark.parametrize("s", [0.0, 0.6])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_stratified_densities_are_unbiased(s, size):
    weights = stratified_log_weights(size, 5)
    joint, marginals, true_joint, true_marginals = expected_densities(weights, size, 5, s)
    np.testing.assert_allclose(joint, np.broadcast_to(true_joint, joint.shape), rtol=1e-10)
    np.testing.assert_allclose(marginals, np.broadcast_to(true_marginals, marginals.shape), rtol=1e-10)


def test_a_column_in_place_of_the_diagonal_is_biased():
    weights = torch.from_numpy(column_weights(3, 5)).log()
    joint, _, true_joint, _ = expected_densities(weights, 3, 5, 0.0)
    assert np.abs(joint / true_joint - 1).max() > 0.2


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 12), st.integers(0, 10_000))
def test_stratified_weights_sum_to_one_with_one_nth_for_the_own_sample(size, more):
    weights = stratified_log_weights(size, size + more).exp()
    torch.testing.assert_close(weights.sum(1), torch.ones(size, dtype=torch.float64))
    torch.testing.assert_close(weights.diagonal(), torch.full((size,), 1 / (size + more)).double())
    assert (weights > 0).all()


def test_weighted_sampling_bounds_log_q_from_below():
    z, mean, log_variance = posteriors(4)
    weights = torch.full((3, 3), 1 / (4 * 3), dtype=torch.float64).log()
    bound = np.zeros((3, 4))
    row = np.arange(3)
    for batch in map(list, itertools.product(range(4), repeat=3)):
        joint, _ = aggregate_log_densities(z[batch], mean[batch], log_variance[batch], weights)
        bound[row, batch] += joint.numpy() / 4**2
    assert (bound < np.log(densities(z, mean, log_variance)[0].mean(1))).all()


def test_tiny_variances_do_not_cancel_in_float32():
    z, mean, _ = posteriors(8, 3)
    log_variance = torch.full_like(mean, -12.0)
    z = mean + (z - mean) * 0.0025
    single = [x.float() for x in (z, mean, log_variance)]
    double = [x.double() for x in single]
    for estimate in (minibatch_logsumexp, lambda *x: minibatch_stratified(*x, 100, 0.5)):
        torch.testing.assert_close(estimate(*single).double(), estimate(*double), rtol=1e-4, atol=1e-4)
    joint, marginals = aggregate_log_densities(*double)
    scale = np.exp(-6.0)
    pairs = stats.norm.logpdf(double[0].numpy()[:, None], double[1].numpy()[None], scale)
    np.testing.assert_allclose(joint.numpy(), logsumexp(pairs.sum(2), axis=1), rtol=1e-9)
    np.testing.assert_allclose(marginals.numpy(), logsumexp(pairs, axis=1), rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_type_is_kept(dtype):
    batch = [x.to(dtype) for x in posteriors()]
    for value in (
        minibatch_logsumexp(*batch, 0.5),
        minibatch_weighted(*batch, 10, 0.5),
        minibatch_stratified(*batch, 10, 0.5),
    ):
        assert value.dtype == dtype
        assert value.shape == ()


@pytest.mark.parametrize("s", [0.0, 0.6])
def test_gradients_of_the_estimators(s):
    inputs = [x.requires_grad_() for x in posteriors(4)]
    assert gradcheck(lambda *x: aggregate_log_densities(*x, None, s), inputs)
    assert gradcheck(lambda *x: minibatch_logsumexp(*x, s), inputs)
    assert gradcheck(lambda *x: minibatch_weighted(*x, 10, s), inputs)
    assert gradcheck(lambda *x: minibatch_stratified(*x, 10, s), inputs)


def test_bad_arguments_are_refused():
    batch = posteriors()
    for estimator in (minibatch_weighted, minibatch_stratified):
        with pytest.raises(ArgumentError, match="dataset_size"):
            estimator(*batch, 4)
    for estimator in (
        minibatch_logsumexp,
        lambda *x: minibatch_weighted(*x, 10),
        lambda *x: minibatch_stratified(*x, 10),
    ):
        with pytest.raises(ArgumentError, match="at least 2"):
            estimator(*(x[:1] for x in batch))
        with pytest.raises(ArgumentError, match="shape"):
            estimator(batch[0], batch[1], batch[2][:, :1])
    with pytest.raises(ArgumentError, match="correlation"):
        minibatch_logsumexp(*batch, 1.0)
