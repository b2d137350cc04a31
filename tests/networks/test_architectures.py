"""Architectures with options: widths, and the width that gives a number of parameters."""

import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.networks.adain import AdaINDecoder
from unweave.networks.conv import ConvDecoder, ConvEncoder
from unweave.networks.create import create_networks, number_of_parameters, width_for


def count(*modules):
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def test_the_number_of_parameters_by_hand():
    # 4x4 kernels: C -> 32 -> 32 -> 64 -> 64, then 1024 -> 256 -> two heads of 10
    convolutions = (16 * 32 + 32) + (16 * 32 * 32 + 32) + (16 * 32 * 64 + 64) + (16 * 64 * 64 + 64)
    encoder = convolutions + (1024 * 256 + 256) + 2 * (256 * 10 + 10)
    up = (16 * 64 * 64 + 64) + (16 * 64 * 32 + 32) + (16 * 32 * 32 + 32) + (16 * 32 + 1)
    decoder = (10 * 256 + 256) + (256 * 1024 + 1024) + up
    assert number_of_parameters("conv", (64, 64, 1), 10) == encoder + decoder
    assert count(ConvEncoder((64, 64, 1), 10), ConvDecoder(10, (64, 64, 1))) == encoder + decoder


@pytest.mark.parametrize("size", [28, 32, 64, 128])
@pytest.mark.parametrize("width", [0.1, 1.7])
def test_networks_of_any_width_fit_their_images(size, width):
    encoder, decoder = create_networks({"name": "conv", "width": width}, (size, size, 3), 4)
    assert decoder(encoder(torch.rand(2, 3, size, size))[0]).shape == (2, 3, size, size)
    assert encoder.convolutions[0].out_channels == round(32 * width)


@pytest.mark.parametrize(("size", "latent_size"), [(28, 4), (64, 15), (64, 20)])
@pytest.mark.parametrize("parameters", [50_000, 5_000_000, 80_000_000])
def test_the_width_comes_nearest(size, latent_size, parameters):
    shape = (size, size, 1)
    width = width_for(parameters, shape, latent_size)

    def error(w):
        return abs(number_of_parameters({"name": "conv", "width": w}, shape, latent_size) - parameters)

    assert error(width) < 0.02 * parameters  # channels are whole numbers
    assert all(error(width) <= error(width * (1 + step)) for step in (-0.02, -0.005, 0.005, 0.02))


def test_big_models_have_as_many_parameters_as_both_stages():
    shape, c, z = (64, 64, 3), 10, 5
    with torch.device("meta"):
        second = count(ConvEncoder(shape, z), AdaINDecoder(shape, z))
    both = number_of_parameters("conv", shape, c) + second
    assert both == 76_991_780  # as studies/multistage.yaml has it
    big = number_of_parameters({"name": "conv", "parameters": both}, shape, c + z)
    assert abs(big - both) < 0.005 * both


def test_a_vae_with_a_number_of_parameters_is_saved_and_loaded(tmp_path):
    import numpy as np

    data = uw.data.from_arrays(np.zeros((4, 28, 28, 1), np.uint8))
    method = uw.methods.create("vae", data, architecture={"name": "conv", "parameters": 20_000})
    assert abs(count(method.encoder, method.decoder) - 20_000) < 400
    uw.train(method, data, 1, 2, out=tmp_path / "run", pictures=False)
    loaded = uw.load(tmp_path / "run")
    assert loaded.spec.method.architecture == {"name": "conv", "parameters": 20_000}
    assert count(loaded.method) == count(method)


@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        ("cnn", "architecture = 'cnn'"),
        ({"width": 2}, "architecture = 'None'"),
        ({"name": "conv", "widht": 2}, "did you mean 'width'"),
        ({"name": "mlp", "width": 2}, "option of the architecture mlp = 'width'"),
        ({"name": "conv", "width": 0}, "width = 0: needs a number > 0"),
        ({"name": "conv", "parameters": 3}, "parameters = 3: the smallest networks have"),
        ({"name": "conv", "parameters": 10**6, "width": 2}, "has width or parameters, not both"),
        ({"name": "adain", "c_size": 4}, "c_size = 4: needs 1 to 3"),
    ],
)
def test_wrong_options_are_refused(architecture, message):
    with pytest.raises(ArgumentError, match=message):
        create_networks(architecture, (28, 28, 1), 4)
