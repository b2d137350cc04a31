"""Labelled batches as in the authors' code of Mita et al.: means over labelled and unlabelled images apart."""

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.methods.spec import MethodSpec


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return uw.data.from_arrays(rng.random((30, 6)).astype(np.float32), {"a": rng.integers(0, 3, 30)})


def create(name, data, **labels):
    return uw.methods.create(name, data, latent_size=2, labels={"labelled": 8, **labels}, seed=0)


def terms(method, data):
    batch = method.batches(data).draw(0, 6, seed=0)
    forward = method.begin(batch, 0, torch.Generator().manual_seed(0))
    return batch, forward, method.loss(forward)


@pytest.mark.parametrize("name", ["ss_ivae", "ss_idvae"])
def test_labelled_images_have_a_mean_of_their_own(data, name):
    method = create(name, data, batches="apart")
    batch, forward, found = terms(method, data)
    assert {"reconstruction", "kl", "labelled_reconstruction", "labelled_kl", "label_entropy"} <= set(
        found.values
    )
    expected = method.likelihood(forward.labelled_pass.output, batch.labelled.images)
    torch.testing.assert_close(found.values["labelled_reconstruction"], expected)
    assert found.weights["labelled_reconstruction"] == 1.0
    assert forward.missing.all()  # images of the batch are taken without labels, whether they have any or not
    assert torch.isfinite(found.loss)


def test_the_second_vae_learns_from_true_labels(data):
    method = create("ss_idvae", data, batches="apart")
    batch, forward, found = terms(method, data)
    torch.testing.assert_close(forward.labelled_pass.u, batch.labelled.u)
    mean, log_variance = method.prior.encoder(batch.labelled.u)
    expected = uw.objectives.kl_to_standard_normal(mean, log_variance).sum(1).mean()
    torch.testing.assert_close(found.values["label_kl"], expected)
    mixed = create("ss_idvae", data)
    assert not torch.isclose(terms(mixed, data)[2].values["label_kl"], expected)


def test_it_trains_and_is_part_of_the_spec(data):
    method = create("ss_idvae", data, batches="apart")
    run = uw.train(method, data, steps=2, batch_size=4, pictures=False)
    assert MethodSpec.from_dict(run.spec.method.as_dict()).labels["batches"] == "apart"
    assert "batches" not in create("ss_idvae", data).spec.labels
    assert run.method.labels_for(data).spec["batches"] == "apart"


def test_methods_that_need_all_labels_refuse_it(data):
    with pytest.raises(ArgumentError, match="needs the labels of all images"):
        uw.methods.create("ivae", data, labels={"batches": "apart"})
    with pytest.raises(ArgumentError, match="batches"):
        create("ss_ivae", data, batches="both")
