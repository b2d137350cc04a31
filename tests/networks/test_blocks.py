import copy
import pickle

import pytest
import torch
from torch import nn

from unweave.networks import (
    ConvDecoder,
    ConvEncoder,
    ConvReLU,
    ConvTransposeOut,
    ConvTransposeReLU,
    accelerate,
    blocks,
    decelerate,
    is_accelerated,
)
from unweave.networks.fast_conv import can_be_fast

# Torch loads its own decompositions for forward mode with a function that it has deprecated.
forward_mode = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")


def decoders():
    """The same decoder, plain and accelerated."""
    plain = ConvDecoder(4, (32, 32, 1))
    return plain, accelerate(copy.deepcopy(plain))


def test_switch():
    layers = ConvReLU(1, 2), ConvTransposeReLU(3, 4), ConvTransposeOut(4, 1)
    network = nn.Sequential(layers[0], nn.Conv2d(2, 3, 3), *layers[1:])
    assert not is_accelerated(network)
    assert accelerate(network) is network
    assert is_accelerated(network)
    network[0].fast = False
    assert not is_accelerated(network)
    accelerate(network)
    assert decelerate(network) is network
    assert not any(getattr(layer, "fast", False) for layer in network)


@pytest.mark.parametrize(
    ("layer", "function"),
    [
        (ConvReLU(1, 2), "conv_relu"),
        (ConvTransposeReLU(2, 3), "conv_transpose_relu"),
        (ConvTransposeOut(2, 1), "conv_transpose"),
    ],
    ids=str,
)
def test_the_switch_chooses_the_implementation(layer, function, monkeypatch):
    calls = []
    monkeypatch.setattr(blocks, function, lambda x, weight, bias: calls.append((weight, bias)))
    x = torch.rand(1, layer.in_channels, 4, 4)
    layer(x)
    assert calls == []
    accelerate(layer)(x)
    assert calls[0][0] is layer.weight
    assert calls[0][1] is layer.bias
    decelerate(layer)(x)
    assert len(calls) == 1


def test_switch_is_idle_elsewhere():
    network = accelerate(nn.Sequential(nn.Linear(3, 4), nn.ReLU()))
    assert not is_accelerated(network)
    assert not any(hasattr(layer, "fast") for layer in network.modules())


def test_weights_move_between_both():
    plain, fast = ConvEncoder((64, 64, 3), 5), accelerate(ConvEncoder((64, 64, 3), 5))
    assert list(plain.state_dict()) == list(fast.state_dict())
    fast.load_state_dict(plain.state_dict())
    x = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(plain(x), fast(x), rtol=1e-4, atol=1e-5)
    ordinary = nn.Conv2d(3, 32, 4, stride=2, padding=1)
    ordinary.load_state_dict(fast.convolutions[0].state_dict())


def test_copies_stay_accelerated():
    decoder = accelerate(ConvDecoder(3, (32, 32, 1)))
    assert is_accelerated(copy.deepcopy(decoder))
    assert is_accelerated(pickle.loads(pickle.dumps(decoder)))


def test_autocast_takes_the_plain_path():
    x = torch.rand(2, 1, 32, 32)
    assert can_be_fast(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not can_be_fast(x)
        assert accelerate(ConvReLU(1, 2))(x).dtype == torch.bfloat16
    assert not can_be_fast(x.to("meta"))


@forward_mode
def test_function_transforms_take_the_plain_path():
    plain, fast = decoders()
    z = torch.rand(2, 4)
    direction = torch.ones_like(z)
    for transform in (
        lambda decoder: torch.func.jvp(decoder, (z,), (direction,))[1],
        lambda decoder: torch.func.vmap(lambda one: decoder(one[None])[0])(z),
        lambda decoder: torch.func.jacrev(decoder)(z[:1]).sum(0),
    ):
        assert torch.equal(transform(plain), transform(fast))


@forward_mode
def test_forward_mode_takes_the_plain_path():
    plain, fast = decoders()
    z = torch.rand(2, 4)

    def tangent(decoder):
        with torch.autograd.forward_ad.dual_level():
            output = decoder(torch.autograd.forward_ad.make_dual(z, torch.ones_like(z)))
            return torch.autograd.forward_ad.unpack_dual(output).tangent

    assert torch.equal(tangent(plain), tangent(fast))


def test_export_takes_the_plain_path():
    decoder = accelerate(ConvDecoder(3, (32, 32, 1)))
    program = torch.export.export(decoder, (torch.rand(2, 3),))
    names = {str(node.target) for node in program.graph.nodes}
    assert not any("bmm" in name for name in names)
