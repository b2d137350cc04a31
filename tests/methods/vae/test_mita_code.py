"""What the authors' code of Mita et al. does otherwise than the paper, as options."""

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.methods.registry import build
from unweave.networks.conv import ConvEncoder, EarlyConvEncoder


@pytest.fixture
def data():
    factors = {"a": np.repeat(np.arange(3), 4), "b": np.tile(np.arange(4), 3)}
    return uw.data.from_arrays(
        np.random.default_rng(0).integers(0, 256, (12, 28, 28), dtype=np.uint8), factors
    )


@pytest.mark.parametrize(
    ("name", "kind"), [("ivae", "conditional"), ("idvae", "label_vae"), ("ss_idvae", "label_vae")]
)
def test_the_size_of_the_prior_can_be_chosen(data, name, kind):
    method = uw.methods.create(name, data, architecture="mlp", prior={"name": kind, "hidden_size": 50})
    assert [
        layer.out_features for layer in method.prior.encoder.features if isinstance(layer, torch.nn.Linear)
    ] == [50] * 3
    assert build(method.spec).prior.hidden_size == 50
    default = uw.methods.create(name, data, architecture="mlp")
    assert default.prior.hidden == (1000, 1000, 1000)
    assert "prior" not in default.spec.as_dict()


def test_other_parameters_of_the_prior_stay_as_they_were(data):
    method = uw.methods.create(
        "idvae", data, architecture="mlp", label_variance=0.5, prior={"name": "label_vae", "hidden_size": 9}
    )
    assert method.prior.label_variance == 0.5


@pytest.mark.parametrize("prior", ["label_vae", {"name": "label_vae", "hidden_size": 5}])
def test_a_prior_of_another_kind_is_refused(data, prior):
    with pytest.raises(ArgumentError, match="of another kind"):
        uw.methods.create("ivae", data, prior=prior)
    with pytest.raises(ArgumentError, match="hidden_size"):
        uw.methods.create("idvae", data, prior={"name": "label_vae", "hidden_size": 0})


def test_labels_join_one_layer_earlier(data):
    method = uw.methods.create(
        "idvae", data, latent_size=2, architecture={"name": "conv", "labels_at": "features"}
    )
    assert isinstance(method.encoder, EarlyConvEncoder)
    late = ConvEncoder((28, 28, 1), 2, conditioning=2)
    first, usual = (next(encoder.features.parameters()).shape for encoder in (method.encoder, late))
    assert first[1] == usual[1] + 2
    images = uw.data.batches.to_tensor(data.images(np.arange(4)))
    one, other = (method.encoder(images, u * torch.ones(4, 2))[0] for u in (0.0, 1.0))
    assert not torch.allclose(one, other)
    run = uw.train(method, data, steps=2, batch_size=4, pictures=False)
    assert run.method.posterior(images, "unknown").mean.shape == (4, 2)


def test_an_encoder_without_labels_takes_none():
    encoder = EarlyConvEncoder((28, 28, 1), 2)
    assert encoder(torch.zeros(1, 1, 28, 28))[0].shape == (1, 2)
    with pytest.raises(TypeError, match="takes u"):
        encoder(torch.zeros(1, 1, 28, 28), torch.zeros(1, 1))
