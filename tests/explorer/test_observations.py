"""Observations of a page, of data of which only some rows have labels."""

import numpy as np
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

import unweave as uw
from unweave.explorer import render_page
from unweave.explorer.dependences import factor_matrices
from unweave.explorer.observations import draw_observations
from unweave.metrics.information.discretise import discretise
from unweave.metrics.information.mutual_information import entropy, mutual_information_matrix


def partly_labelled(count=400):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (count, 8, 8, 1), dtype=np.uint8)
    labels = {row: {"kind": row % 3, "place": row // 2 % 2} for row in range(0, count, 2)}
    return uw.data.with_labels(uw.data.from_arrays(images), labels)


def test_factors_in_bins_are_those_of_labelled_rows():
    observations = draw_observations(partly_labelled())
    assert observations.labelled.sum() == 200
    assert observations.binned_factors.shape == (200, 2)
    np.testing.assert_array_equal(
        observations.binned_factors, observations.factors[~np.isnan(observations.factors).any(axis=1)]
    )
    codes = observations.binned_factors[:, :1].astype(np.float32)
    information = factor_matrices(codes, observations.binned_factors)["mutual_information"]
    np.testing.assert_allclose(information[0, 0], 1)


def test_few_labels_that_are_chance_share_nothing_with_codes():
    """As adjusted mutual information of scikit-learn, with H(factor) in place of the mean of both entropies."""
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 10, (50, 1))
    codes = np.stack([rng.normal(size=50), factors[:, 0] + rng.normal(0, 1, 50)], axis=1).astype(np.float32)
    shares = factor_matrices(codes, factors)["mutual_information"][:, 0]
    np.testing.assert_allclose(shares, adjusted(discretise(codes), factors)[:, 0], atol=0.05)
    assert shares[0] < 0.15 < 0.2 < shares[1]
    assert mutual_information_matrix(discretise(codes), factors)[0, 0] / entropy(factors)[0] > 0.5


def adjusted(codes, factors):
    """(I - E[I]) / (H - E[I]) with the exact expectation."""
    result = np.zeros((codes.shape[1], factors.shape[1]))
    for row, column in np.ndindex(result.shape):
        table = contingency_matrix(codes[:, row], factors[:, column], sparse=True)
        chance = expected_mutual_information(table, len(codes))
        told = mutual_info_score(None, None, contingency=table)
        result[row, column] = max(0.0, (told - chance) / (entropy(factors)[column] - chance))
    return result


def test_a_page_of_partly_labelled_data_warns_of_nothing():
    data = partly_labelled()
    method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    run = uw.train(method, data, steps=1, batch_size=4)
    assert "kind" in render_page([run], data)
