"""Matrix products by oneDNN have the values, gradients and second gradients of torch's own."""

import pytest
import torch
import torch.nn.functional as F

from unweave.networks import accelerate
from unweave.networks.blocks import Dense
from unweave.networks.fast_dense import linear

needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN"
)


def example(n=7, inputs=30, outputs=20):
    generator = torch.Generator().manual_seed(0)
    shapes = ((n, inputs), (outputs, inputs), (outputs,))
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


def gradients(function, arguments):
    return torch.autograd.grad(function(*arguments).tanh().sum(), arguments, create_graph=True)


@needs_onednn
def test_values_are_those_of_float64():
    x, weight, bias = example(64, 300, 200)
    exact = F.linear(x.double(), weight.double(), bias.double())
    assert (linear(x, weight, bias).double() - exact).norm() <= 1e-6 * exact.norm()


@needs_onednn
def test_gradients_are_those_of_torch():
    arguments = example()
    for ours, theirs in zip(gradients(linear, arguments), gradients(F.linear, arguments), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@needs_onednn
def test_gradients_of_gradients_are_those_of_torch():
    """A penalty on a gradient, as of a Wasserstein critic, needs them."""
    arguments = example()

    def second(function):
        first = gradients(function, arguments)
        return torch.autograd.grad(sum(gradient.square().sum() for gradient in first), arguments)

    for ours, theirs in zip(second(linear), second(F.linear), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@needs_onednn
def test_only_what_is_asked_for_gets_a_gradient():
    x, weight, bias = example()
    weight.requires_grad_(False)
    linear(x, weight, bias).sum().backward()
    assert weight.grad is None
    torch.testing.assert_close(bias.grad, torch.full((20,), 7.0))
    torch.testing.assert_close(x.grad, weight.sum(dim=0).expand(7, -1))


@needs_onednn
@pytest.mark.parametrize("faster", [True, False])
def test_an_accelerated_layer_is_the_same_layer(monkeypatch, faster):
    monkeypatch.setattr("unweave.networks.blocks.onednn_is_faster", lambda: faster)
    torch.manual_seed(0)
    plain, fast = Dense(300, 200), Dense(300, 200)
    fast.load_state_dict(plain.state_dict())
    x = torch.randn(5, 300)
    torch.testing.assert_close(accelerate(fast)(x), plain(x), rtol=1e-5, atol=1e-5)
    assert type(accelerate(fast)(x).grad_fn).__name__.startswith("_Product") == faster


def test_other_types_and_shapes_take_torch_s_own_operations(monkeypatch):
    monkeypatch.setattr("unweave.networks.blocks.onednn_is_faster", lambda: True)
    layer = accelerate(Dense(300, 200))
    assert layer(torch.zeros(2, 3, 300)).shape == (2, 3, 200)
    assert layer.double()(torch.zeros(2, 300, dtype=torch.float64)).dtype == torch.float64
