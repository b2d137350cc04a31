"""A user's file: a method on top of a first stage, so small that a run of it takes a fraction of a second."""

import math

import torch
from torch import nn

from unweave.methods import FirstStage, Method, Player, Posterior, Stage, Terms, register_method
from unweave.networks import initialise
from unweave.objectives import kl_to_standard_normal, reparameterise, standard_noise
from unweave.parameters import Count


@register_method("refined", label="Refined", strength="latent_size")
class Refined(Method):
    """Adds to the images y of a first stage what a linear code z knows of x - y."""

    noise_correlation = 0.0

    def __init__(self, image_shape, *, first: Stage = None, latent_size: Count = 2):
        super().__init__()
        self.first, self.latent_size = FirstStage(first, image_shape), latent_size
        height, width, channels = image_shape
        self.shape = (channels, height, width)
        self.encoder = nn.Linear(math.prod(self.shape), 2 * latent_size)
        self.decoder = nn.Linear(latent_size, math.prod(self.shape))

    @property
    def parts(self):
        size = self.first.code_size
        return {"c": slice(0, size), "z": slice(size, size + self.latent_size)}

    def encode(self, images):
        c = self.first.encode(images)
        z = self._encode_z(images, self.first.decode(c.mean))
        both = zip((c.mean, c.log_variance.expand_as(c.mean)), z, strict=True)
        return Posterior(*(torch.cat(pair, dim=1) for pair in both))

    def decode(self, codes):
        y = self.first.decode(codes[:, self.parts["c"]])
        return (y + self._add(codes[:, self.parts["z"]])).clamp(0, 1)

    def begin(self, batch, step, generator=None):
        y = self.first.reconstruct(batch.images, "mean", generator)
        posterior = self._encode_z(batch.images, y)
        z = reparameterise(*posterior, standard_noise(posterior.mean, generator=generator))
        return batch.images - y - self._add(z), posterior

    def loss(self, result):
        rest, posterior = result
        kl = kl_to_standard_normal(*posterior).sum(1).mean()
        return Terms.of(error=(rest.square().flatten(1).sum(1).mean(), 1.0), kl=(kl, 1.0))

    def players(self):
        return [Player("model", [*self.encoder.parameters(), *self.decoder.parameters()], self.loss)]

    def initialise(self, seed):
        generator = torch.Generator().manual_seed(seed)
        initialise(self.encoder, generator)
        initialise(self.decoder, generator)

    def _encode_z(self, images, y):
        return Posterior(*self.encoder((images - y).flatten(1)).chunk(2, dim=1))

    def _add(self, z):
        return self.decoder(z).unflatten(1, self.shape)
