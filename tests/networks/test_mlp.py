import pytest
import torch
from torch import nn

from unweave.errors import ArgumentError
from unweave.networks import MLP, Discriminator, MLPDecoder, MLPEncoder
from unweave.networks.blocks import Dense


@pytest.mark.parametrize(
    ("shape", "tensor_shape"),
    [((5,), (5,)), ((6, 7), (6, 7)), ((8, 9, 2), (2, 8, 9)), ((4, 4, 7), (7, 4, 4))],
)
def test_any_shape(shape, tensor_shape):
    x = torch.rand(3, *tensor_shape)
    mean, log_variance = MLPEncoder(shape, 4)(x)
    assert mean.shape == log_variance.shape == (3, 4)
    assert MLPDecoder(4, shape)(mean).shape == x.shape


def test_encoder_is_relu_and_decoder_tanh():
    encoder, decoder = MLPEncoder((8, 8, 1), 10), MLPDecoder(10, (8, 8, 1))
    assert [type(layer) for layer in encoder.features] == [Dense, nn.ReLU] * 2
    assert [type(layer) for layer in decoder.layers] == [Dense, nn.Tanh] * 3 + [Dense]
    assert encoder.features[0].weight.shape == (1200, 64)
    assert encoder.features[2].weight.shape == (1200, 1200)
    assert decoder.layers[6].weight.shape == (64, 1200)


def test_images_are_flattened_by_value_not_by_memory():
    encoder = MLPEncoder((4, 5, 3), 2, hidden=(6,))
    x = torch.rand(2, 3, 4, 5)
    assert torch.equal(encoder(x)[0], encoder(x.contiguous(memory_format=torch.channels_last))[0])


def test_hidden_sizes_and_conditioning():
    encoder = MLPEncoder((5,), 2, hidden=(), conditioning=3)
    assert encoder.heads.mean.weight.shape == (2, 5 + 3)
    assert encoder(torch.rand(4, 5), torch.rand(4, 3))[1].shape == (4, 2)
    assert MLPDecoder(2, (5,), hidden=())(torch.rand(4, 2)).shape == (4, 5)


def test_discriminator_layout():
    discriminator = Discriminator(10)
    linear = [layer for layer in discriminator if isinstance(layer, nn.Linear)]
    assert [layer.out_features for layer in linear] == [1000] * 6 + [2]
    assert [layer.negative_slope for layer in discriminator if isinstance(layer, nn.LeakyReLU)] == [0.2] * 6
    assert isinstance(discriminator[-1], nn.Linear)
    count = sum(parameter.numel() for parameter in discriminator.parameters())
    assert count == (10 * 1000 + 1000) + 5 * (1000 * 1000 + 1000) + (1000 * 2 + 2) == 5_018_002


def test_mlp_for_conditional_networks():
    network = MLP(5, (1000,) * 3, 20, activation="leaky_relu", slope=0.1)
    assert [type(layer) for layer in network] == [Dense, nn.LeakyReLU] * 3 + [Dense]
    assert network[1].negative_slope == 0.1
    assert network(torch.rand(2, 5)).shape == (2, 20)


def test_wrong_arguments_are_refused():
    with pytest.raises(ArgumentError, match="did you mean 'leaky_relu'"):
        MLP(5, (6,), 2, activation="leakyrelu")
    with pytest.raises(ArgumentError, match="image_shape"):
        MLPEncoder((), 2)
    with pytest.raises(ArgumentError, match="image_shape"):
        MLPDecoder(2, (5, 0))
    with pytest.raises(ArgumentError, match="latent_size"):
        Discriminator(0)
