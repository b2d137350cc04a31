import pytest
import torch

from unweave.networks.dcgan import ImageDiscriminator, ImageGenerator


@pytest.mark.parametrize("size", [28, 32, 64, 128])
def test_sizes(size):
    images = ImageGenerator(7, (size, size, 3))(torch.randn(2, 7))
    assert images.shape == (2, 3, size, size)
    discriminator = ImageDiscriminator((size, size, 3))
    assert discriminator(images).shape == (2,)
    assert discriminator.features(images).shape == (2, discriminator.num_features)


def test_layers_of_64_pixels_are_those_of_the_paper():
    generator, discriminator = ImageGenerator(100, (64, 64, 3)), ImageDiscriminator((64, 64, 3), 3)
    assert generator.dense.out_features == 4 * 4 * 512
    assert [c.out_channels for c in generator.convolutions] == [256, 128, 64, 3]
    assert [c.out_channels for c in discriminator.convolutions] == [64, 128, 256, 512]
    assert discriminator.convolutions[0].in_channels == 6  # image and condition, joined by channel
    kinds = [type(norm).__name__ for norm in discriminator.norms]
    assert kinds == ["Identity", "BatchNorm2d", "BatchNorm2d", "BatchNorm2d"]


def test_a_critic_has_no_batch_normalisation():
    critic = ImageDiscriminator((32, 32, 1), normalise=False)
    images = torch.rand(4, 1, 32, 32)
    together, alone = critic(images), torch.cat([critic(image[None]) for image in images])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


def test_the_condition_is_seen():
    discriminator = ImageDiscriminator((32, 32, 1), 1).eval()
    image, one, other = (torch.rand(1, 1, 32, 32) for _ in range(3))
    assert discriminator(image, one) != discriminator(image, other)
