"""A user's file: two methods that are no VAEs, a VAE, a metric, a term and a data set. Studies import it."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from unweave.data import register_data
from unweave.methods import (
    KL,
    Method,
    OptimiserSettings,
    Player,
    Posterior,
    Term,
    Terms,
    register_method,
    register_term,
)
from unweave.metrics import register_metric
from unweave.parameters import Count, NonNegative, Positive


@register_data("dots", licence="CC0-1.0")
def dots():
    """A dot of two by two pixels at any of sixteen positions."""
    row, column = np.divmod(np.arange(16), 4)
    images = np.zeros((16, 8, 8), np.uint8)
    for image, y, x in zip(images, 2 * row, 2 * column, strict=True):
        image[y : y + 2, x : x + 2] = 255
    return images, {"row": row, "column": column}


@register_method("pixel_gaussian", strength="floor")
class PixelGaussian(Method):
    """Independent Gaussians of all pixels: it has a density, and gives images no codes."""

    def __init__(self, image_shape, *, floor: Positive = 0.1):
        super().__init__()
        height, width, channels = image_shape
        self.mean = nn.Parameter(torch.zeros(channels, height, width))
        self.log_scale = nn.Parameter(torch.zeros(channels, height, width))
        self.floor = floor

    def begin(self, batch, step, generator):
        return -self.log_density(batch.images).mean()

    def players(self):
        return [Player("model", list(self.parameters()), lambda loss: Terms.of(nll=(loss, 1.0)))]

    def log_density(self, images, generator=None):
        scale = self.floor + self.log_scale.exp()
        each = -0.5 * ((images - self.mean) / scale).square() - scale.log() - 0.5 * math.log(2 * math.pi)
        return each.flatten(1).sum(1)

    def initialise(self, seed):
        nn.init.normal_(self.mean, generator=torch.Generator().manual_seed(seed))


@register_method("small_gan", label="Small GAN")
class SmallGAN(Method):
    """A generator against a critic, with an encoder that finds the generator's code."""

    def __init__(self, image_shape, *, weight: Positive = 1.0, latent_size: Count = 2):
        super().__init__()
        height, width, channels = image_shape
        self.shape, self.weight, self.latent_size = (channels, height, width), weight, latent_size
        pixels = math.prod(self.shape)
        self.generator = nn.Sequential(nn.Linear(latent_size, 16), nn.ReLU(), nn.Linear(16, pixels))
        self.critic = nn.Sequential(nn.Flatten(), nn.Linear(pixels, 16), nn.ReLU(), nn.Linear(16, 1))
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(pixels, latent_size))

    noise_correlation = 0.0

    @property
    def parts(self):
        return {"z": slice(0, self.latent_size)}

    def begin(self, batch, step, generator):
        codes = torch.randn(len(batch), self.latent_size, generator=generator, device=batch.images.device)
        return batch.images, codes, self.decode(codes)

    def players(self):
        model = [*self.generator.parameters(), *self.encoder.parameters()]
        critic = list(self.critic.parameters())
        return [
            Player("model", model, self._model_loss),
            Player("critic", critic, self._critic_loss, OptimiserSettings(betas=(0.5, 0.9))),
        ]

    def _model_loss(self, result):
        _, codes, fake = result
        fooled = nn.functional.softplus(-self.critic(fake)).mean()
        return Terms.of(
            fooled=(fooled, 1.0), code=((self.encoder(fake) - codes).square().mean(), self.weight)
        )

    def _critic_loss(self, result):
        real, _, fake = result
        right = nn.functional.softplus(-self.critic(real)).mean()
        wrong = nn.functional.softplus(self.critic(fake.detach())).mean()
        return Terms.of(critic=(right + wrong, 1.0))

    def encode(self, images):
        mean = self.encoder(images)
        return Posterior(mean, torch.full_like(mean, -torch.inf))

    def decode(self, codes):
        return torch.sigmoid(self.generator(codes)).view(-1, *self.shape)


@register_method("half_vae", label="½-VAE")
def half_vae(beta: NonNegative = 0.5):
    """reconstruction + beta * KL."""
    return [KL(beta)]


@register_term("sparsity")
@dataclass(frozen=True)
class Sparsity(Term):
    """weight * mean absolute code."""

    weight: NonNegative = 1.0

    def __call__(self, forward_pass):
        return Terms.of(sparsity=(forward_pass.mean.abs().sum(1).mean(), self.weight))


@register_metric("spread", label="Spread", higher_is_better=False)
def spread(codes, factors, *, power: float = 2.0):
    """The mean absolute deviation of codes, to some power."""
    return np.mean(np.abs(codes - codes.mean(axis=0)) ** power)
