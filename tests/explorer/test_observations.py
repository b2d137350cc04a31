"""Observations of a page, of data of which only some rows have labels."""

import numpy as np

import unweave as uw
from unweave.explorer import render_page
from unweave.explorer.dependences import factor_matrices
from unweave.explorer.observations import draw_observations


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


def test_a_page_of_partly_labelled_data_warns_of_nothing():
    data = partly_labelled()
    method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    run = uw.train(method, data, steps=1, batch_size=4)
    assert "kind" in render_page([run], data)
