"""Models are shown by what they can do, not by their class."""

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.figures.model_pictures import reconstructions, traversals
from unweave.figures.papers.models import load_autoencoder
from unweave.methods import METHODS, register_method
from unweave.methods.method import Method, Player, Posterior, Terms


class Average(Method):
    """Learns the mean observation; can be trained and nothing else."""

    def __init__(self, image_shape):
        super().__init__()
        self.mean = torch.nn.Parameter(torch.zeros(image_shape))

    def begin(self, batch, step, generator):
        return (batch.images - self.mean).square().mean()

    def players(self):
        return [Player("model", list(self.parameters()), lambda error: Terms.of(error=(error, 1.0)))]


class Level(Average):
    """Two codes: the level of an observation, and nothing; decodes to the mean observation, higher or lower."""

    noise_correlation = 0.0

    @property
    def parts(self):
        return {"z": slice(0, 2)}

    def encode(self, images):
        mean = torch.stack([images.mean(dim=1), torch.zeros(len(images))], dim=1)
        return Posterior(mean, torch.full_like(mean, -2.0))

    def decode(self, codes):
        return self.mean + codes[:, :1]


@pytest.fixture
def run(tmp_path):
    """Trains a class of method for a step, and gives the folder of the run."""
    data = uw.data.load("pendulum")

    def train(cls):
        name = cls.__name__.lower()
        register_method(name)(cls)
        uw.train(uw.methods.create(name, data), data, steps=1, out=tmp_path / name, pictures=False)
        return tmp_path / name

    yield train
    for name in ("average", "level"):
        METHODS.unregister(name)


def test_any_method_that_encodes_and_decodes_is_drawn(run):
    method, data = load_autoencoder(run(Level), "pendulum")
    assert type(method) is Level
    assert reconstructions(method, data, columns=3).width > 0
    assert np.asarray(traversals(method, data, columns=3)).std() > 0


def test_a_method_that_cannot_is_refused_by_name(run):
    with pytest.raises(ArgumentError, match="method = 'average': does not both encode and decode images"):
        load_autoencoder(run(Average), "pendulum")
