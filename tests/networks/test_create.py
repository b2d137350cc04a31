import pytest
import torch
from torch import nn

from unweave.errors import ArgumentError
from unweave.networks import ConvDecoder, ConvEncoder, MLPDecoder, MLPEncoder, create_networks


class Encoder(nn.Module):
    """A user's own: gives what ``make`` makes of the flattened image."""

    def __init__(self, make=lambda x: (x[:, :3], x[:, 3:6])):
        super().__init__()
        self.norm = nn.BatchNorm2d(1)
        self.drop = nn.Dropout()
        self.make = make

    def forward(self, x):
        return self.make(self.drop(self.norm(x)).flatten(1) + torch.randn(1))


class Decoder(nn.Module):
    def __init__(self, shape=(1, 64, 64)):
        super().__init__()
        self.shape = shape

    def forward(self, z):
        return z.sum(1).view(-1, 1, 1, 1).expand(-1, *self.shape)


@pytest.mark.parametrize(
    ("architecture", "shape", "encoder", "decoder"),
    [
        ("auto", (64, 64, 1), ConvEncoder, ConvDecoder),
        ("auto", (64, 64, 4), ConvEncoder, ConvDecoder),
        ("auto", (64, 64, 5), MLPEncoder, MLPDecoder),
        ("auto", (12,), MLPEncoder, MLPDecoder),
        ("conv", (28, 28, 1), ConvEncoder, ConvDecoder),
        ("mlp", (28, 28, 1), MLPEncoder, MLPDecoder),
    ],
)
def test_by_name(architecture, shape, encoder, decoder):
    made = create_networks(architecture, shape, 3)
    assert [type(module) for module in made] == [encoder, decoder]


def test_dlib_by_name():
    encoder, _ = create_networks("conv_dlib", (64, 64, 1), 3)
    assert encoder.convolutions[3].kernel_size == (2, 2)


def test_own_modules_are_used_as_they_are():
    encoder, decoder = Encoder(), Decoder()
    encoder.drop.eval()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    state = torch.get_rng_state()
    made = create_networks("custom", (64, 64, 1), 3, encoder, decoder)
    assert made == (encoder, decoder)
    assert encoder.training
    assert not encoder.drop.training
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())


def test_own_module_and_a_made_one():
    encoder = Encoder()
    made, decoder = create_networks("custom", (64, 64, 1), 3, encoder=encoder)
    assert made is encoder
    assert isinstance(decoder, ConvDecoder)
    made, decoder = create_networks("mlp", (64, 64, 1), 3, encoder=encoder)
    assert isinstance(decoder, MLPDecoder)


def test_own_module_in_double_precision():
    encoder = MLPEncoder((64, 64, 1), 3).double()
    assert create_networks("custom", (64, 64, 1), 3, encoder=encoder)[0] is encoder


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (lambda x: x[:, :3], r"gave a tensor of shape \(2, 3\)"),
        (lambda x: (x[:, :3], x[:, :4]), r"gave a tuple of \(.*\(2, 3\), .*\(2, 4\)\)"),
        (lambda x: (x[:, :3],), r"gave a tuple of \(a tensor of shape \(2, 3\)\)"),
        (lambda x: (x[:, :3], None), r"a NoneType"),
        (lambda x: None, "gave a NoneType"),
    ],
)
def test_encoder_that_does_not_fit(make, given):
    expected = rf"encoder = 'Encoder': .*{given}.*\(2, 1, 64, 64\); needs .*mean, log_variance.* \(2, 3\)"
    with pytest.raises(ArgumentError, match=expected):
        create_networks("custom", (64, 64, 1), 3, encoder=Encoder(make))


def test_decoder_that_does_not_fit():
    expected = r"decoder = 'Decoder': gave .*\(2, 1, 64, 32\) .*\(2, 3\); needs .*\(2, 1, 64, 64\)"
    with pytest.raises(ArgumentError, match=expected):
        create_networks("custom", (64, 64, 1), 3, decoder=Decoder((1, 64, 32)))


def test_module_that_fails():
    with pytest.raises(ArgumentError, match=r"input of shape \(2, 3, 64, 64\): .*3 elements not 1"):
        create_networks("custom", (64, 64, 3), 3, encoder=Encoder())


def test_wrong_arguments_are_refused():
    with pytest.raises(ArgumentError, match="did you mean 'conv_dlib'"):
        create_networks("convdlib", (64, 64, 1), 3)
    with pytest.raises(ArgumentError, match="needs your own encoder, decoder or both"):
        create_networks("custom", (64, 64, 1), 3)
    with pytest.raises(ArgumentError, match=r"\(50, 50, 3\).*28, 32, 64 or 128.*'mlp' takes any shape"):
        create_networks("auto", (50, 50, 3), 3)
    with pytest.raises(ArgumentError, match=r"\(64, 64, 7\)"):
        create_networks("conv", (64, 64, 7), 3)
    with pytest.raises(ArgumentError, match="latent_size = 0"):
        create_networks("auto", (64, 64, 1), 0)
    with pytest.raises(ArgumentError, match="image_shape"):
        create_networks("auto", (), 3)
