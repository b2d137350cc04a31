"""The networks of InfoGAN on MNIST: their shapes and sizes, by hand."""

import pytest
import torch

from unweave.errors import ArgumentError
from unweave.networks.infogan import DenseDiscriminator, DenseGenerator


def number_of(network):
    return sum(p.numel() for p in network.parameters())


def test_sizes_are_those_of_chen_et_al():
    """Table 1 of their appendix: 64 and 128 channels, 1,024 units; 74 codes."""
    first, second = 64 * 16 + 64, 64 * 128 * 16 + 128 + 2 * 128
    dense = 7 * 7 * 128 * 1024 + 1024 + 2 * 1024
    assert number_of(DenseDiscriminator((28, 28, 1))) == first + second + dense + 1024 + 1
    dense = 74 * 1024 + 1024 + 2 * 1024 + 1024 * 7 * 7 * 128 + 3 * 7 * 7 * 128
    up, output = 128 * 64 * 16 + 64 + 2 * 64, 64 * 16 + 1
    assert number_of(DenseGenerator(74, (28, 28, 1))) == dense + up + output


@pytest.mark.parametrize("size", [28, 32, 64, 128])
@pytest.mark.parametrize("channels", [1, 3])
def test_shapes(size, channels):
    shape = (size, size, channels)
    images = DenseGenerator(5, shape, width=2)(torch.randn(3, 5))
    assert images.shape == (3, channels, size, size)
    critic = DenseDiscriminator(shape, normalise=False, width=2)
    assert critic(images).shape == (3,)
    assert critic.features(images).shape == (3, critic.num_features) == (3, 32)
    # Without batch normalisation an image has the same logit whatever is beside it.
    torch.testing.assert_close(critic(images)[:1], critic(images[:1]))


def test_wrong_sizes_are_refused():
    with pytest.raises(ArgumentError, match="image_shape"):
        DenseDiscriminator((30, 30, 1))
    with pytest.raises(ArgumentError, match="latent_size"):
        DenseGenerator(0, (28, 28, 1))
