import pytest
import torch

from unweave.networks.adain import AdaINDecoder, AdaptiveInstanceNorm


@pytest.mark.parametrize(
    ("size", "modulation"),
    [(28, "channel"), (32, "channel"), (64, "channel"), (128, "channel"), (28, "position"), (64, "position")],
)
def test_the_decoder_keeps_the_size_of_images(size, modulation):
    decoder = AdaINDecoder((size, size, 3), 4, modulation)
    x = decoder(torch.rand(2, 3, size, size), torch.randn(2, 4))
    assert x.shape == (2, 3, size, size)


def test_layers_of_64_pixels_are_those_of_the_paper():
    decoder = AdaINDecoder((64, 64, 3), 5)
    assert [c.out_channels for c in decoder.down] == [64, 128, 256, 512]
    assert (decoder.dense.in_features, decoder.dense.out_features) == (8192, 8192)
    assert [c.out_channels for c in decoder.up] == [256, 128, 64, 3]
    assert {c.kernel_size for c in [*decoder.down, *decoder.up]} == {(5, 5)}
    assert len(decoder.down_norms) == 3  # every layer but the first and the last
    assert len(decoder.up_norms) == 3


def test_adain_by_its_formula():
    norm = AdaptiveInstanceNorm((3, 4, 4), 2).double()
    h, z = torch.randn(5, 3, 4, 4, dtype=torch.float64), torch.randn(5, 2, dtype=torch.float64)
    mean = h.mean((2, 3), keepdim=True)
    deviation = (h.var((2, 3), keepdim=True, correction=0) + 1e-5).sqrt()
    scale = 1 + (z @ norm.scale.weight.T + norm.scale.bias)[..., None, None]
    shift = (z @ norm.shift.weight.T + norm.shift.bias)[..., None, None]
    torch.testing.assert_close(norm(h, z), scale * (h - mean) / deviation + shift)


def test_per_position_every_pixel_has_its_own_scale():
    norm = AdaptiveInstanceNorm((3, 4, 4), 2, "position").double()
    assert norm.scale.out_features == 48
    h, z = torch.randn(5, 3, 4, 4, dtype=torch.float64), torch.randn(5, 2, dtype=torch.float64)
    normal = (h - h.mean((2, 3), keepdim=True)) / (h.var((2, 3), keepdim=True, correction=0) + 1e-5).sqrt()
    expected = norm.scale(z).relu().view(5, 3, 4, 4) * normal + norm.shift(z).relu().view(5, 3, 4, 4)
    torch.testing.assert_close(norm(h, z), expected)


def test_codes_and_blurry_image_both_reach_the_output():
    torch.manual_seed(0)
    decoder = AdaINDecoder((32, 32, 1), 3)
    y = torch.rand(2, 1, 32, 32, requires_grad=True)
    z = torch.randn(2, 3, requires_grad=True)
    decoder(y, z).square().sum().backward()
    assert (y.grad.abs().sum((1, 2, 3)) > 0).all()
    assert (z.grad.abs().sum(1) > 0).all()
    assert all((p.grad is not None and p.grad.abs().sum() > 0) for p in decoder.up[-1].parameters())
