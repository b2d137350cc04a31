import pytest
import torch

from unweave.errors import ArgumentError
from unweave.networks import ConvDecoder, ConvEncoder, ConvReLU, ConvTransposeOut

SIZES = (28, 32, 64, 128)


def number_of_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("variant", ["paper", "dlib"])
def test_shapes(size, channels, variant):
    shape = (size, size, channels)
    mean, log_variance = ConvEncoder(shape, 7, variant=variant)(torch.rand(3, channels, size, size))
    assert mean.shape == log_variance.shape == (3, 7)
    assert ConvDecoder(7, shape)(mean).shape == (3, channels, size, size)


def test_number_of_parameters_of_the_papers_encoder():
    convolutions = (16 * 1 * 32 + 32) + (16 * 32 * 32 + 32) + (16 * 32 * 64 + 64) + (16 * 64 * 64 + 64)
    assert convolutions == 544 + 16_416 + 32_832 + 65_600
    connected = (1024 * 256 + 256) + 2 * (256 * 10 + 10)
    assert number_of_parameters(ConvEncoder((64, 64, 1), 10)) == convolutions + connected == 382_932


def test_number_of_parameters_of_the_papers_decoder():
    connected = (10 * 256 + 256) + (256 * 1024 + 1024)
    transposed = (64 * 16 * 64 + 64) + (64 * 16 * 32 + 32) + (32 * 16 * 32 + 32) + (32 * 16 * 1 + 1)
    assert number_of_parameters(ConvDecoder(10, (64, 64, 1))) == connected + transposed == 381_313


def test_dlib_has_smaller_third_and_fourth_kernels():
    kernels = [layer.kernel_size for layer in ConvEncoder((64, 64, 1), 10, variant="dlib").convolutions]
    assert kernels == [(4, 4), (4, 4), (2, 2), (2, 2)]
    saved = 12 * 32 * 64 + 12 * 64 * 64
    assert number_of_parameters(ConvEncoder((64, 64, 1), 10, variant="dlib")) == 382_932 - saved


@pytest.mark.parametrize(("size", "channels"), [(64, [32, 32, 64, 64]), (128, [32, 32, 64, 64, 64])])
def test_channels(size, channels):
    encoder, decoder = ConvEncoder((size, size, 3), 10), ConvDecoder(10, (size, size, 3))
    assert [layer.out_channels for layer in encoder.convolutions] == channels
    assert [layer.in_channels for layer in decoder.convolutions] == channels[::-1]
    assert all(layer.kernel_size == (4, 4) for layer in [*encoder.convolutions, *decoder.convolutions])


def ones(layer):
    torch.nn.init.ones_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    return layer


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        # TensorFlow pads 4x4 kernels by (4 - 2) / 2 = 1 on every side: windows of rows 0-2 and 1-3.
        (4, [[54, 63], [90, 99]]),
        # 2x2 kernels need no padding: disjoint windows.
        (2, [[14, 22], [46, 54]]),
    ],
)
def test_padding_is_tensorflows_same(kernel, expected):
    image = torch.arange(1.0, 17.0).view(1, 1, 4, 4)
    assert ones(ConvReLU(1, 1, kernel))(image)[0, 0].tolist() == expected


def test_transposed_padding_is_tensorflows_same():
    # Each of the 2x2 inputs spreads over rows and columns -1..2 and 1..4 of the 4x4 output.
    image = torch.tensor([[1.0, 10.0], [100.0, 1000.0]]).view(1, 1, 2, 2)
    row = [[1, 11, 11, 10], [101, 1111, 1111, 1010], [101, 1111, 1111, 1010], [100, 1100, 1100, 1000]]
    assert ones(ConvTransposeOut(1, 1))(image)[0, 0].tolist() == row


def test_images_of_28_are_those_of_32_with_a_margin():
    torch.manual_seed(0)
    small, large = ConvEncoder((28, 28, 1), 5), ConvEncoder((32, 32, 1), 5)
    large.load_state_dict(small.state_dict())
    image = torch.rand(2, 1, 28, 28)
    padded = torch.zeros(2, 1, 32, 32)
    padded[:, :, 2:30, 2:30] = image
    assert torch.equal(small(image)[0], large(padded)[0])
    small_decoder, large_decoder = ConvDecoder(5, (28, 28, 1)), ConvDecoder(5, (32, 32, 1))
    large_decoder.load_state_dict(small_decoder.state_dict())
    z = torch.rand(2, 5)
    assert torch.equal(small_decoder(z), large_decoder(z)[:, :, 2:30, 2:30])


def test_conditioning_joins_the_features():
    encoder = ConvEncoder((32, 32, 1), 5, conditioning=3)
    assert encoder.heads.mean.in_features == 256 + 3
    x, u = torch.rand(2, 1, 32, 32), torch.rand(2, 3)
    mean, log_variance = encoder(x, u)
    assert mean.shape == log_variance.shape == (2, 5)
    change = encoder(x, u + 1)[0] - mean
    expected = encoder.heads.mean.weight[:, 256:].sum(1).expand(2, 5)
    torch.testing.assert_close(change, expected, atol=1e-5, rtol=1e-4)


def test_conditioning_has_to_be_given_if_and_only_if_asked_for():
    x, u = torch.rand(2, 1, 32, 32), torch.rand(2, 3)
    with pytest.raises(TypeError, match="takes u with 3 values"):
        ConvEncoder((32, 32, 1), 5, conditioning=3)(x)
    with pytest.raises(TypeError, match="takes no u"):
        ConvEncoder((32, 32, 1), 5)(x, u)


@pytest.mark.parametrize(
    "shape", [(50, 50, 3), (64, 64, 7), (64, 32, 1), (64, 64), (64,), (96, 96, 1), (64, 64, 0)]
)
def test_other_shapes_are_refused(shape):
    for make in (lambda: ConvEncoder(shape, 10), lambda: ConvDecoder(10, shape)):
        with pytest.raises(ArgumentError, match="28, 32, 64 or 128") as refusal:
            make()
        assert str(shape) in str(refusal.value)


def test_other_arguments_are_refused():
    with pytest.raises(ArgumentError, match="did you mean 'dlib'"):
        ConvEncoder((64, 64, 1), 10, variant="dlibs")
    with pytest.raises(ArgumentError, match="latent_size = 0"):
        ConvEncoder((64, 64, 1), 0)
    with pytest.raises(ArgumentError, match="latent_size = 0"):
        ConvDecoder(0, (64, 64, 1))
