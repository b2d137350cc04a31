import math

import pytest
import torch
from torch import nn

from unweave.networks import MLP, accelerate, create_networks, initialise


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("layer", "fan_in", "fan_out"),
    [
        (nn.Linear(300, 200), 300, 200),
        # TensorFlow's fans: kernel area times channels, for transposed kernels (k, k, out, in) too.
        (nn.Conv2d(8, 40, 4), 8 * 16, 40 * 16),
        (nn.ConvTranspose2d(40, 8, 4), 40 * 16, 8 * 16),
        (nn.Conv1d(8, 40, 16), 8 * 16, 40 * 16),
    ],
)
def test_glorot_bounds(layer, fan_in, fan_out):
    initialise(layer, seeded(0))
    limit = math.sqrt(6 / (fan_in + fan_out))
    assert layer.weight.abs().max() <= limit
    assert layer.weight.abs().max() > 0.99 * limit
    # A uniform distribution on +-limit has the standard deviation limit / sqrt(3).
    assert layer.weight.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.03)
    assert layer.weight.mean().item() == pytest.approx(0, abs=0.03 * limit)
    assert not layer.bias.any()


def test_a_seed_gives_the_same_weights():
    first, second, other = (nn.ModuleList(create_networks("conv", (64, 64, 3), 10)) for _ in range(3))
    accelerate(second)
    initialise(first, seeded(1))
    initialise(second, seeded(1))
    initialise(other, seeded(2))
    for name, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[name])
    assert not torch.equal(first[0].convolutions[0].weight, other[0].convolutions[0].weight)


def test_precision_does_not_change_the_weights():
    single, double = MLP(5, (7,), 3), MLP(5, (7,), 3).double()
    initialise(single, seeded(1))
    initialise(double, seeded(1))
    assert torch.equal(single[0].weight.double(), double[0].weight)


def test_layers_draw_in_the_order_in_which_they_were_added():
    network, first = MLP(5, (7,), 3), nn.Linear(5, 7)
    initialise(network, seeded(1))
    initialise(first, seeded(1))
    assert torch.equal(network[0].weight, first.weight)


def test_layers_without_bias_and_other_layers():
    norm = nn.BatchNorm1d(4)
    initialise(nn.Sequential(nn.Linear(3, 4, bias=False), norm), seeded(0))
    assert norm.weight.eq(1).all()
