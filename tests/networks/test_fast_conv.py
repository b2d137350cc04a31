import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import gradcheck, gradgradcheck

from unweave.networks import (
    ConvReLU,
    ConvTransposeOut,
    ConvTransposeReLU,
    accelerate,
    create_networks,
    fast_conv,
    initialise,
)
from unweave.networks.fast_conv import to_blocks

FORMATS = [torch.contiguous_format, torch.channels_last]


@pytest.fixture(autouse=True)
def one_thread():
    """Double precision is slow enough; threads that wait for each other make it slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def pair(architecture, shape, latent_size=4):
    """The same networks, plain and accelerated, in double precision, with biases that are not zero."""
    plain = nn.ModuleList(create_networks(architecture, shape, latent_size)).double()
    initialise(plain, torch.Generator().manual_seed(0))
    for name, parameter in plain.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter, std=0.1, generator=torch.Generator().manual_seed(1))
    return plain, accelerate(copy.deepcopy(plain))


def random_images(batch, size, channels, memory_format=torch.contiguous_format):
    images = torch.rand(batch, channels, size, size, generator=torch.Generator().manual_seed(2)).double()
    return images.contiguous(memory_format=memory_format)


def values_and_gradients(networks, images):
    """Everything that encoder and decoder give, and the gradients of an arbitrary function of it."""
    images = images.detach().requires_grad_()
    mean, log_variance = networks[0](images)
    output = networks[1](mean + 0.1 * log_variance)
    loss = (output - images).square().sum() + log_variance.sin().sum()
    wanted = [images, *(parameter for parameter in networks.parameters() if parameter.requires_grad)]
    return [mean, log_variance, output, *torch.autograd.grad(loss, wanted)]


def assert_same(first, second):
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [28, 32, 64, 128])
@pytest.mark.parametrize("architecture", ["conv", "conv_dlib"])
def test_same_values_and_gradients(architecture, size, channels, memory_format):
    plain, fast = pair(architecture, (size, size, channels))
    images = random_images(1 if size == 128 else 3, size, channels, memory_format)
    assert_same(values_and_gradients(plain, images), values_and_gradients(fast, images))


@pytest.mark.parametrize("batch", [0, 1, 2, 5])
@pytest.mark.parametrize("channels", [2, 4])
def test_any_batch_and_few_channels(batch, channels):
    plain, fast = pair("conv", (32, 32, channels))
    images = random_images(batch, 32, channels)
    assert_same(values_and_gradients(plain, images), values_and_gradients(fast, images))


def test_single_precision():
    """Close to double precision, for images that bring no ReLU so near to zero that rounding decides its sign."""
    plain, fast = pair("conv", (64, 64, 1))
    images = torch.rand(5, 1, 64, 64, generator=torch.Generator().manual_seed(10))
    exact = values_and_gradients(plain, images.double())
    for a, b in zip(values_and_gradients(fast.float(), images), exact, strict=True):
        assert (a.double() - b).norm() <= 1e-5 * b.norm()


def test_an_image_that_is_a_view():
    plain, fast = pair("conv", (32, 32, 1))
    images = random_images(6, 64, 3)[::2, 1:2, 5:37, 32:]
    assert_same(values_and_gradients(plain, images), values_and_gradients(fast, images))


def test_odd_sizes():
    layer = ConvReLU(1, 2)
    x = torch.rand(2, 1, 7, 6)
    torch.testing.assert_close(layer(x), accelerate(copy.deepcopy(layer))(x))


def test_frozen_weights_pass_gradients_to_the_input():
    plain, fast = pair("conv", (32, 32, 1))
    images = random_images(3, 32, 1)
    expected = values_and_gradients(plain, images)[:4]
    fast.requires_grad_(False)
    assert_same(expected, values_and_gradients(fast, images))


def test_partly_frozen_weights():
    plain, fast = pair("conv", (32, 32, 1))
    for networks in (plain, fast):
        networks[1].convolutions[3].weight.requires_grad_(False)
        networks[0].convolutions[0].bias.requires_grad_(False)
    images = random_images(3, 32, 1)
    assert_same(values_and_gradients(plain, images), values_and_gradients(fast, images))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode):
    plain, fast = pair("conv", (64, 64, 3))
    images = random_images(3, 64, 3)
    with mode():
        codes = plain[0](images)
        assert_same(codes, fast[0](images))
        assert_same([plain[1](codes[0])], [fast[1](codes[0])])
        # The input must not be written to.
        assert torch.equal(images, random_images(3, 64, 3))


def layer_input(layer):
    # Away from ReLU's kink, where finite differences have no meaning.
    nn.init.constant_(layer.bias, 3.0)
    return torch.rand(2, layer.in_channels, 2, 4).double().requires_grad_()


@pytest.mark.parametrize(
    "layer",
    [ConvReLU(1, 2), ConvReLU(5, 1), ConvReLU(5, 2, 2), ConvTransposeReLU(2, 1), ConvTransposeOut(2, 2)],
    ids=str,
)
def test_numerical_gradients(layer):
    torch.manual_seed(0)
    layer = accelerate(layer.double())
    x = layer_input(layer)
    function = {
        ConvReLU: fast_conv.conv_relu,
        ConvTransposeReLU: fast_conv.conv_transpose_relu,
        ConvTransposeOut: fast_conv.conv_transpose,
    }[type(layer)]
    assert gradcheck(function, (x, layer.weight, layer.bias))
    assert gradgradcheck(function, (x, layer.weight, layer.bias), fast_mode=True)
    assert torch.equal(layer(x), function(x, layer.weight, layer.bias))


def test_gradients_that_are_shared_or_expanded_are_not_written_to():
    layer = accelerate(ConvTransposeOut(2, 1).double())
    x = torch.rand(3, 2, 4, 4).double().requires_grad_()
    one = torch.ones((), dtype=torch.double)
    torch.autograd.grad(layer(x), x, one.expand(3, 1, 8, 8))
    assert one.item() == 1


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("channels", [1, 3])
def test_blocks_are_unshuffled_pixels(channels, memory_format):
    x = torch.rand(2, channels, 6, 8).contiguous(memory_format=memory_format)
    expected = F.pixel_unshuffle(F.pad(x, (1, 1, 1, 1)), 2)
    assert torch.equal(to_blocks(x), expected)
    assert to_blocks(x).is_contiguous(memory_format=torch.channels_last)
